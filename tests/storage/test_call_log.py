"""The ledger of calls: what is kept, what never is, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.storage.call_log import SqliteCallLog
from gateway.types import ToolDefinition
from gateway.usage.call_log import Call, shape_of
from tests.fakes import entity


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteCallLog]:
    ledger = SqliteCallLog(tmp_path / "usage.db")
    yield ledger
    ledger.close()


def call(tool: str, **fields: object) -> Call:
    return Call(tool=tool, **({"outcome": "ok"} | fields))  # type: ignore[arg-type]


def test_no_value_and_no_name_of_a_host_is_kept(ledger: SqliteCallLog, tmp_path: Path) -> None:
    """Types of known arguments; unknown names may be data; labels are digests."""
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


def test_the_oldest_lines_go(tmp_path: Path) -> None:
    """Looked at once in a thousand calls."""
    ledger = SqliteCallLog(tmp_path / "usage.db", most=10)
    for number in range(1000):
        ledger.note(call(f"t{number}"))

    assert [f"t{number}" for number in range(990, 1000)] == [
        each["tool"] for each in ledger.lines()
    ]
    ledger.close()
