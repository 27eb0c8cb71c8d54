"""Conformance of `CallLog` in every store."""

from __future__ import annotations

import pytest

from gateway.plugins.usage import (
    DAY_S,
    KEEP_QUERIES_S,
    CallLog,
    CallNote,
    SearchNote,
    SearchTally,
    ServedQuery,
    Tally,
    Task,
    call_log_of,
    label,
)
from gateway.storage import Store
from gateway.testing import ManualClock
from tests.core.storage.conformance.stores import Opener

NOW = 20_000 * DAY_S + 100


@pytest.fixture
def ledger(store: Store) -> CallLog:
    return call_log_of(store)


def call(tool: str, **fields: object) -> CallNote:
    return CallNote(tool=tool, **({"outcome": "ok"} | fields))  # type: ignore[arg-type]


def test_calls_are_counted_by_tool_day_and_tenant(ledger: CallLog, wall: ManualClock) -> None:
    ledger.note(call("a/x", tenant="acme"))
    ledger.note(call("a/x", outcome="tool_error"))
    wall.tick(2 * DAY_S)
    ledger.note(call("a/x", outcome="failed", tenant="acme"))
    ledger.note(call("b/y", tenant="acme"))

    assert [
        Tally(tool="a/x", age_s=0, succeeded=0, failed=1),
        Tally(tool="a/x", age_s=2 * DAY_S, succeeded=1, failed=1),
        Tally(tool="b/y", age_s=0, succeeded=1, failed=0),
    ] == ledger.tallies()
    assert ledger.tallies() == ledger.tallies("acme")
    assert [Tally(tool="a/x", age_s=2 * DAY_S, succeeded=0, failed=1)] == ledger.tallies("other")
    assert ledger.tallies("other") == ledger.tallies("")


def test_task_in_the_call_log_contains_its_successful_calls_in_order(
    ledger: CallLog, wall: ManualClock
) -> None:
    """Equal labels of two tenants are different tasks."""
    for note in (
        call("a", task="1"),
        call("x", task="2"),
        call("b", task="1", outcome="tool_error"),
        call("c", task="1"),
        call("d", task="1", tenant="acme"),
        call("e"),
    ):
        ledger.note(note)
    wall.tick(2 * DAY_S + 5)

    age = 2 * DAY_S
    assert [
        Task(tools=("a", "c"), age_s=age),
        Task(tools=("x",), age_s=age),
        Task(tools=("d",), age_s=age),
    ] == ledger.tasks()
    assert ledger.tasks() == ledger.tasks("acme")
    assert ledger.tasks()[:2] == ledger.tasks("other") == ledger.tasks("")


def test_forget_deletes_by_tool_by_tenant_and_everything(ledger: CallLog) -> None:
    for tool in "ab":
        for tenant in ("", "acme"):
            ledger.note(call(tool, tenant=tenant))

    assert 1 == ledger.forget(tool="a", tenant="acme")
    assert 1 == ledger.forget(tool="a")
    assert 1 == ledger.forget(tenant="acme")
    assert 1 == ledger.forget()
    assert [] == [*ledger.lines()]


def test_lines_returns_all_calls_oldest_first_without_labels(
    opened: Opener, wall: ManualClock
) -> None:
    """Calls of another process are included. Labels may be people's names."""
    first_log, second_log = call_log_of(opened()), call_log_of(opened())
    first_log.note(call("a", shape={"to": "string"}, seconds=0.5, task="secret", tenant="secret"))
    wall.tick(1)
    second_log.note(call("b", outcome="failed"))

    first, second = first_log.lines()

    assert "secret" not in str(first)
    assert first["task"] == first["tenant"] != ""
    assert {
        "at": NOW + 1,
        "tenant": "",
        "task": "",
        "tool": "b",
        "shape": {},
        "seconds": 0.0,
        "outcome": "failed",
    } == second
    assert (NOW, "a", {"to": "string"}, 0.5, "ok") == tuple(
        first[name] for name in ("at", "tool", "shape", "seconds", "outcome")
    )


def test_searches_are_counted_by_tenant(ledger: CallLog, wall: ManualClock) -> None:
    ledger.note_searches([SearchNote(found=("a", "b", "a"))])
    ledger.note_searches([SearchNote(tenant="acme")])
    wall.tick(2 * DAY_S)
    ledger.note_searches([SearchNote(found=("a",), low_confidence=True, tenant="acme")])

    plain = SearchTally(searches=1)
    acme = SearchTally(tenant=label("acme"), searches=2, no_match=1, low_confidence=1)
    assert [plain, acme] == ledger.searches() == ledger.searches("acme")
    assert [plain] == ledger.searches("") == ledger.searches("other")
    assert {"a": 2, "b": 1} == ledger.found()
    assert {"a": 1, "b": 1} == ledger.found("other")


def test_task_label_may_contain_any_text(ledger: CallLog) -> None:
    """Half of a surrogate pair must not prevent counting other searches in the same transaction."""
    ledger.note_searches([SearchNote(), SearchNote(tenant="\ud800", query="x", task="\ud800")])

    assert [1, 1] == [search.searches for search in ledger.searches()]


def test_call_belongs_to_the_latest_search_that_found_its_tool(
    ledger: CallLog, wall: ManualClock
) -> None:
    """Search and call must have the same task and tenant."""
    ledger.note(call("a", task="1"))
    wall.tick(1)
    ledger.note_searches([SearchNote(query="first", found=("a", "b"), task="1")])
    wall.tick(1)
    ledger.note_searches([SearchNote(query="second", found=("b", "c"), task="1")])
    ledger.note_searches([SearchNote(query="", found=("a",), task="1")])
    ledger.note_searches([SearchNote(query="without a task", found=("a",))])
    for note in (
        call("b", task="1"),
        call("x", task="1"),
        call("a", task="1"),
        call("c", task="1", outcome="failed"),
        call("c", task="1", tenant="acme"),
        call("a"),
        call("b", task="1"),
    ):
        ledger.note(note)

    served = [ServedQuery(query="first", tools=("a",)), ServedQuery(query="second", tools=("b",))]
    assert served == ledger.served_queries() == ledger.served_queries("acme")
    wall.tick(KEEP_QUERIES_S + 1)
    assert [] == ledger.served_queries()


def test_forget_deletes_the_related_searches(ledger: CallLog) -> None:

    def remaining() -> tuple[int, list[str], list[str]]:
        searches = sum(search.searches for search in ledger.searches())
        return searches, [*ledger.found()], [query.query for query in ledger.served_queries()]

    for tool, tenant in (("a", ""), ("b", ""), ("c", "acme")):
        search = SearchNote(query=tool, found=(tool,), task="1", tenant=tenant)
        ledger.note_searches([search])
        ledger.note(call(tool, task="1", tenant=tenant))

    counts = [remaining()]
    for chosen in ({"tool": "a"}, {"tenant": "acme"}, {}):
        ledger.forget(**chosen)
        counts.append(remaining())

    assert [
        (3, ["a", "b", "c"], ["a", "b", "c"]),
        (3, ["b", "c"], ["b", "c"]),
        (2, ["b"], ["b"]),
        (0, [], []),
    ] == counts
