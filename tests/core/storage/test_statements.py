"""Statements that mean the same in every database."""

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
    database = open_database(SUMS)
    database.write(ADD, *NAMES)
    return database


def test_a_write_counts_the_rows_that_it_changed(database: Database) -> None:
    assert 2 == database.write("UPDATE sums SET total = ? WHERE name = ?", (5, "a"), (5, "B"))
    assert 3 == database.write("DELETE FROM sums", ())
    database.write(ADD)
    assert [] == database.rows("SELECT name FROM sums")


def test_a_list_is_a_value(database: Database) -> None:
    """Also where values have names. Texts are sorted by their characters."""
    by_place = "SELECT name FROM sums WHERE total > ? AND name = ANY(?) ORDER BY name"
    by_name = "SELECT name FROM sums WHERE name = ANY(:names) OR total = :total ORDER BY name"

    assert [("B",), ("é",)] == database.rows(by_place, (1, ["é", "B", "a", "none"]))
    assert [("B",), ("a",)] == database.rows(by_name, {"names": ["a"], "total": 2})
    assert [] == database.rows(by_place, (0, []))


def test_functions_have_one_name(database: Database) -> None:
    """A value may be NULL; a number is cut towards 0."""
    query = """SELECT trunc((:now - total) / :day), strpos(name, :part) FROM sums
        WHERE CAST(:name AS text) IS NULL OR name = :name ORDER BY name"""
    values = {"now": 0.5, "day": 1.0, "part": "é"}

    assert [(-1, 0), (0, 0), (-2, 1)] == database.rows(query, values | {"name": None})
    assert [(0, 0)] == database.rows(query, values | {"name": "a"})


def test_an_inserted_row_has_the_next_id(database: Database) -> None:
    with database.transaction() as session:
        ids = [session.insert("INSERT INTO notes (text) VALUES (?)", (text,)) for text in "ab"]

    assert [1, 2] == ids


def test_rows_come_one_by_one_in_any_number(database: Database) -> None:
    texts = [(str(number),) for number in range(2_500)]
    database.write("INSERT INTO notes (text) VALUES (?)", *texts)

    with database.reading() as session:
        found = [*session.each("SELECT text FROM notes WHERE id > ? ORDER BY id", (0,))]

    assert texts == found


def test_what_is_held_is_held_until_the_end(open_database: OpenDatabase) -> None:
    """Many read, add and write at once, and nothing is lost."""
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


def test_a_statement_that_fails_undoes_its_transaction(database: Database) -> None:
    def half(session: Session) -> None:
        session.write("DELETE FROM sums", ())
        session.rows("SELECT nothing FROM sums")

    with pytest.raises(StoreError, match="nothing"), database.transaction() as session:
        half(session)

    assert 3 == len(database.rows("SELECT name FROM sums"))


def test_a_table_has_a_size(database: Database) -> None:
    assert database.is_made()
    assert database.size("sums") > 0
