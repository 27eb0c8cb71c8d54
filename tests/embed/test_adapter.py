"""Requests to an embedder: texts made fit, split, traced, counted, checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed.cache import BLANK, fit_text, request_vectors, split_into_batches
from gateway.embed.protocol import EmbeddingLimits
from gateway.errors import EmbeddingError
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix
from gateway.testing import HashingEmbedder

TELEMETRY = Telemetry()
texts = st.lists(st.text(max_size=12), max_size=30)
limits = st.builds(
    EmbeddingLimits,
    max_texts=st.integers(1, 8),
    max_chars=st.integers(1, 20),
    max_request_chars=st.integers(1, 40),
)


async def test_rows_come_back_at_unit_length() -> None:
    """Cosines are products from here on."""
    embedder = HashingEmbedder(64, transform=lambda rows: rows * np.float32(7))

    answer = await request_vectors(embedder, ["a", "b"], role="query", telemetry=TELEMETRY)

    assert [1, 1] == pytest.approx(np.linalg.norm(answer.vectors, axis=1).tolist())
    assert 2 == answer.tokens


async def test_the_embedder_sees_fit_texts() -> None:
    """Blank and broken ones would be refused by a service."""
    embedder = HashingEmbedder(64)

    await request_vectors(embedder, ["", "a\x00b"], role="query", telemetry=TELEMETRY)

    assert [("-", "a b")] == embedder.batches


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
