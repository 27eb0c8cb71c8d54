"""What every `VectorStore` promises, wherever the vectors lie."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.runtime.vectors import VectorStore
from gateway.storage import Store


@pytest.fixture
def vectors(store: Store) -> VectorStore:
    return store.vectors


def row(*numbers: float) -> np.ndarray:
    return np.asarray(numbers, dtype=np.float32)


def test_what_was_put_comes_back_as_it_was(vectors: VectorStore) -> None:
    """Bit by bit: a rounded vector would rank another way."""
    vectors.put("m", {"a": row(0.1, -2), "b": row(3)})

    found = vectors.get("m", ["a", "b", "c"])

    assert {"a", "b"} == found.keys()
    assert np.array_equal(row(0.1, -2), found["a"])
    assert np.float32 == found["a"].dtype


def test_models_do_not_see_each_others_vectors(vectors: VectorStore) -> None:
    """The same text means something else to another model."""
    vectors.put("m", {"a": row(1)})
    vectors.put("n", {"a": row(2)})

    assert [2] == vectors.get("n", ["a"])["a"].tolist()
    assert {} == vectors.get("o", ["a"])


def test_thousands_of_keys_are_asked_at_once(vectors: VectorStore) -> None:
    """SQLite has a limit on variables; callers need not know it."""
    vectors.put("m", {str(number): row(number) for number in range(1203)})

    assert 1203 == len(vectors.get("m", [str(number) for number in range(2000)]))
