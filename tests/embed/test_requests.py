"""One request to an embedder: made fit, traced, counted, checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gateway.embed.requests import request
from gateway.errors import EmbeddingError
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix
from gateway.testing import HashingEmbedder

TELEMETRY = Telemetry()


async def test_rows_come_back_at_unit_length() -> None:
    """Cosines are products from here on."""
    embedder = HashingEmbedder(64, transform=lambda rows: rows * np.float32(7))

    answer = await request(embedder, ["a", "b"], role="query", telemetry=TELEMETRY)

    assert [1, 1] == pytest.approx(np.linalg.norm(answer.vectors, axis=1).tolist())
    assert 2 == answer.tokens


async def test_the_embedder_sees_fit_texts() -> None:
    """Blank and broken ones would be refused by a service."""
    embedder = HashingEmbedder(64)

    await request(embedder, ["", "a\x00b"], role="query", telemetry=TELEMETRY)

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
        await request(
            HashingEmbedder(64, transform=spoil), ["a", "b"], role="query", telemetry=TELEMETRY
        )


async def test_the_indexs_length_wins_over_the_embedders_word() -> None:
    """A query must meet the vectors that there are."""
    with pytest.raises(EmbeddingError, match="expected 16 dimensions, got 64"):
        await request(HashingEmbedder(64), ["a"], role="query", telemetry=TELEMETRY, dimensions=16)
