"""Replies in other forms of the SDK: parsed, raw, streamed raw, and events of the SDK's stream
helper.
"""

from __future__ import annotations

from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway, accounting_of
from gateway.testing import Call, Turn
from tests.core.chat.stage import ASK, SUM, Role, Speaker, Stage, function, look

MINE: Any = function("mine", zone={"type": "string"})


class Sum(BaseModel):
    """Type to which the reply is parsed."""

    total: int


def working_role(stage: Stage) -> Role:
    """Return a role whose first turn has text that is not JSON. It must not be parsed, because only
    the last reply is.
    """
    return stage.cast(Turn("Let me look.", (look("add two numbers"),)), SUM, Turn('{"total": 3}'))


def test_parse_parses_only_the_last_reply(stage: Stage, openai: OpenAI, functions: Gateway) -> None:
    """The reply has the caller's own type, and its accounting."""
    role = working_role(stage)
    client = AutoDiscoveryClient(openai, functions)

    answer = client.chat.completions.parse(model=role.model, messages=ASK, response_format=Sum)

    assert Sum(total=3) == answer.choices[0].message.parsed
    spent = accounting_of(answer)
    assert spent is not None
    assert 3 == spent.turns


def test_raw_response_contains_the_last_reply(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Its bytes are equal to those of a reply that was not requested as a raw response."""
    role = working_role(stage)
    chat = AutoDiscoveryClient(openai, functions).chat.completions
    whole = chat.create(model=role.model, messages=ASK)

    raw = chat.with_raw_response.create(model=role.model, messages=ASK)

    assert 200 == raw.status_code
    assert raw.elapsed.total_seconds() > 0
    read = ChatCompletion.model_validate_json(raw.text)
    for answer in (raw.parse(), read):
        assert whole.choices == answer.choices
        assert whole.usage is not None
        assert answer.usage is not None
        assert whole.usage.prompt_tokens == answer.usage.prompt_tokens


def test_streaming_response_contains_the_last_reply(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """``with_streaming_response`` is another kind of raw response."""
    role = working_role(stage)
    chat = AutoDiscoveryClient(openai, functions).chat.completions

    with chat.with_streaming_response.create(model=role.model, messages=ASK) as response:
        answer = response.parse()
        assert '{"total": 3}' == answer.choices[0].message.content
        assert b"total" in b"".join(response.iter_bytes())


async def test_raw_stream_joins_the_turns_of_a_client_call(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    options: Any = {"model": working_role(stage).model, "messages": ASK, "stream": True}
    blocking = AutoDiscoveryClient(speaker.openai, functions).chat.completions
    awaiting = AsyncAutoDiscoveryClient(speaker.asynchronous, functions).chat.completions

    chunks = list(blocking.with_raw_response.create(**options).parse())
    later = (await awaiting.with_raw_response.create(**options)).parse()

    for joined in (chunks, [chunk async for chunk in later]):
        texts = [chunk.choices[0].delta.content or "" for chunk in joined]
        assert 'Let me look.{"total": 3}' == "".join(texts)


def test_streaming_response_has_the_same_lines_as_the_service_sends(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    options: Any = {"model": working_role(stage).model, "messages": ASK, "stream": True}
    chat = AutoDiscoveryClient(openai, functions).chat.completions

    with chat.with_streaming_response.create(**options) as response:
        lines = [line for line in response.iter_lines() if line]

    assert "data: [DONE]" == lines[-1]
    assert lines[0].startswith('data: {"id":')


@pytest.mark.parametrize("streams", [True, False])
def test_gateway_calls_are_removed_from_other_choices(
    stage: Stage, openai: OpenAI, functions: Gateway, streams: bool
) -> None:
    """Only the calls of the first choice are answered, but callers must never receive gateway
    calls.
    """
    role = stage.cast(Turn("Both.", (look("add"), Call("mine", {"zone": "CET"}))), Turn("Done."))
    chat = AutoDiscoveryClient(openai, functions).chat.completions
    options: Any = {"model": role.model, "messages": ASK, "n": 2, "tools": [MINE]}

    if streams:
        with chat.stream(**options) as stream:
            answer: Any = stream.get_final_completion()
    else:
        answer = chat.create(**options)

    names = [
        [call.function.name for call in choice.message.tool_calls] for choice in answer.choices
    ]
    assert [["mine"], ["mine"]] == names
    assert ["Both.", "Both."] == [choice.message.content for choice in answer.choices]


def allowed_tools(mode: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": []}}


NAMED = {"type": "function", "function": {"name": "add"}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("required", "auto"),
        (NAMED, "auto"),
        ("none", "none"),
        ("auto", "auto"),
        (allowed_tools("required"), allowed_tools("auto")),
    ],
)
def test_required_tool_choice_applies_only_to_the_first_turn(
    stage: Stage, openai: OpenAI, functions: Gateway, before: Any, after: Any
) -> None:
    """Otherwise the model would have to call tools forever."""
    role = stage.cast(SUM, Turn("3"))
    client = AutoDiscoveryClient(openai, functions)

    client.chat.completions.create(model=role.model, messages=ASK, tool_choice=before)

    assert [before, after] == [request.body["tool_choice"] for request in role.requests]
    assert ("add" in role.tool_names[0]) is (before == NAMED)
