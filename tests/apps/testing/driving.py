"""Helpers that run the real openai SDK against a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from gateway.testing import HashingEmbedder, Policy, ScriptedModel

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello?"}]


@contextmanager
def serve_blocking(
    policy: Policy,
    *,
    chunk_chars: int = 7,
    embedder: HashingEmbedder | None = None,
    retries: int = 0,
) -> Iterator[tuple[ScriptedModel, OpenAI]]:
    """Yield a scripted model and a blocking client of it."""
    with (
        ScriptedModel(policy, chunk_chars=chunk_chars, embedder=embedder) as model,
        OpenAI(base_url=model.base_url, api_key="test", max_retries=retries) as client,
    ):
        yield model, client


@asynccontextmanager
async def serve_async(policy: Policy) -> AsyncIterator[tuple[ScriptedModel, AsyncOpenAI]]:
    """Yield a scripted model and an asynchronous client of it."""
    with ScriptedModel(policy) as model:
        async with AsyncOpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client:
            yield model, client


def rejoin(chunks: Iterable[ChatCompletionChunk]) -> dict[str, Any]:
    """Join chunks to the whole answer without the SDK, as the format's documentation says."""
    choices: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for chunk in chunks:
        raw: dict[str, Any] = chunk.to_dict()
        whole |= {key: value for key, value in raw.items() if key != "choices"}
        for piece in raw["choices"]:
            _merge(choices, piece)
    listed = [choices[index] for index in sorted(choices)]
    return whole | {"object": "chat.completion", "choices": listed}


def _merge(choices: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    choice = choices.setdefault(piece["index"], {"message": {}})
    message = choice["message"]
    for fragment in piece["delta"].pop("tool_calls", []):
        _merge_call(message.setdefault("tool_calls", []), fragment)
    text = piece["delta"].pop("content", None)
    message |= piece["delta"]
    message["content"] = (
        message.get("content") if text is None else (message.get("content") or "") + text
    )
    choice |= {key: value for key, value in piece.items() if key != "delta"}


def _merge_call(calls: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    index = fragment.pop("index")
    if index == len(calls):
        calls.append(fragment)
    else:
        calls[index]["function"]["arguments"] += fragment["function"]["arguments"]
