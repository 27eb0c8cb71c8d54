"""Vectors that are embedded once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from gateway.embed.cache import (
    DocumentVectors,
    MemoryVectorStore,
    QueryEmbedder,
    QueryEmbeddings,
    embed_documents,
    text_key,
)
from gateway.embed.protocol import Embedded, EmbeddingLimits, Role
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Vector, VectorStore
from gateway.testing import HashingEmbedder, ManualClock
from tests.fakes import BrokenStore

TELEMETRY = Telemetry()


class Narrow(HashingEmbedder):
    """Takes few texts a request."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.info = replace(self.info, limits=EmbeddingLimits(max_texts=2))


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
    """The cost of a build is the cost of what is new."""
    embedder, store = HashingEmbedder(64), MemoryVectorStore()
    await documents(["a", "b"], embedder, store=store)
    again = await documents(["a", "b", "c"], embedder, store=store)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert 1 == again.embedded


async def test_a_vector_must_be_as_long_as_those_it_stands_beside() -> None:
    """What was stored by another version of a model is embedded anew."""
    store = MemoryVectorStore()
    store.put(HashingEmbedder(64).info.model_id, {text_key("a"): np.ones(32, np.float32)})

    found = await documents(["a"], HashingEmbedder(64), store=store, dimensions=64)

    assert [64] == [len(row) for row in found.rows.values()]


async def test_vectors_of_another_model_are_not_used() -> None:
    """A key holds the model's id."""
    store = MemoryVectorStore()
    await documents(["a"], HashingEmbedder(64), store=store)
    other = HashingEmbedder(64, model_id="other")

    found = await documents(["a"], other, store=store)

    assert 1 == found.embedded


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

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
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


async def test_progress_is_told_after_each_request() -> None:
    """A first index of thousands takes a while."""
    told: list[tuple[int, int]] = []

    await embed_documents(
        ["a", "b", "c"],
        embedder=Narrow(64),
        store=MemoryVectorStore(),
        telemetry=TELEMETRY,
        progress=lambda done, total: told.append((done, total)),
    )

    assert [(2, 3), (3, 3)] == told


# -- queries -------------------------------------------------------------------------------------


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


def queries(
    embedder: HashingEmbedder, bridge: Bridge, cache: Cache[Vector] | None = None
) -> QueryEmbedder:
    return QueryEmbedder(
        embedder,
        cache=Cache("c", max_items=100, ttl_s=60, clock=ManualClock()) if cache is None else cache,
        flights=SingleFlight[QueryEmbeddings](bridge.submit),
        telemetry=TELEMETRY,
    )


async def test_a_remembered_query_is_not_embedded_again(bridge: Bridge) -> None:
    """And costs no tokens."""
    embedder = HashingEmbedder(64)
    embed = queries(embedder, bridge)

    fresh = await embed(["a", "b"], dimensions=64)
    kept = await embed(["b", "a"], dimensions=64)
    partly = await embed(["a", "c"], dimensions=64)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert [(2, 2), (0, 0), (1, 1)] == [
        (each.embedded, each.tokens) for each in (fresh, kept, partly)
    ]
    assert np.array_equal(fresh.vectors[::-1], kept.vectors)


async def test_queries_keep_to_the_embedders_limits(bridge: Bridge) -> None:
    """A service that takes few texts a request must not lose the long requests."""
    embedder = Narrow(64)

    answer = await queries(embedder, bridge)(["a", "b", "c"], dimensions=64)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert (3, 64) == answer.vectors.shape


async def test_a_remembered_row_of_another_length_is_embedded_again(bridge: Bridge) -> None:
    """A model may change under its name while its vectors are remembered."""
    cache = Cache[Vector]("c", max_items=9, ttl_s=60)
    cache.put(("hashing-64", "a"), np.ones(5, np.float32))

    answer = await queries(HashingEmbedder(64), bridge, cache)(["a"], dimensions=64)

    assert (1, 64) == answer.vectors.shape


async def test_a_failed_request_is_not_remembered(bridge: Bridge) -> None:
    """Rule 5: no latch."""
    embedder = HashingEmbedder(64, fail_with=RuntimeError("down"))
    embed = queries(embedder, bridge)

    with pytest.raises(RuntimeError):
        await embed(["a"], dimensions=64)
    embedder.fail_with = None

    assert (1, 64) == (await embed(["a"], dimensions=64)).vectors.shape
