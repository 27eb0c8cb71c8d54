"""Vectors in a database, and recovery of a corrupt SQLite file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gateway.errors import StoreError
from gateway.storage import VECTORS, SqliteVectorStore, SqlVectorStore
from tests.core.storage.conftest import OpenDatabase

ROW = np.ones(4, np.float32)


def test_clearing_the_vector_store_deletes_all_vectors(open_database: OpenDatabase) -> None:
    """`gateway index --rebuild` clears the store in this way."""
    store = SqlVectorStore(open_database(VECTORS))
    store.put("m", {"a": ROW})
    before = store.count(), store.size() > 0
    store.clear()

    assert ((1, True), 0) == (before, store.count())


def test_stored_vector_of_a_wrong_size_counts_as_missing(open_database: OpenDatabase) -> None:
    """The text of such a row is embedded again, which repairs the row."""
    database = open_database(VECTORS)
    store = SqlVectorStore(database)
    store.put("m", {"a": ROW, "b": ROW})
    database.write("UPDATE vectors SET row = ? WHERE key = ?", (b"\0", "a"))

    assert ["b"] == list(store.get("m", ["a", "b"]))


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, whatever its name says" * 100)


def test_corrupt_vector_file_is_renamed_and_replaced(tmp_path: Path) -> None:
    """A broken store is never fatal, because vectors can be computed again. The corrupt file is not
    deleted.
    """
    path = tmp_path / "v.sqlite3"
    _garbage(path)
    (tmp_path / "v.sqlite3.corrupt-1").write_text("an older one", "utf-8")
    before = path.read_bytes()
    store = SqliteVectorStore(path)

    with pytest.raises(StoreError) as caught:
        store.get("m", ["a"])
    store.put("m", {"a": ROW})

    assert caught.value.rebuilt
    assert before == (tmp_path / "v.sqlite3.corrupt-2").read_bytes()
    assert 1 == store.count()
    store.close()


def test_corrupt_vector_file_that_cannot_be_renamed_is_an_error(tmp_path: Path) -> None:
    """Its folder may be read-only. Searches then use vectors in memory."""
    path = tmp_path / ("v" * 246)
    _garbage(path)

    with pytest.raises(StoreError) as caught:
        SqliteVectorStore(path).get("m", ["a"])

    assert not caught.value.rebuilt


def test_vector_store_at_an_impossible_path_is_an_error(tmp_path: Path) -> None:
    """The path is a folder, or one of its folders is a file."""
    (tmp_path / "file").write_text("", "utf-8")

    for path in (tmp_path, tmp_path / "file" / "v.sqlite3"):
        with pytest.raises(StoreError) as caught:
            SqliteVectorStore(path).put("m", {"a": ROW})

        assert not caught.value.rebuilt
