"""Contents and retention of the call log."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.plugins.usage import (
    DAY_S,
    KEEP_COUNTS_DAYS,
    KEEP_QUERIES_S,
    USAGE,
    CallNote,
    SearchNote,
    SqlCallLog,
    shape_of,
)
from gateway.storage import Database, SqliteDatabase
from gateway.testing import ManualClock
from gateway.types import ToolDefinition
from tests.core.storage.conftest import OpenDatabase
from tests.fakes import entity


@pytest.fixture
def database(open_database: OpenDatabase) -> Database:
    return open_database(USAGE)


def call(tool: str, **fields: object) -> CallNote:
    return CallNote(tool=tool, **({"outcome": "ok"} | fields))  # type: ignore[arg-type]


def test_call_log_contains_no_argument_values_and_no_labels(tmp_path: Path) -> None:
    """Names outside the schema may be data. Labels are stored as digests."""
    tool = entity(
        ToolDefinition(
            name="send",
            input_schema={"properties": {"to": {}, "size": {}, "cc": {}, "all": {}, "at": {}}},
        )
    )
    arguments = {
        "to": "secret@example.org",
        "size": 3,
        "cc": ["secret"],
        "all": True,
        "at": None,
        "secret": 1.5,
    }

    ledger = SqlCallLog(SqliteDatabase(tmp_path / "usage.db", USAGE))
    shape = shape_of(tool, arguments)
    ledger.note(call("a/send", shape=shape, task="secret task", tenant="secret tenant"))

    assert {
        "to": "string",
        "size": "integer",
        "cc": "array",
        "all": "boolean",
        "at": "null",
        "+1": "unknown",
    } == shape
    (line,) = ledger.lines()
    assert shape == line["shape"]
    ledger.close()
    assert b"secret" not in (tmp_path / "usage.db").read_bytes()


def test_oldest_calls_are_deleted_above_the_limit(database: Database) -> None:
    """The limit is checked once in a thousand calls."""
    ledger = SqlCallLog(database, most=10)
    for number in range(1000):
        ledger.note(call(f"t{number}"))

    assert [f"t{number}" for number in range(990, 1000)] == [
        line["tool"] for line in ledger.lines()
    ]
    ledger.close()


def test_forgotten_and_expired_texts_are_erased_from_the_file(tmp_path: Path) -> None:
    """Free pages of the file must not contain them either, because users wrote the texts."""
    path, wall = tmp_path / "usage.db", ManualClock()
    ledger = SqlCallLog(SqliteDatabase(path, USAGE), wall=wall)

    def stored_texts() -> tuple[bool, ...]:
        ledger.close()
        return tuple(text in path.read_bytes() for text in (b"first text", b"second text"))

    ledger.note_searches([SearchNote(query="first text", found=("a",))])
    before = stored_texts()
    wall.tick(KEEP_QUERIES_S + 1)
    ledger.note_searches([SearchNote(query="second text", found=("a",))])
    later = stored_texts()
    ledger.forget()

    assert [(True, False), (False, True), (False, False)] == [before, later, stored_texts()]


def test_search_counts_expire_after_the_retention_time(database: Database) -> None:
    wall = ManualClock()
    ledger = SqlCallLog(database, wall=wall)
    ledger.note_searches([SearchNote(found=("a",))])
    wall.tick((KEEP_COUNTS_DAYS + 1) * DAY_S)
    ledger.note_searches([SearchNote(found=("b",))])

    assert (1, ["b"]) == (ledger.searches()[0].searches, [*ledger.found()])
    ledger.close()


def test_oldest_query_texts_are_deleted_above_the_limit(database: Database) -> None:
    ledger = SqlCallLog(database, most_queries=3)
    for number in range(5):
        ledger.note_searches([SearchNote(query=f"q{number}", found=("a",), task="1")])
        ledger.note(call("a", task="1"))

    assert ["q2", "q3", "q4"] == [query.query for query in ledger.served_queries()]
    ledger.close()
