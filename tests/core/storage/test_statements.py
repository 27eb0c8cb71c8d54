"""SQL statements with the same meaning in every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.errors import StoreError
from gateway.storage import Database, Schema, Session
from tests.core.storage.conftest import OpenDatabase

SUMS = Schema(
    name="sums",
    what="sums",
    steps=(
        (
            "CREATE TABLE sums (name TEXT PRIMARY KEY, total INTEGER NOT NULL) WITHOUT ROWID",
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
        ),
    ),
    postgres={
        1: ('CREATE TABLE sums (name text COLLATE "C" PRIMARY KEY, total integer NOT NULL)',),
        2: (
            """CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            text text NOT NULL)""",
        ),
    },
)
ADD = """INSERT INTO sums VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET total = sums.total + excluded.total"""
NAMES = [("a", 1), ("B", 2), ("é", 3)]


@pytest.fixture
def database(open_database: OpenDatabase) -> Database:
    """Return a database of each kind, with the tables of this module."""
    database = open_database(SUMS)
    database.write(ADD, *NAMES)
    return database


def test_write_returns_the_number_of_changed_rows(database: Database) -> None:
    assert 2 == database.write("UPDATE sums SET total = ? WHERE name = ?", (5, "a"), (5, "B"))
    assert 3 == database.write("DELETE FROM sums", ())
    database.write(ADD)
    assert [] == database.rows("SELECT name FROM sums")


def test_statement_with_any_accepts_a_list_as_value(database: Database) -> None:
    """Values of a statement may be positional or named. Texts are sorted by code points."""
    by_place = "SELECT name FROM sums WHERE total > ? AND name = ANY(?) ORDER BY name"
    by_name = "SELECT name FROM sums WHERE name = ANY(:names) OR total = :total ORDER BY name"

    assert [("B",), ("é",)] == database.rows(by_place, (1, ["é", "B", "a", "none"]))
    assert [("B",), ("a",)] == database.rows(by_name, {"names": ["a"], "total": 2})
    assert [] == database.rows(by_place, (0, []))


def test_sql_functions_have_the_same_meaning_in_every_database(database: Database) -> None:
    """Values may be NULL. Numbers are truncated towards 0."""
    query = """SELECT trunc((:now - total) / :day), strpos(name, :part) FROM sums
        WHERE CAST(:name AS text) IS NULL OR name = :name ORDER BY name"""
    values = {"now": 0.5, "day": 1.0, "part": "é"}

    assert [(-1, 0), (0, 0), (-2, 1)] == database.rows(query, values | {"name": None})
    assert [(0, 0)] == database.rows(query, values | {"name": "a"})


def test_insert_returns_the_next_id(database: Database) -> None:
    with database.transaction() as session:
        ids = [session.insert("INSERT INTO notes (text) VALUES (?)", (text,)) for text in "ab"]

    assert [1, 2] == ids


def test_each_yields_any_number_of_rows(database: Database) -> None:
    texts = [(str(number),) for number in range(2_500)]
    database.write("INSERT INTO notes (text) VALUES (?)", *texts)

    with database.reading() as session:
        rows = [*session.each("SELECT text FROM notes WHERE id > ? ORDER BY id", (0,))]

    assert texts == rows


def test_session_hold_locks_a_name_until_the_transaction_ends(open_database: OpenDatabase) -> None:
    """So several threads can read a number, add to it and write it at once without losing data."""
    databases = [open_database(SUMS) for _ in range(2)]
    databases[0].write(ADD, ("a", 0))

    def grow(at: int) -> None:
        with databases[at % 2].transaction() as session:
            session.skip_flush()
            session.hold("a", "b")
            ((total,),) = session.rows("SELECT total FROM sums WHERE name = ?", ("a",))
            session.write("UPDATE sums SET total = ? WHERE name = ?", (total + 1, "a"))

    with ThreadPoolExecutor(4) as threads:
        assert [None] * 20 == [*threads.map(grow, range(20))]

    assert [(20,)] == databases[1].rows("SELECT total FROM sums")


def test_failed_statement_rolls_back_its_transaction(database: Database) -> None:
    def half(session: Session) -> None:
        session.write("DELETE FROM sums", ())
        session.rows("SELECT nothing FROM sums")

    with pytest.raises(StoreError, match="nothing"), database.transaction() as session:
        half(session)

    assert 3 == len(database.rows("SELECT name FROM sums"))


def test_database_returns_a_positive_size_for_a_table(database: Database) -> None:
    assert database.is_made()
    assert database.size("sums") > 0
