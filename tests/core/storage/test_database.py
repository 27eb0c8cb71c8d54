"""SQLite files: concurrent access, migration, and recovery of corrupt files."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.storage import Schema, SqliteDatabase

NOTES = Schema(name="notes", what="notes", steps=(("CREATE TABLE notes (text TEXT NOT NULL)",),))
TAGGED = Schema(
    name="notes",
    what="notes",
    steps=(*NOTES.steps, ("ALTER TABLE notes ADD COLUMN tag TEXT", "CREATE TABLE tags (tag TEXT)")),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a database file that does not exist yet."""
    return tmp_path / "deep" / "notes.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    """Yield a database with one table of texts."""
    database = SqliteDatabase(path, NOTES, busy_s=0.05)
    yield database
    database.close()


@contextlib.contextmanager
def open_directly(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file *path* by sqlite3, without the code under test."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def add(database: SqliteDatabase, *texts: str) -> None:
    """Add *texts* to the table."""
    with database.transaction() as connection:
        connection.executemany("INSERT INTO notes (text) VALUES (?)", [(text,) for text in texts])


def texts(database: SqliteDatabase) -> list[str]:
    """Return all texts in the table."""
    with database.reading() as connection:
        return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY rowid")]


def test_reader_does_not_wait_for_a_writer(database: SqliteDatabase) -> None:
    """The reader sees the old state while another thread is writing."""
    add(database, "old")

    with ThreadPoolExecutor(1) as pool, database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('new')")
        old_texts = pool.submit(texts, database).result(timeout=60)

    assert ["old"] == old_texts
    assert ["old", "new"] == texts(database)


def test_failed_transaction_writes_nothing(database: SqliteDatabase) -> None:

    def half() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES ('half')")
            raise KeyError

    with pytest.raises(KeyError):
        half()

    add(database, "whole")
    assert ["whole"] == texts(database)


def test_close_leaves_no_connection_open(database: SqliteDatabase) -> None:
    """A reader that is still running continues, and its connection is closed when it ends."""
    with database.transaction() as writer:
        pass
    with database.reading() as resting:
        pass
    with database.reading(), database.reading() as reader:
        database.close()
        reader.execute("SELECT 1")

    for connection in (writer, resting, reader):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
    assert [] == texts(database)


def test_lock_timeout_error_names_the_database_file(database: SqliteDatabase, path: Path) -> None:
    """Another process holds the lock. Reads continue meanwhile."""
    add(database, "a")

    with open_directly(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"notes 'notes\.db': database is locked") as caught:
            add(database, "b")
        assert ["a"] == texts(database)

    assert not caught.value.rebuilt
    add(database, "c")
    assert ["a", "c"] == texts(database)


def test_open_waits_for_a_process_that_creates_the_file(
    database: SqliteDatabase, path: Path
) -> None:
    """If the other process takes too long, an error is raised."""
    path.parent.mkdir()
    with open_directly(path) as other:
        other.execute("CREATE TABLE others (x)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="locked"):
            add(database, "a")
        other.execute("COMMIT")
        other.execute("BEGIN")
        other.execute("SELECT * FROM others").fetchall()
        with pytest.raises(StoreError, match="locked"):
            add(database, "a")

    add(database, "a")
    assert ["a"] == texts(database)


def test_concurrent_creation_makes_one_database_file(path: Path) -> None:
    """Several threads create the file at once. Each has its own connections, as a process has."""
    meeting = threading.Barrier(8)

    def made(name: str) -> None:
        database = SqliteDatabase(path, TAGGED)
        meeting.wait(timeout=60)
        add(database, name)
        database.close()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(made, str(number)) for number in range(8)]:
            done.result()

    database = SqliteDatabase(path, TAGGED)
    assert list("01234567") == sorted(texts(database))
    database.close()


def test_older_file_is_migrated_and_keeps_its_data(database: SqliteDatabase, path: Path) -> None:
    """Even a reader migrates the file."""
    add(database, "old")
    database.close()

    newer = SqliteDatabase(path, TAGGED)
    with newer.reading() as connection:
        assert [("old", None)] == connection.execute("SELECT text, tag FROM notes").fetchall()
    newer.close()
    with open_directly(path) as connection:
        assert (2,) == connection.execute("PRAGMA user_version").fetchone()


def test_failed_migration_leaves_the_file_unchanged(database: SqliteDatabase, path: Path) -> None:
    """After half a step, the version of the file would be undefined."""
    add(database, "old")
    broken = Schema(
        name="notes", what="notes", steps=(*NOTES.steps, ("CREATE TABLE more (x)", "NONSENSE"))
    )

    with pytest.raises(StoreError, match="syntax error"):
        add(SqliteDatabase(path, broken), "new")

    assert ["old"] == texts(database)
    with open_directly(path) as connection:
        assert (1,) == connection.execute("PRAGMA user_version").fetchone()
        assert [("notes",)] == connection.execute("SELECT name FROM sqlite_master").fetchall()


@pytest.mark.parametrize("use", [texts, lambda database: add(database, "no")])
def test_newer_file_is_refused_and_left_unchanged(path: Path, use: object) -> None:
    newer = SqliteDatabase(path, TAGGED)
    add(newer, "new")
    newer.close()
    before = path.read_bytes()

    older = SqliteDatabase(path, NOTES)
    with pytest.raises(StoreError, match=r"newer version .* update this package") as caught:
        use(older)  # type: ignore[operator]  # either of two functions
    older.close()

    assert not caught.value.rebuilt
    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


def test_deleted_file_is_created_again(database: SqliteDatabase, path: Path) -> None:
    """Otherwise data would be written into the deleted file."""
    add(database, "gone")
    texts(database)
    for file in path.parent.iterdir():
        file.unlink()

    assert [] == texts(database)
    add(database, "here")
    assert ["here"] == texts(database)
    with open_directly(path) as connection:
        assert [("here",)] == connection.execute("SELECT text FROM notes").fetchall()


def test_file_that_replaced_a_corrupt_database_is_not_renamed(
    database: SqliteDatabase, path: Path, tmp_path: Path
) -> None:
    """Two processes find the corrupt file at once. The slower one must not rename the new file."""
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database " * 1000)
    add(database, "old")

    other = SqliteDatabase(path, NOTES)

    def late() -> None:
        with database.reading(), open_directly(garbage) as connection:
            path.rename(path.with_name("aside"))
            add(other, "theirs")
            connection.execute("SELECT * FROM sqlite_master")

    with pytest.raises(StoreError, match="another process") as caught:
        late()

    assert caught.value.rebuilt
    assert ["theirs"] == texts(database)
    other.close()


def test_corrupt_database_is_renamed_with_its_write_ahead_log(
    database: SqliteDatabase, path: Path
) -> None:
    """A person may still recover data from it."""
    add(database, "a")
    with open_directly(path) as other:
        other.execute("PRAGMA wal_checkpoint")
        database.close()
        with path.open("r+b") as file:
            file.write(b"?" * 8192)
        wal = path.with_name("notes.db-wal").read_bytes()

        with pytest.raises(
            StoreError, match=r"was corrupt: it was renamed to 'notes\.db\.corrupt-1'"
        ):
            texts(database)

    assert wal
    assert wal == path.with_name("notes.db.corrupt-1-wal").read_bytes()
    assert [] == texts(database)
