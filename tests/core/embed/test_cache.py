"""Requests to embedders, and the cache for queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed import (
    BLANK,
    EmbeddingLimits,
    QueryEmbedder,
    QueryEmbeddings,
    fit_text,
    request_vectors,
    split_into_batches,
)
from gateway.errors import EmbeddingError
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix, Vector
from gateway.testing import HashingEmbedder, ManualClock
from tests.fakes import Narrow, run_twice

TELEMETRY = Telemetry()


# -- requests -----------------------------------------------------------------------------------

texts = st.lists(st.text(max_size=12), max_size=30)
limits = st.builds(
    EmbeddingLimits,
    max_texts=st.integers(1, 8),
    max_chars=st.integers(1, 20),
    max_request_chars=st.integers(1, 40),
)


async def test_request_fits_the_texts_and_returns_vectors_of_unit_length() -> None:
    """Services refuse blank and broken texts. Cosines are computed as dot products of unit
    vectors.
    """
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
async def test_request_raises_an_error_if_the_embedder_returns_unusable_vectors(
    spoil: Callable[[Matrix], Matrix],
) -> None:
    with pytest.raises(EmbeddingError, match="hashing-64"):
        await request_vectors(
            HashingEmbedder(64, transform=spoil), ["a", "b"], role="query", telemetry=TELEMETRY
        )


async def test_vectors_must_have_the_required_length_whatever_the_embedder_states() -> None:
    """A query vector must have the length of the vectors in the index."""
    with pytest.raises(EmbeddingError, match="expected 16 dimensions, got 64"):
        await request_vectors(
            HashingEmbedder(64), ["a"], role="query", telemetry=TELEMETRY, dimensions=16
        )


@given(texts, limits)
def test_batches_are_within_the_limits(texts: list[str], limits: EmbeddingLimits) -> None:
    """A text that is too long by itself gets its own batch."""
    batches = list(split_into_batches(texts, limits))

    assert list(range(len(texts))) == [position for batch in batches for position in batch]
    for batch in batches:
        size = sum(len(texts[position]) for position in batch)

        assert 1 <= len(batch) <= limits.max_texts
        assert size <= limits.max_request_chars or len(batch) == 1


@given(st.text(st.characters(), max_size=40), limits)
def test_fitted_text_is_valid_for_any_embedding_service(text: str, limits: EmbeddingLimits) -> None:
    """Services refuse blank texts, NUL and unpaired surrogates."""
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


async def test_cached_query_is_not_embedded_again(bridge: Bridge) -> None:
    embedder = HashingEmbedder(64)
    embed = queries(embedder, bridge)

    fresh = await embed(["a", "b"], dimensions=64)
    again = await embed(["b", "a"], dimensions=64)
    partly = await embed(["a", "c"], dimensions=64)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert [(2, 2), (0, 0), (1, 1)] == [
        (answer.embedded, answer.tokens) for answer in (fresh, again, partly)
    ]
    assert np.array_equal(fresh.vectors[::-1], again.vectors)


async def test_query_embedded_by_an_equal_request_is_taken_from_the_cache(bridge: Bridge) -> None:
    """The query was not in the cache when the caller looked, but the equal request stored it
    then.
    """
    embedder = HashingEmbedder(64)
    embed = replace(queries(embedder, bridge), share=run_twice)

    answer = await embed(["a", "b"], dimensions=64)

    assert [("a", "b")] == embedder.batches
    assert (2, 64) == answer.vectors.shape


async def test_queries_are_split_by_the_limits_of_the_embedder(bridge: Bridge) -> None:
    embedder = Narrow(64)

    answer = await queries(embedder, bridge)(["a", "b", "c"], dimensions=64)

    assert [("a", "b"), ("c",)] == embedder.batches
    assert (3, 64) == answer.vectors.shape


async def test_cached_vector_of_another_length_is_embedded_again(bridge: Bridge) -> None:
    """The model may change without its name while its vectors are cached."""
    cache = Cache[Vector]("c", max_items=9, ttl_s=60)
    cache.put(("hashing-64", "a"), np.ones(5, np.float32))

    answer = await queries(HashingEmbedder(64), bridge, cache)(["a"], dimensions=64)

    assert (1, 64) == answer.vectors.shape


async def test_failed_query_embedding_is_not_cached(bridge: Bridge) -> None:
    embedder = HashingEmbedder(64, fail_with=RuntimeError("down"))
    embed = queries(embedder, bridge)

    with pytest.raises(RuntimeError):
        await embed(["a"], dimensions=64)
    embedder.fail_with = None

    assert (1, 64) == (await embed(["a"], dimensions=64)).vectors.shape
