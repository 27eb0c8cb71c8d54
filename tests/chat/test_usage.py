"""The usage that a stream tells: where services put it, nothing of it is lost or told twice."""

from __future__ import annotations

from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk

from gateway import AutoDiscoveryClient, Gateway
from gateway.chat.accounting import accounting_of
from tests.chat.canned import DONE, Canned, event, fragment
from tests.chat.stage import ASK

HELLO = {"role": "assistant", "content": "Hi."}
ENDS: dict[str, Any] = {"finish": "stop"}


def usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}


STREAMS: dict[str, list[bytes]] = {
    "in no chunk at all": [],
    "nowhere": [event(HELLO), event({}, **ENDS)],
    "in a chunk of its own": [event(HELLO), event({}, **ENDS), event(usage=usage(2))],
    "in two": [event(usage=usage(1)), event(HELLO), event({}, **ENDS), event(usage=usage(2))],
    "with the end": [event(HELLO), event({}, **ENDS, usage=usage(2))],
    "with the end and a text": [event(HELLO), event({"content": "!"}, **ENDS, usage=usage(2))],
    "with every chunk": [event(HELLO, usage=usage(1)), event({}, **ENDS, usage=usage(2))],
    "with an empty one": [event(HELLO), event({}, **ENDS), event({}, usage=usage(2))],
    "alone": [event(usage=usage(2))],
    "null at first": [event(HELLO, usage=None), event({}, **ENDS), event(usage=usage(2))],
}
SEARCHES = [
    event(fragment(0, id="a", type="function", name="search_tools", arguments='{"query": "add"}')),
    event({}, finish="tool_calls", usage=usage(10)),
]
SILENT = {"in no chunk at all", "alone"}
"""Streams of which the helper of the SDK makes nothing."""
LATER = {
    name: parts for name, parts in STREAMS.items() if any(b"_tokens" in each for each in parts)
}


def read(client: OpenAI) -> list[ChatCompletionChunk]:
    return list(client.chat.completions.create(model="m", messages=ASK, stream=True))


def prompt_tokens(chunks: list[ChatCompletionChunk]) -> list[int]:
    """What a stream reports, in order."""
    return [each.usage.prompt_tokens for each in chunks if each.usage is not None]


def snapshot(client: OpenAI) -> Any:
    """What the helper of the SDK makes of a stream."""
    with client.chat.completions.stream(model="m", messages=ASK) as stream:
        return stream.get_final_completion()


def summary(chunks: list[ChatCompletionChunk]) -> tuple[str, list[str]]:
    choices = [choice for each in chunks for choice in each.choices]
    ends = [str(each.finish_reason) for each in choices if each.finish_reason]
    return "".join(each.delta.content or "" for each in choices), ends


@pytest.mark.parametrize("where", STREAMS)
def test_a_turn_tells_the_usage_that_the_service_tells(functions: Gateway, where: str) -> None:
    """Once, at the end, and to the helper of the SDK as well."""
    with (
        Canned([*STREAMS[where], DONE]) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        wrapped = AutoDiscoveryClient(bare, functions)
        plain, ours = read(bare), read(wrapped)
        if where not in SILENT:
            assert snapshot(bare).to_dict() == snapshot(wrapped).to_dict()

    assert (prompt_tokens(plain)[-1:], summary(plain)) == (prompt_tokens(ours), summary(ours))


@pytest.mark.parametrize("where", LATER)
def test_the_last_usage_of_a_stream_is_that_of_all_turns(functions: Gateway, where: str) -> None:
    """The first turn is a search that the caller never sees; its tokens were spent all the same."""
    with (
        Canned([*LATER[where], DONE], before=[[*SEARCHES, DONE]]) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        stream = AutoDiscoveryClient(bare, functions).chat.completions.create(
            model="m", messages=ASK, stream=True
        )
        chunks = list(stream)

    accounting = accounting_of(stream)
    assert accounting is not None
    assert [12] == prompt_tokens(chunks) == [accounting.prompt_tokens]
    assert 1 == len({each.id for each in chunks})
