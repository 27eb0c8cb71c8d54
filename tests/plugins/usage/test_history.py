"""Calls in the ledger, and what searches make of them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gateway.errors import StoreError, UnknownToolError, UpstreamError
from gateway.gateway import Gateway
from gateway.options import AuditOptions, Options, UsageOptions
from gateway.plugins.access import auditor_of, read_all
from gateway.plugins.usage import USAGE, CallNote, SearchNote, SqlCallLog
from gateway.storage import Database, SqliteDatabase
from gateway.testing import ManualClock
from gateway.types import Access, Caller, Hints, InvokeResult, JsonObject
from tests.conftest import OpenGateway
from tests.fakes import ListSource, names, tool
from tests.metrics import counted

CONTENT = "Zwetschgenknödel"


class CountedCallLog(SqlCallLog):
    """Notes how many searches it was given at a time."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.batches: list[int] = []
        self.is_written = threading.Event()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Note them, and how many there are."""
        super().note_searches(searches)
        self.batches.append(len(searches))
        self.is_written.set()


class HangingCallLog(SqlCallLog):
    """Writes searches when it is told to go on."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_asked, self.goes_on = threading.Event(), threading.Event()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Note them, after a while."""
        self.is_asked.set()
        self.goes_on.wait()
        super().note_searches(searches)


class LockedCallLog(SqlCallLog):
    """Counts no search."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Fail."""
        raise StoreError("database is locked")


class Dead(ListSource):
    """Lists its tools, and answers no call."""

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Fail."""
        raise UpstreamError(self.server, "gone", kind="lost")


def options(folder: Path, **usage: object) -> Options:
    return Options(
        catalog_store_path=folder / "catalog.sqlite3",
        usage=UsageOptions(**usage),  # type: ignore[arg-type]  # as they came
    )


def _holds(folder: Path, text: str) -> bool:
    """Return whether a file of the ledger in *folder* holds *text*."""
    return any(text.encode() in file.read_bytes() for file in folder.glob("usage*"))


def gateway_with(open_gateway: OpenGateway, chosen: Options, **more: object) -> Gateway:
    """Two letters that differ in nothing but their names' last letters, and one that fails."""
    gateway = open_gateway(options=chosen, **more)

    def letter_x(to: str) -> str:
        """Send a letter to somebody."""
        return to

    def letter_y(to: str) -> str:
        """Send a letter to somebody."""
        return to

    def broken() -> str:
        """Fail."""
        raise RuntimeError("no")

    for function in (letter_x, letter_y, broken):
        gateway.add_tool(function)
    return gateway


async def test_calls_are_noted_as_they_ended(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """One line a call, with the shape of its arguments and no value."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))

    await gateway.invoke("letter_x", {"to": "Ada"}, task="1", caller=Caller(tenant="acme"))
    assert (await gateway.invoke("broken")).is_error

    first, second = gateway.usage.call_log.lines()
    assert ("local/letter_x", "ok", {"to": "string"}) == (
        first["tool"],
        first["outcome"],
        first["shape"],
    )
    assert ("local/broken", "tool_error", "") == (second["tool"], second["outcome"], second["task"])
    assert "Ada" not in str(first)


async def test_nothing_is_noted_unless_the_host_wants_it(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Off at first: there is not even a file."""
    gateway = gateway_with(open_gateway, options(tmp_path))

    await gateway.invoke("letter_x", {"to": "Ada"})
    await gateway.search("a letter")

    assert not (tmp_path / "usage.sqlite3").exists()


async def test_a_ledger_that_fails_costs_a_metric_and_no_call(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Neither the call nor the search, which reads it and is noted."""
    (tmp_path / "usage.sqlite3").mkdir()
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    gateway = gateway_with(
        open_gateway, options(tmp_path, record=True, rerank="bounded"), meter_provider=provider
    )

    assert "Ada" == (await gateway.invoke("letter_x", {"to": "Ada"})).text
    assert (await gateway.search("a letter")).matches
    gateway.usage.count_searches()

    assert {"StoreError": 3} == counted(reader, "gateway.store.failures", "error.type")


async def test_outcomes_swap_what_is_about_equally_good(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """y is called and works; after a while it stands first. Searching alone changes nothing."""
    clock = ManualClock()
    gateway = gateway_with(
        open_gateway, options(tmp_path, record=True, rerank="bounded"), clock=clock
    )

    async def found() -> list[str]:
        return names(await gateway.search("send a letter"))[:2]

    before = [await found() for _ in range(30)]
    for _ in range(20):
        await gateway.invoke("letter_y", {"to": "Ada"})
    soon = await found()
    clock.tick(61)
    later = await found()

    assert [["letter_x", "letter_y"]] * 31 == [*before, soon]
    assert ["letter_y", "letter_x"] == later


async def test_searches_at_the_same_time_read_once(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """The log may be long, and all of them want the same of it."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True, rerank="bounded"))
    snapshot = await gateway.snapshot()

    signals = await asyncio.gather(*(gateway.usage.signals(snapshot) for _ in range(20)))

    assert 1 == len(set(map(id, (each.multipliers for each in signals))))


async def test_an_exact_name_stays_first(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """Whatever use says of another that words rank higher: it then stands right behind."""
    gateway = gateway_with(open_gateway, options(tmp_path, rerank="bounded"))

    def typed() -> str:
        """Type the letter x: letter_x, x letter, letter x."""
        return "x"

    gateway.add_tool(typed, hints=Hints(keywords=("letter x",), aliases=("letter x",)))
    for _ in range(50):
        gateway.usage.call_log.note(CallNote(tool="local/typed", outcome="ok"))

    first, second, *_ = (await gateway.search("letter_x")).matches

    assert ("letter_x", "typed") == (first.name, second.name)
    assert first.score == second.score


async def test_outcomes_of_one_tenant_move_nothing_for_another(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Acme has y; calls without a tenant move it for all, down to the scores."""
    gateway = gateway_with(
        open_gateway, options(tmp_path, rerank="bounded", refresh_s=0.0), clock=ManualClock()
    )
    ledger = gateway.usage.call_log

    async def found(tenant: str) -> tuple[list[str], list[float]]:
        result = await gateway.search("send a letter", caller=Caller(tenant=tenant))
        return names(result)[:2], [each.score for each in result.matches]

    async def note(tenant: str) -> list[tuple[list[str], list[float]]]:
        for _ in range(30):
            ledger.note(CallNote(tool="local/letter_y", outcome="ok", tenant=tenant))
        return [await found(each) for each in ("acme", "other", "")]

    before = await found("acme")
    own, common = await note("acme"), await note("")

    assert ["letter_x", "letter_y"] == before[0]
    assert ["letter_y", "letter_x"] == own[0][0]
    assert [before] * 2 == own[1:]
    assert [["letter_y", "letter_x"]] * 3 == [order for order, _ in common]


def content_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("usage.sqlite3*"))


async def test_no_value_and_no_query_reaches_the_file(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Neither arguments, answers, queries, tasks nor tenants, in any file of the ledger."""
    chosen = options(tmp_path, record=True, rerank="bounded", learn="on", refresh_s=0.0)
    gateway = gateway_with(open_gateway, chosen)

    await gateway.invoke(
        "letter_x", {"to": CONTENT}, task=f"task {CONTENT}", caller=Caller(tenant=CONTENT)
    )
    await gateway.search(f"a letter to {CONTENT}", caller=Caller(tenant=CONTENT))
    await gateway.next_steps(["letter_x"], query=f"then {CONTENT}", caller=Caller(tenant=CONTENT))
    gateway.usage.call_log.close()

    written = content_of(tmp_path)
    assert b"local/letter_x" in written
    assert CONTENT.encode() not in written
    assert b"a letter to" not in written


async def test_what_cannot_be_asked_is_a_failure(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """The error reaches the caller all the same."""
    gateway = open_gateway(options=options(tmp_path, record=True))
    gateway.add_source(Dead("dead", [tool("x")]))

    with pytest.raises(UpstreamError):
        await gateway.invoke("x")

    assert ["failed"] == [line["outcome"] for line in gateway.usage.call_log.lines()]


async def test_searches_are_counted_together_without_being_asked_for(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Also those that still wait when a call is noted, which belongs to them, or at the end."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    log = gateway.usage.call_log = CountedCallLog(SqliteDatabase(tmp_path / "usage.sqlite3", USAGE))

    await asyncio.gather(*(gateway.search("send a letter") for _ in range(20)))
    await asyncio.to_thread(log.is_written.wait)
    assert [20] == log.batches
    await gateway.search("send a letter")
    await gateway.invoke("letter_x", {"to": "Ada"})
    assert [20, 1] == log.batches
    await gateway.search("send a letter")
    gateway.close()

    assert [20, 1, 1] == log.batches


async def test_a_forked_child_counts_no_searches_of_its_parent(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Nor how often its refusals were repeated: the parent writes both."""
    gateway = gateway_with(
        open_gateway, replace(options(tmp_path, record=True), audit=AuditOptions(record="on"))
    )
    gateway.add_tool(lambda: "", name="hidden", access=Access(scopes=frozenset({"own"})))
    for _ in range(3):
        with pytest.raises(UnknownToolError):
            await gateway.invoke("hidden")
    await gateway.search("send a letter")
    if not (child := os.fork()):
        with suppress(BaseException):
            gateway.close()
        os._exit(0)
    await asyncio.to_thread(os.waitpid, child, 0)
    gateway.close()

    assert [1] == [each.searches for each in gateway.usage.call_log.searches()]
    log = auditor_of(gateway.options, gateway.store).log
    assert log is not None
    assert ["", "2 more within a minute"] == [row.detail for _, row in read_all(log)]


async def test_searches_that_cannot_be_counted_cost_no_call_its_line(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Nor the report."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    log = gateway.usage.call_log = LockedCallLog(SqliteDatabase(tmp_path / "usage.sqlite3", USAGE))

    await gateway.search("send a letter")
    await gateway.invoke("letter_x", {"to": "Ada"})
    await gateway.search("send a letter")
    report = await gateway.usage.report(await gateway.snapshot())

    assert ["local/letter_x"] == [line["tool"] for line in log.lines()]
    assert 0 == report.total.searches


async def test_a_call_log_that_hangs_has_one_write_wait_for_it(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Each one that waits keeps a thread of the gateway's."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    result = await gateway.search("send a letter", task=None)
    log = gateway.usage.call_log = HangingCallLog(SqliteDatabase(tmp_path / "usage.sqlite3", USAGE))
    submitted = list[object]()
    gateway.usage.submit = submitted.append  # the threads do the work

    writes = [threading.Thread(target=gateway.usage.count_searches) for _ in range(3)]
    for write in writes:
        gateway.usage.note_search(["a letter"], result)
        write.start()
        log.is_asked.wait()
        write.join(0.05)
    log.goes_on.set()
    for write in writes:
        write.join()

    assert 2 == len(submitted)
    assert [3] == [each.searches for each in log.searches()]


async def test_searches_are_counted_and_their_texts_are_not_kept(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """To browse is no search; neither is a test."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))

    await gateway.search(f"send a letter {CONTENT}", caller=Caller(tenant="acme"))
    await gateway.search(f"send a letter {CONTENT}", caller=Caller(tenant="acme"))
    await gateway.search("")
    await gateway.search("send a letter", task=None)
    report = await gateway.usage.report(await gateway.snapshot())
    (tally,) = gateway.usage.call_log.searches()
    found = gateway.usage.call_log.found()
    gateway.close()

    assert (2, 0) == (tally.searches, tally.no_match)
    assert 2 == report.total.searches
    assert (2, 2) == (found["local/letter_x"], found["local/letter_y"])
    assert not _holds(tmp_path, CONTENT)


async def test_texts_are_kept_without_secrets_where_the_host_wants_them(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """One query each: of several nobody knows which one led to the call."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True, record_queries=True))

    await gateway.search("send a letter with password: hunter2", task="1")
    await gateway.search(queries=["a letter", "something else"], task="2")
    for task in "12":
        await gateway.invoke("letter_x", {"to": "Ada"}, task=task)

    served = gateway.usage.call_log.served_queries()
    assert [("send a letter with password: [redacted]", ("local/letter_x",))] == [
        (each.query, each.tools) for each in served
    ]


async def test_the_report_is_there_for_programs(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """See tests/plugins/usage/test_analytics.py for what it says."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    await gateway.search("send a letter")

    report = await gateway.usage.report(await gateway.snapshot())

    assert (1, ["local"]) == (report.total.searches, [each.server for each in report.servers])
