"""Tests of all implementations of `VectorStore`."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.runtime.vectors import VectorStore
from gateway.storage import Store


@pytest.fixture
def vectors(store: Store) -> VectorStore:
    """Return the part of the store for vectors."""
    return store.vectors


def row(*numbers: float) -> np.ndarray:
    """Return *numbers* as a vector."""
    return np.asarray(numbers, dtype=np.float32)


def test_stored_vectors_are_read_without_any_rounding(vectors: VectorStore) -> None:
    """A rounded vector could change the ranking."""
    vectors.put("m", {"a": row(0.1, -2), "b": row(3)})

    stored = vectors.get("m", ["a", "b", "c"])

    assert {"a", "b"} == stored.keys()
    assert np.array_equal(row(0.1, -2), stored["a"])
    assert np.float32 == stored["a"].dtype


def test_each_model_has_its_own_vectors(vectors: VectorStore) -> None:
    """Each model has another vector for the same text."""
    vectors.put("m", {"a": row(1)})
    vectors.put("n", {"a": row(2)})

    assert [2] == vectors.get("n", ["a"])["a"].tolist()
    assert {} == vectors.get("o", ["a"])


def test_vector_store_accepts_thousands_of_keys(vectors: VectorStore) -> None:
    """SQLite limits the number of variables in a statement."""
    vectors.put("m", {str(number): row(number) for number in range(1203)})

    assert 1203 == len(vectors.get("m", [str(number) for number in range(2000)]))
