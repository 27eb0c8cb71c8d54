"""A type checker sees on the wrapper what it sees on the bare client. mypy is the judge: each
line here is one that it checks with the rest of the tests.
"""

from __future__ import annotations

from typing import assert_type

from openai import AsyncOpenAI, AsyncStream, OpenAI, Stream
from openai.lib.streaming.chat import ChatCompletionStreamManager
from openai.lib.streaming.responses import ResponseStreamManager
from openai.pagination import SyncPage
from openai.types import CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ParsedChatCompletion
from openai.types.responses import ParsedResponse, Response, ResponseStreamEvent
from pydantic import BaseModel

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient
from tests.chat.stage import ASK

M = "m"


class Reading(BaseModel):
    """What a reply is parsed as."""

    value: int


def blocking(client: AutoDiscoveryClient) -> None:
    chat, responses = client.chat.completions, client.responses
    assert_type(chat.create(model=M, messages=ASK), ChatCompletion)
    assert_type(chat.create(model=M, messages=ASK, stream=True), Stream[ChatCompletionChunk])
    assert_type(
        chat.parse(model=M, messages=ASK, response_format=Reading), ParsedChatCompletion[Reading]
    )
    assert_type(
        chat.stream(model=M, messages=ASK, response_format=Reading),
        ChatCompletionStreamManager[Reading],
    )
    assert_type(chat.with_raw_response.create(model=M, messages=ASK).parse(), ChatCompletion)
    with chat.with_streaming_response.create(model=M, messages=ASK) as response:
        assert_type(response.parse(), ChatCompletion)
    assert_type(responses.create(model=M, input=""), Response)
    assert_type(responses.create(model=M, input="", stream=True), Stream[ResponseStreamEvent])
    assert_type(responses.parse(model=M, input="", text_format=Reading), ParsedResponse[Reading])
    assert_type(
        responses.stream(model=M, input="", text_format=Reading), ResponseStreamManager[Reading]
    )
    assert_type(client.models.list(), SyncPage[Model])
    assert_type(client.embeddings.create(model=M, input=""), CreateEmbeddingResponse)
    assert_type(client.openai, OpenAI)
    assert_type(client.with_options(timeout=1), AutoDiscoveryClient)
    assert_type(client.max_retries, int)


async def awaiting(client: AsyncAutoDiscoveryClient) -> None:
    chat, responses = client.chat.completions, client.responses
    assert_type(await chat.create(model=M, messages=ASK), ChatCompletion)
    assert_type(
        await chat.create(model=M, messages=ASK, stream=True), AsyncStream[ChatCompletionChunk]
    )
    assert_type(await responses.create(model=M, input=""), Response)
    assert_type(
        await responses.create(model=M, input="", stream=True), AsyncStream[ResponseStreamEvent]
    )
    assert_type(client.openai, AsyncOpenAI)
    assert_type(client.with_options(timeout=1), AsyncAutoDiscoveryClient)


def test_a_wrapper_may_be_given_wherever_a_client_is_wanted() -> None:
    """To a checker too: the annotations above say which types, this says that they are classes."""
    assert issubclass(AutoDiscoveryClient, OpenAI)
    assert issubclass(AsyncAutoDiscoveryClient, AsyncOpenAI)
