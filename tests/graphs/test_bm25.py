"""The arithmetic of BM25F, against the formula written out."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.lexical.bm25 import Scale, summed

SCALE = Scale(fields=("a", "b"), weights=(2.0, 1.0), k1=1.2, b=0.5)


def means(lengths: np.ndarray) -> tuple[float, ...]:
    return SCALE.means(summed(lengths))


def test_fields_are_summed_before_saturation() -> None:
    """Of three postings, the first stands in both fields."""
    lengths = np.array([[4, 1], [0, 1]])
    counts = SCALE.pack(np.array([2, 1, 1]), np.array([0, 0, 1]))
    counts[0] += SCALE.pack(np.array([1]), np.array([1]))[0]

    weight, field = SCALE.weigh(counts, lengths[[0, 0, 1]], means(lengths))

    # No field is longer or shorter than its mean, so nothing is discounted.
    expected = [2 * 2 + 1, 1 * 2, 1 * 1]
    assert ((4.0, 1.0), [0, 0, 1]) == (means(lengths), field.tolist())
    assert weight.tolist() == pytest.approx([f * 2.2 / (f + 1.2) for f in expected])


def test_a_mean_moves_in_steps() -> None:
    """One document among many changes nobody else's weights; the error is small."""
    many = np.full((1000, 2), 10)
    one = np.array([[17, 3]])

    assert means(many) == means(np.concatenate([many, one]))
    for length in (1, 7, 100, 12345):
        assert means(np.array([[length, 0]])) == pytest.approx((length, 1.0), rel=0.011)


def test_more_repetitions_than_fit_count_as_many_as_fit() -> None:
    """A text that says one word a million times is no other field's text."""
    scale = Scale(fields=tuple("abcdefg"), weights=(1.0,) * 7, k1=1.2, b=0.5)

    assert [511, 511 << 9] == scale.pack(np.array([10**6, 10**6]), np.array([0, 1])).tolist()


def test_no_words_weigh_nothing() -> None:
    """An empty catalog is a catalog."""
    none = np.zeros((0, 2), dtype=np.int64)

    weights = SCALE.weigh(np.zeros(0, dtype=np.uint64), none, means(none))

    assert [0, 0] == [len(each) for each in weights]
