"""What every `Embedder` promises, whoever computes the vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest
from openai import AsyncOpenAI, OpenAI

from gateway import OpenAIEmbedder
from gateway.embed import Embedder
from gateway.runtime.vectors import usable
from gateway.testing import HashingEmbedder, ScriptedModel, script

TEXTS = ("send an e-mail", "weather of a city", "счёт", "天气")


@pytest.fixture(params=["hashing", "openai", "openai-async", "openai-short"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "hashing":
        yield HashingEmbedder()
        return
    with ScriptedModel(script()) as model:
        url = model.base_url
        match request.param:
            case "openai":
                with OpenAI(base_url=url, api_key="test") as blocking:
                    yield OpenAIEmbedder(blocking, model="m")
            case "openai-short":
                with OpenAI(base_url=url, api_key="test") as blocking:
                    yield OpenAIEmbedder(blocking, model="m", dimensions=128)
            case _:
                async with AsyncOpenAI(base_url=url, api_key="test") as client:
                    yield OpenAIEmbedder(client, model="m")


async def test_it_is_an_embedder_with_a_name_and_limits(embedder: Embedder) -> None:
    """Vectors are kept by the name, requests cut by the limits."""
    assert isinstance(embedder, Embedder)
    assert embedder.info.model_id
    assert embedder.info.provider
    assert embedder.info.limits.max_texts >= 1


async def test_each_text_gets_a_usable_row_in_order(embedder: Embedder) -> None:
    """A row that belongs to another text would rank the wrong tool."""
    together = (await embedder.embed(TEXTS, role="document")).vectors
    alone = np.concatenate(
        [(await embedder.embed([text], role="document")).vectors for text in TEXTS]
    )

    assert "" == usable(together, count=len(TEXTS), dimensions=embedder.info.dimensions)
    assert np.float32 == together.dtype
    assert np.allclose(together, alone, atol=1e-4)


async def test_the_same_text_gives_the_same_row(embedder: Embedder) -> None:
    """What is remembered must be what would be computed."""
    first = await embedder.embed(TEXTS[:1], role="query")
    second = await embedder.embed(TEXTS[:1], role="query")

    assert np.allclose(first.vectors, second.vectors, atol=1e-6)


async def test_tokens_are_counted_or_unknown(embedder: Embedder) -> None:
    """Rule 10: a made-up number is worse than none."""
    answer = await embedder.embed(TEXTS, role="document")

    assert answer.tokens is None or answer.tokens >= len(TEXTS) - 1
