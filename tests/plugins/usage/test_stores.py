"""What every `CallLog` promises."""

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
    """A tenant's own and those without one, or everybody's; both kinds of failure are failures."""
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


def test_a_task_is_its_calls_that_succeeded_in_order(ledger: CallLog, wall: ManualClock) -> None:
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
    wall.tick(2 * DAY_S + 5)

    age = 2 * DAY_S
    assert [
        Task(tools=("a", "c"), age_s=age),
        Task(tools=("x",), age_s=age),
        Task(tools=("d",), age_s=age),
    ] == ledger.tasks()
    assert ledger.tasks() == ledger.tasks("acme")
    assert ledger.tasks()[:2] == ledger.tasks("other") == ledger.tasks("")


def test_it_forgets_what_it_is_told_to(ledger: CallLog) -> None:
    """A tool, a tenant, both, everything."""
    for tool in "ab":
        for tenant in ("", "acme"):
            ledger.note(call(tool, tenant=tenant))

    assert 1 == ledger.forget(tool="a", tenant="acme")
    assert 1 == ledger.forget(tool="a")
    assert 1 == ledger.forget(tenant="acme")
    assert 1 == ledger.forget()
    assert [] == [*ledger.lines()]


def test_calls_come_out_whole_oldest_first_and_without_labels(
    opened: Opener, wall: ManualClock
) -> None:
    """Also those of another process; a host's labels may be people's names."""
    one, other = call_log_of(opened()), call_log_of(opened())
    one.note(call("a", shape={"to": "string"}, seconds=0.5, task="secret", tenant="secret"))
    wall.tick(1)
    other.note(call("b", outcome="failed"))

    first, second = one.lines()

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
    """Of all days; a tenant's own and those without one, or everybody's."""
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


def test_a_label_may_be_any_text(ledger: CallLog) -> None:
    """Half of a surrogate pair costs none of the searches that are counted with it."""
    ledger.note_searches([SearchNote(), SearchNote(tenant="\ud800", query="x", task="\ud800")])

    assert [1, 1] == [each.searches for each in ledger.searches()]


def test_a_call_belongs_to_the_last_search_that_found_its_tool(
    ledger: CallLog, wall: ManualClock
) -> None:
    """In the same task of the same tenant, before the call, if it succeeded."""
    ledger.note(call("a", task="1"))
    wall.tick(1)
    ledger.note_searches([SearchNote(query="first", found=("a", "b"), task="1")])
    wall.tick(1)
    ledger.note_searches([SearchNote(query="second", found=("b", "c"), task="1")])
    ledger.note_searches([SearchNote(query="", found=("a",), task="1")])
    ledger.note_searches([SearchNote(query="without a task", found=("a",))])
    for each in (
        call("b", task="1"),
        call("x", task="1"),
        call("a", task="1"),
        call("c", task="1", outcome="failed"),
        call("c", task="1", tenant="acme"),
        call("a"),
        call("b", task="1"),
    ):
        ledger.note(each)

    served = [ServedQuery(query="first", tools=("a",)), ServedQuery(query="second", tools=("b",))]
    assert served == ledger.served_queries() == ledger.served_queries("acme")
    wall.tick(KEEP_QUERIES_S + 1)
    assert [] == ledger.served_queries()


def test_searches_are_forgotten_with_the_calls(ledger: CallLog) -> None:
    """By tool, by tenant, all of them."""

    def left() -> tuple[int, list[str], list[str]]:
        searches = sum(each.searches for each in ledger.searches())
        return searches, [*ledger.found()], [each.query for each in ledger.served_queries()]

    for tool, tenant in (("a", ""), ("b", ""), ("c", "acme")):
        search = SearchNote(query=tool, found=(tool,), task="1", tenant=tenant)
        ledger.note_searches([search])
        ledger.note(call(tool, task="1", tenant=tenant))

    counts = [left()]
    for chosen in ({"tool": "a"}, {"tenant": "acme"}, {}):
        ledger.forget(**chosen)
        counts.append(left())

    assert [
        (3, ["a", "b", "c"], ["a", "b", "c"]),
        (3, ["b", "c"], ["b", "c"]),
        (2, ["b"], ["b"]),
        (0, [], []),
    ] == counts
