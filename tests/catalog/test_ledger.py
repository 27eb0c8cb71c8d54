"""The ledger of calls: what is kept, what never is, and what comes out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.catalog.ledger import DAY_S, Call, Seen, SqliteLedger, Tally, shape_of
from gateway.errors import StoreError
from gateway.testing import ManualClock
from gateway.types import ToolDefinition
from tests.fakes import entity

NOW = 20_000 * DAY_S + 100


@pytest.fixture
def clock() -> ManualClock:
    clock = ManualClock()
    clock.tick(NOW - clock())
    return clock


@pytest.fixture
def ledger(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "usage.db", wall=clock)
    yield ledger
    ledger.close()


def call(tool: str, **said: object) -> Call:
    return Call(tool=tool, **({"outcome": "ok"} | said))  # type: ignore[arg-type]


def test_calls_are_counted_by_tool_day_and_tenant(ledger: SqliteLedger, clock: ManualClock) -> None:
    """A tenant's own ones, or everybody's; both kinds of failure are failures."""
    ledger.note(call("a/x", tenant="acme"))
    ledger.note(call("a/x", outcome="tool_error"))
    clock.tick(2 * DAY_S)
    ledger.note(call("a/x", outcome="failed", tenant="acme"))
    ledger.note(call("b/y", tenant="acme"))

    assert [
        Tally(tool="a/x", age_s=0, succeeded=0, failed=1),
        Tally(tool="a/x", age_s=2 * DAY_S, succeeded=1, failed=1),
        Tally(tool="b/y", age_s=0, succeeded=1, failed=0),
    ] == ledger.tallies()
    assert [(0, 0, 1), (2 * DAY_S, 1, 0), (0, 1, 0)] == [
        (each.age_s, each.succeeded, each.failed) for each in ledger.tallies("acme")
    ]
    assert [] == ledger.tallies("other")


def test_a_task_is_its_calls_that_succeeded_in_order(ledger: SqliteLedger) -> None:
    """Tasks of two tenants are two; a call without a task is none."""
    for each in (
        call("a", task="1"),
        call("x", task="2"),
        call("b", task="1", outcome="tool_error"),
        call("c", task="1"),
        call("d", task="1", tenant="acme"),
        call("e"),
    ):
        ledger.note(each)

    assert [("a", "c"), ("x",), ("d",)] == [each.tools for each in ledger.tasks()]
    assert [("d",)] == [each.tools for each in ledger.tasks("acme")]


def test_no_value_and_no_name_of_a_host_is_kept(ledger: SqliteLedger, tmp_path: Path) -> None:
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


def test_shapes_of_odd_arguments() -> None:
    """A tool without a schema knows no names."""
    tool = entity(ToolDefinition(name="x"))

    assert {"+2": "unknown"} == shape_of(tool, {"a": 1.5, "b": {}})
    assert {} == shape_of(tool, {})


def test_what_searches_returned_is_noted_with_its_pairs(
    ledger: SqliteLedger, clock: ManualClock
) -> None:
    """Days are counted apart; a pair has no order."""
    ledger.show(["b", "a"])
    clock.tick(DAY_S)
    ledger.show(["a", "b", "c"], ["a"])

    last = NOW + DAY_S
    assert {
        "a": Seen(count=3, days=2, last_s=last),
        "b": Seen(count=2, days=2, last_s=last),
        "c": Seen(count=1, days=1, last_s=last),
    } == ledger.shown()
    pairs = ledger.pairs()
    assert {frozenset("ab"): 2, frozenset("ac"): 1, frozenset("bc"): 1} == {
        pair: seen.count for pair, seen in pairs.items()
    }
    assert last == pairs[frozenset("ab")].last_s


def test_it_forgets_what_it_is_told_to(ledger: SqliteLedger) -> None:
    """A tool, a tenant, both, everything; what searches returned belongs to no tenant."""
    for tool in "ab":
        for tenant in ("", "acme"):
            ledger.note(call(tool, tenant=tenant))
    ledger.show(["a", "b"])

    assert 1 == ledger.forget(tool="a", tenant="acme")
    assert {"a", "b"} == set(ledger.shown())
    assert 1 == ledger.forget(tool="a")
    assert {"b"} == set(ledger.shown())
    assert {} == ledger.pairs()
    assert 1 == ledger.forget(tenant="acme")
    assert 1 == ledger.forget()
    assert ([], {}) == ([*ledger.lines()], ledger.shown())


def test_the_oldest_lines_go(tmp_path: Path) -> None:
    """Looked at once in a thousand calls."""
    ledger = SqliteLedger(tmp_path / "usage.db", most=10)
    for number in range(1000):
        ledger.note(call(f"t{number}"))

    assert [f"t{number}" for number in range(990, 1000)] == [
        each["tool"] for each in ledger.lines()
    ]
    ledger.close()


def test_two_processes_may_share_the_file(tmp_path: Path) -> None:
    """What one notes the other reads."""
    one, other = (SqliteLedger(tmp_path / "usage.db") for _ in range(2))
    one.note(call("a"))
    other.note(call("b"))

    assert ["a", "b"] == [each["tool"] for each in one.lines()]
    one.close()
    other.close()


def test_a_file_that_cannot_be_read_is_an_error_that_says_so(tmp_path: Path) -> None:
    """A folder in its place."""
    (tmp_path / "usage.db").mkdir()

    with pytest.raises(StoreError, match=r"usage ledger 'usage\.db'"):
        SqliteLedger(tmp_path / "usage.db").note(call("a"))


def test_it_is_plain_sqlite(ledger: SqliteLedger, tmp_path: Path) -> None:
    """WAL, so that readers wait for nobody."""
    ledger.note(call("a"))

    with sqlite3.connect(tmp_path / "usage.db") as connection:
        assert ("wal",) == connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
