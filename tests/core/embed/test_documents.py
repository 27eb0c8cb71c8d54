"""Vectors of documents, each embedded once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.embed import (
    DocumentVectors,
    Embedded,
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
    """Does not say how long its vectors are."""

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


async def test_equal_texts_are_embedded_once() -> None:
    """Two servers often offer the same tool."""
    embedder = HashingEmbedder(64)

    found = await documents(["a", "b", "a"], embedder)

    assert (2, 2, 2) == (embedder.texts, found.embedded, len(found.rows))
    assert 2 == found.tokens


async def test_stored_texts_are_not_embedded_again() -> None:
    """The cost of a build is the cost of what is new; vectors of another model are not used."""
    embedder, store = HashingEmbedder(64), MemoryVectorStore()
    await documents(["a", "b"], embedder, store=store)
    again = await documents(["a", "b", "c"], embedder, store=store)
    other = await documents(["a"], HashingEmbedder(64, model_id="other"), store=store)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert (1, 1) == (again.embedded, other.embedded)


@pytest.mark.parametrize(
    "row", [np.full(64, np.nan), np.zeros(64), np.ones(63)], ids=["nan", "zeros", "other length"]
)
async def test_a_damaged_stored_row_is_embedded_again(row: np.ndarray) -> None:
    """One NaN in the matrix would spoil every search."""
    store = MemoryVectorStore()
    store.put("hashing-64", {text_key("a"): row.astype(np.float32)})

    found = await documents(["a"], HashingEmbedder(64), store=store)

    assert 1 == found.embedded
    assert np.isfinite(found.rows[text_key("a")]).all()


async def test_a_model_that_changed_under_its_name_keeps_one_length() -> None:
    """Rows of two lengths make no matrix: the commonest length stays, the others are redone."""
    store = MemoryVectorStore()
    for text, length in (("a", 64), ("b", 64), ("c", 63)):
        store.put("nameless", {text_key(text): np.ones(length, np.float32)})

    found = await documents(["a", "b", "c"], Nameless(64), store=store)

    assert 1 == found.embedded
    assert {64} == {row.shape[0] for row in found.rows.values()}


async def test_a_failing_embedder_leaves_what_there_is_with_a_diagnostic() -> None:
    """Rule 5: an index without all its vectors still serves."""
    store, embedder = MemoryVectorStore(), Narrow(64)
    await documents(["a"], embedder, store=store)
    embedder.fail_with = RuntimeError("secret")

    found = await documents(["a", "b", "c", "d"], embedder, store=store)

    assert [text_key("a")] == list(found.rows)
    assert 2 == embedder.calls
    assert [("embedding_failed", "RuntimeError")] == [
        (note.code, note.detail) for note in found.diagnostics
    ]


async def test_a_broken_store_costs_the_persistence_alone() -> None:
    """Vectors can be made again."""
    found = await documents(["a"], HashingEmbedder(64), store=BrokenStore())

    assert 1 == len(found.rows)
    assert ["store_unavailable", "store_unavailable"] == [n.code for n in found.diagnostics]
    assert ["the disk is gone", "the disk is full"] == [n.detail for n in found.diagnostics]


class Endless(HashingEmbedder):
    """Takes the first request and never answers."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.began = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.began.set()
        await asyncio.Event().wait()
        raise AssertionError(texts, role)


async def test_a_request_for_documents_that_hangs_has_failed() -> None:
    """Else everybody after it would wait for it too."""
    found = await embed_documents(
        ["a"], embedder=Endless(64), store=MemoryVectorStore(), telemetry=TELEMETRY, timeout_s=0.001
    )

    assert found.failed
    assert ["a request for documents took longer than 0.001 s"] == [
        note.detail for note in found.diagnostics
    ]


async def test_progress_is_reported_before_the_first_request_and_after_each() -> None:
    """A first index of thousands takes a while."""
    seen: list[tuple[int, int]] = []

    await embed_documents(
        ["a", "b", "c"],
        embedder=Narrow(64),
        store=MemoryVectorStore(),
        telemetry=TELEMETRY,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert [(0, 3), (2, 3), (3, 3)] == seen


# -- several processes over one store -----------------------------------------------------------

TEXTS = [f"Text number {number}." for number in range(600)]
