"""What every `VectorStore` promises, wherever the vectors lie."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from gateway.runtime.vectors import VectorStore
from gateway.storage.protocol import Store


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


def test_a_newer_vector_takes_the_place(vectors: VectorStore) -> None:
    """A damaged one is mended by putting it again."""
    vectors.put("m", {"a": row(1)})
    vectors.put("m", {"a": row(2, 3)})

    assert [2, 3] == vectors.get("m", ["a"])["a"].tolist()


def test_a_kept_vector_does_not_change_with_the_callers(vectors: VectorStore) -> None:
    """The caller may reuse its array."""
    mine = row(1, 2)
    vectors.put("m", {"a": mine})
    mine[0] = 9

    assert [1, 2] == vectors.get("m", ["a"])["a"].tolist()


def test_nothing_asked_and_nothing_put_is_fine(vectors: VectorStore) -> None:
    """An empty catalog has no vectors."""
    vectors.put("m", {})

    assert {} == vectors.get("m", [])


def test_thousands_of_keys_are_asked_at_once(vectors: VectorStore) -> None:
    """SQLite has a limit on variables; callers need not know it."""
    vectors.put("m", {str(number): row(number) for number in range(1203)})

    assert 1203 == len(vectors.get("m", [str(number) for number in range(2000)]))


async def test_it_is_used_from_worker_threads(vectors: VectorStore) -> None:
    """Each call may come from another thread."""
    await asyncio.to_thread(vectors.put, "m", {"a": row(1)})

    assert ["a"] == list(await asyncio.to_thread(vectors.get, "m", ["a"]))


def test_closing_twice_is_harmless(vectors: VectorStore) -> None:
    """Closing runs on every way out."""
    vectors.put("m", {"a": row(1)})

    vectors.close()
    vectors.close()
