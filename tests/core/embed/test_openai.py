"""OpenAI's embeddings API against an HTTP server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI, OpenAI

from gateway import OpenAIEmbedder
from gateway.embed import EmbeddingLimits
from gateway.errors import EmbeddingError
from gateway.testing import Faults, ScriptedModel, script


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script()) as model:
        yield model


@pytest.fixture
def client(model: ScriptedModel) -> Iterator[OpenAI]:
    with OpenAI(base_url=model.base_url, api_key="test") as client:
        yield client


async def test_prefixes_are_added_to_queries_and_documents(
    model: ScriptedModel, client: OpenAI
) -> None:
    embedder = OpenAIEmbedder(client, model="m", query_prefix="q: ", document_prefix="d: ")

    await embedder.embed(["a"], role="query")
    await embedder.embed(["a"], role="document")

    assert [("q: a",), ("d: a",)] == model.embedding_requests


async def test_model_id_contains_every_setting_that_changes_a_vector(client: OpenAI) -> None:
    """The id is part of the key of stored vectors."""
    plain = OpenAIEmbedder(client, model="m")
    others = [
        OpenAIEmbedder(client, model="n"),
        OpenAIEmbedder(client, model="m", dimensions=8),
        OpenAIEmbedder(client, model="m", query_prefix="q"),
        OpenAIEmbedder(client, model="m", document_prefix="d"),
    ]

    assert 5 == len({embedder.info.model_id for embedder in (plain, *others)})
    limits = EmbeddingLimits(max_texts=3)
    assert limits == OpenAIEmbedder(client, model="m", limits=limits).info.limits


async def test_dimensions_are_sent_to_the_service(model: ScriptedModel) -> None:
    async with AsyncOpenAI(base_url=model.base_url, api_key="test") as client:
        answer = await OpenAIEmbedder(client, model="m", dimensions=16).embed(["a"], role="query")

    assert (1, 16) == answer.vectors.shape


@pytest.mark.parametrize(("status", "times", "requests"), [(503, 1, 2), (401, 9, 1)])
async def test_only_the_client_retries_requests(
    model: ScriptedModel, client: OpenAI, status: int, times: int, requests: int
) -> None:
    """Retries at two levels would multiply."""
    model.fail(Faults(status=status, times=times), "embeddings")

    with pytest.raises(APIStatusError) if requests == 1 else nullcontext():
        await OpenAIEmbedder(client, model="m").embed(["a"], role="query")

    assert requests == len(model.embedding_requests)


async def test_answer_with_a_missing_vector_raises_an_error(
    model: ScriptedModel, client: OpenAI
) -> None:
    model.embedder.transform = lambda rows: rows[:-1]

    with pytest.raises(EmbeddingError, match="1 of 2"):
        await OpenAIEmbedder(client, model="m").embed(["a", "b"], role="query")


class OddClient(OpenAI):
    """A client whose service returns *rows* without usage, as some servers do."""

    rows: tuple[tuple[int, list[float]], ...] = ()

    @property
    def embeddings(self) -> Any:  # a stand-in
        data = [SimpleNamespace(index=index, embedding=row) for index, row in self.rows]
        return SimpleNamespace(create=lambda **_given: SimpleNamespace(data=data))


async def test_vectors_are_sorted_by_index_and_tokens_are_none_without_usage() -> None:
    """Vectors of different lengths raise an error."""
    with OddClient(base_url="http://127.0.0.1:1/v1", api_key="test") as client:
        embedder = OpenAIEmbedder(client, model="m")
        client.rows = ((1, [0.0, 1.0]), (0, [1.0, 0.0]))
        answer = await embedder.embed(["a", "b"], role="query")
        client.rows = ((0, [0.0, 1.0]), (1, [1.0]))
        with pytest.raises(EmbeddingError, match="different lengths"):
            await embedder.embed(["a", "b"], role="query")

    assert [[1, 0], [0, 1]] == answer.vectors.tolist()
    assert answer.tokens is None
