"""What nobody should send, and somebody will: the conversation goes on, or the error is clear."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from openai import OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.testing import Call, Turn
from tests.chat.stage import ASK, WAYS, Speaker, Stage, Way, calls, look, text


@pytest.mark.parametrize("way", WAYS)
async def test_half_a_character_of_a_model_does_not_end_the_conversation(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """A lone surrogate is JSON, but no request could carry it back."""
    half = '{"name": "\\ud83d"}'
    turn = Turn(calls=(Call("greet", half), Call("search_tools", '{"query": "\\udc00 zz"}')))
    role = stage.cast(turn, Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert "Hello ?!" == role.results()[0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_without_a_name_is_answered_with_an_error(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """It is none of the host's tools: the model mends it, the host would not know what to do."""
    role = stage.cast(Turn(calls=(Call("", {}), look("add two numbers"))), Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert [] == calls(answer)
    assert "error" in role.results()[0]


def test_a_copy_is_a_wrapper_of_the_same_client(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """A bare client for a copy would lose the catalog in silence."""
    role = stage.cast(Turn("Hi."))
    client = copy.copy(AutoDiscoveryClient(openai, functions))

    client.chat.completions.create(model=role.model, messages=ASK)

    assert openai is client.openai
    assert ("search_tools", "call_tool") == role.tool_names[0]


async def test_an_async_copy_is_one_too(speaker: Speaker, functions: Gateway) -> None:
    """The twin."""
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, functions)

    assert type(client) is type(copy.copy(client))
    with pytest.raises(TypeError, match="with_options"):
        pickle.dumps(client)


@pytest.mark.parametrize("take", [pickle.dumps, copy.deepcopy])
def test_what_holds_connections_is_not_pickled(
    openai: OpenAI, functions: Gateway, take: Any
) -> None:
    """The bare client is not either; here it says why, and what to do."""
    with pytest.raises(TypeError, match="make one where it is needed"):
        take(AutoDiscoveryClient(openai, functions))
