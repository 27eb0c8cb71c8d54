"""Vectors that are embedded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.cache import (
    BLANK,
    DocumentVectors,
    MemoryVectorStore,
    QueryEmbedder,
    QueryEmbeddings,
    embed_documents,
    fit_text,
    request_vectors,
    split_into_batches,
    text_key,
)
from gateway.embed.protocol import Embedded, EmbeddingLimits, Role
from gateway.errors import EmbeddingError
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix, Vector, VectorStore
from gateway.testing import HashingEmbedder, ManualClock
from tests.fakes import BrokenStore, run_twice

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


# -- requests -----------------------------------------------------------------------------------

texts = st.lists(st.text(max_size=12), max_size=30)
limits = st.builds(
    EmbeddingLimits,
    max_texts=st.integers(1, 8),
    max_chars=st.integers(1, 20),
    max_request_chars=st.integers(1, 40),
)


async def test_fit_texts_get_rows_of_unit_length() -> None:
    """Blank and broken texts would be refused by a service; cosines are products from here on."""
    embedder = HashingEmbedder(64, transform=lambda rows: rows * np.float32(7))

    answer = await request_vectors(embedder, ["", "a\x00b"], role="query", telemetry=TELEMETRY)

    assert [("-", "a b")] == embedder.batches
    assert [1, 1] == pytest.approx(np.linalg.norm(answer.vectors, axis=1).tolist())
    assert 2 == answer.tokens


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows * np.float32("nan"),
        lambda rows: rows * 0,
        lambda rows: rows[:-1],
        lambda rows: rows[:, :-1],
    ],
    ids=["nan", "zero", "short batch", "wrong dimension"],
)
async def test_unusable_rows_are_an_error(spoil: Callable[[Matrix], Matrix]) -> None:
    """Rule 5: what cannot rank must not try."""
    with pytest.raises(EmbeddingError, match="hashing-64"):
        await request_vectors(
            HashingEmbedder(64, transform=spoil), ["a", "b"], role="query", telemetry=TELEMETRY
        )


async def test_the_indexs_length_wins_over_the_embedders_word() -> None:
    """A query must meet the vectors that there are."""
    with pytest.raises(EmbeddingError, match="expected 16 dimensions, got 64"):
        await request_vectors(
            HashingEmbedder(64), ["a"], role="query", telemetry=TELEMETRY, dimensions=16
        )


@given(texts, limits)
def test_batches_keep_to_the_limits(texts: list[str], limits: EmbeddingLimits) -> None:
    """A text that is too long by itself goes alone, and none is left out."""
    batches = list(split_into_batches(texts, limits))

    assert list(range(len(texts))) == [position for batch in batches for position in batch]
    for batch in batches:
        size = sum(len(texts[position]) for position in batch)

        assert 1 <= len(batch) <= limits.max_texts
        assert size <= limits.max_request_chars or len(batch) == 1


@given(st.text(st.characters(), max_size=40), limits)
def test_a_fit_text_is_one_that_any_service_takes(text: str, limits: EmbeddingLimits) -> None:
    """Services refuse blank texts, NUL and halves of surrogate pairs."""
    fitted = fit_text(text, limits)

    assert fitted.strip()
    assert "\0" not in fitted
    assert len(fitted.encode()) >= len(fitted)
    assert len(fitted) <= max(limits.max_chars, len(BLANK))


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
        embedder=embedder,
        cache=Cache("c", max_items=100, ttl_s=60, clock=ManualClock()) if cache is None else cache,
        share=SingleFlight[QueryEmbeddings](bridge.submit).run,
        telemetry=TELEMETRY,
    )


async def test_a_remembered_query_is_not_embedded_again(bridge: Bridge) -> None:
    """And costs no tokens."""
    embedder = HashingEmbedder(64)
    embed = queries(embedder, bridge)

    fresh = await embed(["a", "b"], dimensions=64)
    again = await embed(["b", "a"], dimensions=64)
    partly = await embed(["a", "c"], dimensions=64)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert [(2, 2), (0, 0), (1, 1)] == [
        (each.embedded, each.tokens) for each in (fresh, again, partly)
    ]
    assert np.array_equal(fresh.vectors[::-1], again.vectors)


async def test_a_request_that_comes_as_an_equal_one_ends_is_not_sent(bridge: Bridge) -> None:
    """Its caller looked before the vector was there, and found no flight after."""
    embedder = HashingEmbedder(64)
    embed = replace(queries(embedder, bridge), share=run_twice)

    answer = await embed(["a", "b"], dimensions=64)

    assert [("a", "b")] == embedder.batches
    assert (2, 64) == answer.vectors.shape


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
