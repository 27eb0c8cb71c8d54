"""Vectors in a database, and in a SQLite file that may be broken or gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gateway.errors import StoreError
from gateway.storage import VECTORS, SqliteVectorStore, SqlVectorStore
from tests.core.storage.conftest import OpenDatabase

ROW = np.ones(4, np.float32)


def test_a_cleared_store_is_empty(open_database: OpenDatabase) -> None:
    """For `gateway index --rebuild`."""
    store = SqlVectorStore(open_database(VECTORS))
    store.put("m", {"a": ROW})
    before = store.count(), store.size() > 0
    store.clear()

    assert ((1, True), 0) == (before, store.count())


def test_a_row_of_the_wrong_size_counts_as_not_kept(open_database: OpenDatabase) -> None:
    """It is embedded again, and mended by that."""
    database = open_database(VECTORS)
    store = SqlVectorStore(database)
    store.put("m", {"a": ROW, "b": ROW})
    database.write("UPDATE vectors SET row = ? WHERE key = ?", (b"\0", "a"))

    assert ["b"] == list(store.get("m", ["a", "b"]))


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, whatever its name says" * 100)


def test_a_file_that_cannot_be_read_is_set_aside_and_begun_anew(tmp_path: Path) -> None:
    """Vectors can be made again: a broken store is never fatal, and nothing is thrown away."""
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


def test_a_corrupt_file_that_cannot_be_moved_is_unavailable(tmp_path: Path) -> None:
    """The folder may refuse; the search then goes on in memory."""
    path = tmp_path / ("v" * 246)
    _garbage(path)

    with pytest.raises(StoreError) as caught:
        SqliteVectorStore(path).get("m", ["a"])

    assert not caught.value.rebuilt


def test_a_place_where_no_file_can_be_is_unavailable(tmp_path: Path) -> None:
    """Here a folder stands where the file should be, and a file where the folder should be."""
    (tmp_path / "file").write_text("", "utf-8")

    for path in (tmp_path, tmp_path / "file" / "v.sqlite3"):
        with pytest.raises(StoreError) as caught:
            SqliteVectorStore(path).put("m", {"a": ROW})

        assert not caught.value.rebuilt
