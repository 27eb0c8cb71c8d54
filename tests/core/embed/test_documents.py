"""Vectors of documents: stored vectors, failures and progress."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gateway.embed import (
    DocumentVectors,
    Embedded,
    EmbeddingLimits,
    MemoryVectorStore,
    Role,
    embed_documents,
    text_key,
)
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.testing import HashingEmbedder
from tests.fakes import BrokenStore, Narrow

TELEMETRY = Telemetry()
WAIT_S = 60


class Nameless(HashingEmbedder):
    """An embedder that does not state the length of its vectors."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.info = replace(self.info, dimensions=None, model_id="nameless")


async def documents(
    texts: list[str],
    embedder: HashingEmbedder,
    *,
    store: VectorStore | None = None,
    dimensions: int | None = None,
) -> DocumentVectors:
    return await embed_documents(
        texts,
        embedder=embedder,
        store=MemoryVectorStore() if store is None else store,
        telemetry=TELEMETRY,
        dimensions=dimensions,
    )


async def test_equal_documents_are_embedded_once() -> None:
    """Several servers often offer the same tool."""
    embedder = HashingEmbedder(64)

    vectors = await documents(["a", "b", "a"], embedder)

    assert (2, 2, 2) == (embedder.texts, vectors.embedded, len(vectors.rows))
    assert 2 == vectors.tokens


async def test_stopped_work_sends_one_request_and_continues_later() -> None:
    """Otherwise frequent stops would prevent progress."""
    embedder, store = HashingEmbedder(64), MemoryVectorStore()
    embedder.info = replace(embedder.info, limits=EmbeddingLimits(max_texts=2))
    embed = partial(
        embed_documents, ["a", "b", "c"], embedder=embedder, store=store, telemetry=TELEMETRY
    )

    stopped, rest = await embed(stop=lambda: True), await embed()

    assert [("a", "b"), ("c",)] == embedder.batches
    assert ((2, ()), 1) == ((len(stopped.rows), stopped.diagnostics), rest.embedded)


async def test_documents_with_stored_vectors_are_not_embedded_again() -> None:
    """Stored vectors of another model are not used."""
    embedder, store = HashingEmbedder(64), MemoryVectorStore()
    await documents(["a", "b"], embedder, store=store)
    again = await documents(["a", "b", "c"], embedder, store=store)
    other = await documents(["a"], HashingEmbedder(64, model_id="other"), store=store)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert (1, 1) == (again.embedded, other.embedded)


@pytest.mark.parametrize(
    "row", [np.full(64, np.nan), np.zeros(64), np.ones(63)], ids=["nan", "zeros", "other length"]
)
async def test_damaged_stored_vector_is_embedded_again(row: np.ndarray) -> None:
    """One NaN in the matrix of vectors would affect every search."""
    store = MemoryVectorStore()
    store.put("hashing-64", {text_key("a"): row.astype(np.float32)})

    vectors = await documents(["a"], HashingEmbedder(64), store=store)

    assert 1 == vectors.embedded
    assert np.isfinite(vectors.rows[text_key("a")]).all()


async def test_stored_vectors_of_the_rarer_length_are_embedded_again() -> None:
    """Lengths differ if the model changed without its name. All vectors of a matrix need one
    length.
    """
    store = MemoryVectorStore()
    for text, length in (("a", 64), ("b", 64), ("c", 63)):
        store.put("nameless", {text_key(text): np.ones(length, np.float32)})

    vectors = await documents(["a", "b", "c"], Nameless(64), store=store)

    assert 1 == vectors.embedded
    assert {64} == {row.shape[0] for row in vectors.rows.values()}


async def test_stored_vectors_are_returned_with_a_diagnostic_if_the_embedder_fails() -> None:
    store, embedder = MemoryVectorStore(), Narrow(64)
    await documents(["a"], embedder, store=store)
    embedder.fail_with = RuntimeError("secret")

    vectors = await documents(["a", "b", "c", "d"], embedder, store=store)

    assert [text_key("a")] == list(vectors.rows)
    assert 2 == embedder.calls
    assert [("embedding_failed", "RuntimeError")] == [
        (note.code, note.detail) for note in vectors.diagnostics
    ]


async def test_vectors_stay_in_memory_if_the_vector_store_fails() -> None:
    vectors = await documents(["a"], HashingEmbedder(64), store=BrokenStore())

    assert 1 == len(vectors.rows)
    assert ["store_unavailable", "store_unavailable"] == [n.code for n in vectors.diagnostics]
    assert ["the disk is gone", "the disk is full"] == [n.detail for n in vectors.diagnostics]


class Endless(HashingEmbedder):
    """An embedder that never answers."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.began = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError(texts, role)


async def test_embedding_documents_fails_if_the_embedder_does_not_answer() -> None:
    vectors = await embed_documents(
        ["a"], embedder=Endless(64), store=MemoryVectorStore(), telemetry=TELEMETRY, timeout_s=0.001
    )

    assert vectors.failed
    assert ["a request for documents took longer than 0.001 s"] == [
        note.detail for note in vectors.diagnostics
    ]


async def test_progress_is_reported_before_the_first_request_and_after_each() -> None:
    reports: list[tuple[int, int]] = []

    await embed_documents(
        ["a", "b", "c"],
        embedder=Narrow(64),
        store=MemoryVectorStore(),
        telemetry=TELEMETRY,
        progress=lambda done, total: reports.append((done, total)),
    )

    assert [(0, 3), (2, 3), (3, 3)] == reports


# -- several processes over one store -----------------------------------------------------------

TEXTS = [f"Text number {number}." for number in range(600)]
