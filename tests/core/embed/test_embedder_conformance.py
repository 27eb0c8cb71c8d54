"""Conformance of every `Embedder`."""

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


async def test_embedder_has_an_id_and_limits(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.info.model_id
    assert embedder.info.provider
    assert embedder.info.limits.max_texts >= 1


async def test_vectors_are_usable_and_in_the_order_of_the_texts(embedder: Embedder) -> None:
    together = (await embedder.embed(TEXTS, role="document")).vectors
    alone = np.concatenate(
        [(await embedder.embed([text], role="document")).vectors for text in TEXTS]
    )

    assert "" == usable(together, count=len(TEXTS), dimensions=embedder.info.dimensions)
    assert np.float32 == together.dtype
    assert np.allclose(together, alone, atol=1e-4)


async def test_equal_texts_have_equal_vectors(embedder: Embedder) -> None:
    """Vectors can be cached only if equal texts have equal vectors."""
    first = await embedder.embed(TEXTS[:1], role="query")
    second = await embedder.embed(TEXTS[:1], role="query")

    assert np.allclose(first.vectors, second.vectors, atol=1e-6)


async def test_embedder_returns_the_token_count_or_none(embedder: Embedder) -> None:
    """An unknown number is None, not an estimate."""
    answer = await embedder.embed(TEXTS, role="document")

    assert answer.tokens is None or answer.tokens >= len(TEXTS) - 1
