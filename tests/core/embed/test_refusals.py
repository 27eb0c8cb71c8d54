"""Texts that an embedding service refuses. Only these texts get no vector."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from openai import OpenAI

from gateway import OpenAIEmbedder
from gateway.embed import DocumentVectors, MemoryVectorStore, embed_documents, text_key
from gateway.runtime.telemetry import Telemetry
from gateway.testing import Faults, ScriptedModel, script
from tests.conftest import PATIENT, OpenGateway
from tests.fakes import codes, names, tool

TEXTS = [f"text {number}." for number in range(1000)]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """HTTP server with OpenAI's API that refuses given texts."""
    with ScriptedModel(script()) as model:
        yield model


@pytest.fixture
def embedder(model: ScriptedModel) -> Iterator[OpenAIEmbedder]:
    with OpenAI(base_url=model.base_url, api_key="test", max_retries=0) as client:
        yield OpenAIEmbedder(client, model="m")


async def documents(texts: list[str], embedder: OpenAIEmbedder) -> DocumentVectors:
    return await embed_documents(
        texts, embedder=embedder, store=MemoryVectorStore(), telemetry=Telemetry()
    )


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
@pytest.mark.parametrize("place", [0, -1])
async def test_refused_text_is_found_by_halving(
    model: ScriptedModel, embedder: OpenAIEmbedder, count: int, place: int
) -> None:
    texts = TEXTS[:count]
    model.refuse(texts[place])

    vectors = await documents(texts, embedder)

    assert [texts[place]] == list(vectors.refused)
    assert "BadRequestError" in vectors.refused[texts[place]]
    assert {text_key(text) for text in texts} - {text_key(texts[place])} == vectors.rows.keys()
    assert count == vectors.embedded
    assert (False, ()) == (vectors.failed, vectors.diagnostics)
    # One first request, two for each halving, and one test with a plain text for a single text.
    bound = 1 + 2 * math.ceil(math.log2(count)) + (count == 1)
    assert bound >= len(model.embedding_requests)


@pytest.mark.parametrize("places", [range(20), range(500, 540), range(0, 1000, 77)])
async def test_texts_that_are_not_refused_get_vectors(
    model: ScriptedModel, embedder: OpenAIEmbedder, places: range
) -> None:
    """The refused texts are next to each other, like the tools of one server, or spread."""
    refused = {TEXTS[place] for place in places}
    for text in refused:
        model.refuse(text)

    vectors = await documents(TEXTS, embedder)

    assert refused == vectors.refused.keys()
    assert len(TEXTS) - len(refused) == len(vectors.rows)


async def test_service_that_refuses_everything_gets_four_requests(
    model: ScriptedModel, embedder: OpenAIEmbedder
) -> None:
    """This happens, for example, after a wrong model name. The build fails and is repeated
    later.
    """
    model.refuse("")

    vectors = await documents(TEXTS, embedder)

    assert (True, {}, {}) == (vectors.failed, vectors.rows, vectors.refused)
    assert ["BadRequestError"] == [note.detail for note in vectors.diagnostics]
    assert 4 == len(model.embedding_requests)


async def test_service_that_refuses_every_text_gets_a_bounded_number_of_requests(
    model: ScriptedModel, embedder: OpenAIEmbedder
) -> None:
    model.refuse("text")

    vectors = await documents(TEXTS, embedder)

    assert set(TEXTS) == vectors.refused.keys()
    assert len(model.embedding_requests) < 600


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_batch_is_not_halved_after_a_failure_that_is_not_a_refusal(
    model: ScriptedModel, embedder: OpenAIEmbedder, status: int
) -> None:
    model.fail(Faults(status=status, times=9), "embeddings")

    vectors = await documents(TEXTS, embedder)

    assert (True, {}) == (vectors.failed, vectors.refused)
    assert 1 == len(model.embedding_requests)


async def test_batch_that_is_too_large_is_halved(
    model: ScriptedModel, embedder: OpenAIEmbedder
) -> None:
    """Some servers allow fewer texts than OpenAI, and answer with status 413."""
    model.fail(Faults(status=413, times=2), "embeddings")

    vectors = await documents(TEXTS, embedder)

    assert (len(TEXTS), {}) == (len(vectors.rows), vectors.refused)


async def test_tool_whose_text_is_refused_is_reported_and_others_are_found_by_vectors(
    open_gateway: OpenGateway, model: ScriptedModel, embedder: OpenAIEmbedder
) -> None:
    """The result is not marked as degraded, because another request would change nothing."""
    catalog = [tool(f"send_{letter}", f"Send {letter} by mail.") for letter in "abcdefgh"]
    model.refuse("Send c by mail")
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=PATIENT)

    result = await gateway.search("send d by mail", limit=8)
    report = await gateway.report()
    count = len(model.embedding_requests)
    again = await gateway.search("send d by mail", limit=8)
    issues = await gateway.issues()

    (note,) = [note for note in report.diagnostics if note.code == "text_refused"]
    reason = "the embedding service refused it: BadRequestError"
    assert f"shelf/send_c: {reason}" == note.detail
    assert any(note.detail in issue.detail for issue in issues)
    assert (7, "hybrid", False) == (report.vectors, result.mode, result.degraded)
    assert "send_d" == names(result)[0]
    assert not {"embedding_failed", "vectors_incomplete", "text_refused"} & {*codes(result)}
    assert again.cached
    assert count == len(model.embedding_requests)
