"""One SQLite file: who waits for whom, and what becomes of a file that is broken, old or new."""

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
    return tmp_path / "deep" / "notes.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(path, NOTES, busy_s=0.05)
    yield database
    database.close()


@contextlib.contextmanager
def plainly(path: Path) -> Iterator[sqlite3.Connection]:
    """Look into a file without our code."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def add(database: SqliteDatabase, *texts: str) -> None:
    with database.transaction() as connection:
        connection.executemany("INSERT INTO notes (text) VALUES (?)", [(text,) for text in texts])


def texts(database: SqliteDatabase) -> list[str]:
    with database.reading() as connection:
        return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY rowid")]


def test_a_reader_waits_for_no_writer(database: SqliteDatabase) -> None:
    """It reads what was there before, while another thread is still writing."""
    add(database, "old")

    with ThreadPoolExecutor(1) as pool, database.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('new')")
        seen = pool.submit(texts, database).result(timeout=60)

    assert ["old"] == seen
    assert ["old", "new"] == texts(database)


def test_all_of_a_transaction_is_written_or_nothing(database: SqliteDatabase) -> None:
    """Whatever went wrong in it."""

    def half() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES ('half')")
            raise KeyError

    with pytest.raises(KeyError):
        half()

    add(database, "whole")
    assert ["whole"] == texts(database)


def test_closing_leaves_no_connection_open(database: SqliteDatabase) -> None:
    """A reader that is at work goes on; it is closed when it is done."""
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


def test_who_holds_the_file_too_long_is_told_of(database: SqliteDatabase, path: Path) -> None:
    """Another process, here; reading goes on meanwhile."""
    add(database, "a")

    with plainly(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"notes 'notes\.db': database is locked") as caught:
            add(database, "b")
        assert ["a"] == texts(database)

    assert not caught.value.rebuilt
    add(database, "c")
    assert ["a", "c"] == texts(database)


def test_a_file_that_another_process_is_making_is_waited_for(
    database: SqliteDatabase, path: Path
) -> None:
    """And given up, if that takes too long."""
    path.parent.mkdir()
    with plainly(path) as other:
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


def test_many_that_make_a_file_at_once_make_one(path: Path) -> None:
    """Each over connections of its own, as processes have them."""
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


def test_an_older_file_is_brought_up_and_keeps_what_it_has(
    database: SqliteDatabase, path: Path
) -> None:
    """Also by one who only reads."""
    add(database, "old")
    database.close()

    newer = SqliteDatabase(path, TAGGED)
    with newer.reading() as connection:
        assert [("old", None)] == connection.execute("SELECT text, tag FROM notes").fetchall()
    newer.close()
    with plainly(path) as connection:
        assert (2,) == connection.execute("PRAGMA user_version").fetchone()


def test_a_step_that_fails_leaves_the_file_as_it_was(database: SqliteDatabase, path: Path) -> None:
    """Half a step would be a version that nobody knows."""
    add(database, "old")
    broken = Schema(
        name="notes", what="notes", steps=(*NOTES.steps, ("CREATE TABLE more (x)", "NONSENSE"))
    )

    with pytest.raises(StoreError, match="syntax error"):
        add(SqliteDatabase(path, broken), "new")

    assert ["old"] == texts(database)
    with plainly(path) as connection:
        assert (1,) == connection.execute("PRAGMA user_version").fetchone()
        assert [("notes",)] == connection.execute("SELECT name FROM sqlite_master").fetchall()


@pytest.mark.parametrize("use", [texts, lambda database: add(database, "no")])
def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path, use: object) -> None:
    """It is nobody's fault, and its data are somebody's."""
    newer = SqliteDatabase(path, TAGGED)
    add(newer, "new")
    newer.close()
    before = path.read_bytes()

    older = SqliteDatabase(path, NOTES)
    with pytest.raises(StoreError, match=r"newer version .* update this one") as caught:
        use(older)  # type: ignore[operator]  # either of two functions
    older.close()

    assert not caught.value.rebuilt
    assert before == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


def test_a_file_that_was_taken_away_is_begun_anew(database: SqliteDatabase, path: Path) -> None:
    """Whoever deletes it wants it empty, not written where nobody can read it."""
    add(database, "gone")
    texts(database)
    for each in path.parent.iterdir():
        each.unlink()

    assert [] == texts(database)
    add(database, "here")
    assert ["here"] == texts(database)
    with plainly(path) as connection:
        assert [("here",)] == connection.execute("SELECT text FROM notes").fetchall()


def test_what_another_process_put_in_the_place_of_a_corrupt_file_stays(
    database: SqliteDatabase, path: Path, tmp_path: Path
) -> None:
    """Both met the corrupt one; only one may set it aside."""
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database " * 1000)
    add(database, "old")

    other = SqliteDatabase(path, NOTES)

    def late() -> None:
        with database.reading(), plainly(garbage) as connection:
            path.rename(path.with_name("aside"))
            add(other, "theirs")
            connection.execute("SELECT * FROM sqlite_master")

    with pytest.raises(StoreError, match="another process") as caught:
        late()

    assert caught.value.rebuilt
    assert ["theirs"] == texts(database)
    other.close()


def test_a_corrupt_file_goes_with_what_was_not_yet_written_into_it(
    database: SqliteDatabase, path: Path
) -> None:
    """Somebody may still mend it by hand."""
    add(database, "a")
    with plainly(path) as other:
        other.execute("PRAGMA wal_checkpoint")
        database.close()
        with path.open("r+b") as file:
            file.write(b"?" * 8192)
        wal = path.with_name("notes.db-wal").read_bytes()

        with pytest.raises(StoreError, match=r"was corrupt: set aside as 'notes\.db\.corrupt-1'"):
            texts(database)

    assert wal
    assert wal == path.with_name("notes.db.corrupt-1-wal").read_bytes()
    assert [] == texts(database)
