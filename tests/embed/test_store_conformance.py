"""What every `VectorStore` promises, wherever the vectors lie."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gateway.catalog.sqlite import SqliteVectorStore
from gateway.embed.cached import MemoryVectorStore, VectorStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    made: VectorStore = (
        MemoryVectorStore()
        if request.param == "memory"
        else SqliteVectorStore(tmp_path / "deep" / "v.sqlite3")
    )
    yield made
    made.close()


def row(*numbers: float) -> np.ndarray:
    return np.asarray(numbers, dtype=np.float32)


def test_what_was_put_comes_back_as_it_was(store: VectorStore) -> None:
    """Bit by bit: a rounded vector would rank another way."""
    store.put("m", {"a": row(0.1, -2), "b": row(3)})

    found = store.get("m", ["a", "b", "c"])

    assert {"a", "b"} == found.keys()
    assert np.array_equal(row(0.1, -2), found["a"])
    assert np.float32 == found["a"].dtype


def test_models_do_not_see_each_others_vectors(store: VectorStore) -> None:
    """The same text means something else to another model."""
    store.put("m", {"a": row(1)})
    store.put("n", {"a": row(2)})

    assert [2] == store.get("n", ["a"])["a"].tolist()
    assert {} == store.get("o", ["a"])


def test_a_newer_vector_takes_the_place(store: VectorStore) -> None:
    """A damaged one is mended by putting it again."""
    store.put("m", {"a": row(1)})
    store.put("m", {"a": row(2, 3)})

    assert [2, 3] == store.get("m", ["a"])["a"].tolist()


def test_a_kept_vector_does_not_change_with_the_callers(store: VectorStore) -> None:
    """The caller may reuse its array."""
    mine = row(1, 2)
    store.put("m", {"a": mine})
    mine[0] = 9

    assert [1, 2] == store.get("m", ["a"])["a"].tolist()


def test_nothing_asked_and_nothing_put_is_fine(store: VectorStore) -> None:
    """An empty catalog has no vectors."""
    store.put("m", {})

    assert {} == store.get("m", [])


def test_thousands_of_keys_are_asked_at_once(store: VectorStore) -> None:
    """SQLite has a limit on variables; callers need not know it."""
    store.put("m", {str(number): row(number) for number in range(1203)})

    assert 1203 == len(store.get("m", [str(number) for number in range(2000)]))


async def test_it_is_used_from_worker_threads(store: VectorStore) -> None:
    """Each call may come from another thread."""
    await asyncio.to_thread(store.put, "m", {"a": row(1)})

    assert ["a"] == list(await asyncio.to_thread(store.get, "m", ["a"]))


def test_closing_twice_is_harmless(store: VectorStore) -> None:
    """Closing runs on every way out."""
    store.put("m", {"a": row(1)})

    store.close()
    store.close()
