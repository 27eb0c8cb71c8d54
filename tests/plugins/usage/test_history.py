"""Recording of calls and searches, and their effect on searches."""

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
    """Call log that records the sizes of the batches of searches."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.batches: list[int] = []
        self.is_written = threading.Event()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        super().note_searches(searches)
        self.batches.append(len(searches))
        self.is_written.set()


class HangingCallLog(SqlCallLog):
    """Call log that writes searches only after `goes_on` is set."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.is_asked, self.goes_on = threading.Event(), threading.Event()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        self.is_asked.set()
        self.goes_on.wait()
        super().note_searches(searches)


class LockedCallLog(SqlCallLog):
    """Call log that fails to write searches."""

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        raise StoreError("database is locked")


class Dead(ListSource):
    """Source whose calls fail."""

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        raise UpstreamError(self.server, "gone", kind="lost")


def options(folder: Path, **usage: object) -> Options:
    return Options(
        catalog_store_path=folder / "catalog.sqlite3",
        usage=UsageOptions(**usage),  # type: ignore[arg-type]  # as they came
    )


def _contains(folder: Path, text: str) -> bool:
    """Return whether a file of the call log in *folder* contains *text*."""
    return any(text.encode() in file.read_bytes() for file in folder.glob("usage*"))


def gateway_with(open_gateway: OpenGateway, chosen: Options, **more: object) -> Gateway:
    """Return a gateway with two nearly equal letter tools and one failing tool."""
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


async def test_calls_are_recorded_with_their_outcome(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
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


async def test_nothing_is_recorded_by_default(open_gateway: OpenGateway, tmp_path: Path) -> None:
    """Not even a file is created."""
    gateway = gateway_with(open_gateway, options(tmp_path))

    await gateway.invoke("letter_x", {"to": "Ada"})
    await gateway.search("a letter")

    assert not (tmp_path / "usage.sqlite3").exists()


async def test_failing_call_log_only_increments_a_metric(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Calls and searches still succeed."""
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


async def test_search_ranks_the_tool_with_successful_calls_before_an_equal_tool(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """The outcomes are read after the refresh interval. Searches alone change nothing."""
    clock = ManualClock()
    gateway = gateway_with(
        open_gateway, options(tmp_path, record=True, rerank="bounded"), clock=clock
    )

    async def found_names() -> list[str]:
        return names(await gateway.search("send a letter"))[:2]

    before = [await found_names() for _ in range(30)]
    for _ in range(20):
        await gateway.invoke("letter_y", {"to": "Ada"})
    soon = await found_names()
    clock.tick(61)
    later = await found_names()

    assert [["letter_x", "letter_y"]] * 31 == [*before, soon]
    assert ["letter_y", "letter_x"] == later


async def test_concurrent_searches_read_the_call_log_once(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = gateway_with(open_gateway, options(tmp_path, record=True, rerank="bounded"))
    snapshot = await gateway.snapshot()

    signals = await asyncio.gather(*(gateway.usage.signals(snapshot) for _ in range(20)))

    assert 1 == len(set(map(id, (signal.multipliers for signal in signals))))


async def test_exact_name_match_stays_first_despite_outcomes(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
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


async def test_outcomes_of_one_tenant_do_not_affect_another(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Calls without a tenant affect all tenants."""
    gateway = gateway_with(
        open_gateway, options(tmp_path, rerank="bounded", refresh_s=0.0), clock=ManualClock()
    )
    ledger = gateway.usage.call_log

    async def found_names(tenant: str) -> tuple[list[str], list[float]]:
        result = await gateway.search("send a letter", caller=Caller(tenant=tenant))
        return names(result)[:2], [match.score for match in result.matches]

    async def note(tenant: str) -> list[tuple[list[str], list[float]]]:
        for _ in range(30):
            ledger.note(CallNote(tool="local/letter_y", outcome="ok", tenant=tenant))
        return [await found_names(name) for name in ("acme", "other", "")]

    before = await found_names("acme")
    acme_results, common = await note("acme"), await note("")

    assert ["letter_x", "letter_y"] == before[0]
    assert ["letter_y", "letter_x"] == acme_results[0][0]
    assert [before] * 2 == acme_results[1:]
    assert [["letter_y", "letter_x"]] * 3 == [order for order, _ in common]


def content_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("usage.sqlite3*"))


async def test_argument_values_and_queries_are_not_written_to_the_file(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
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


async def test_unreachable_tool_is_recorded_as_failed(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = open_gateway(options=options(tmp_path, record=True))
    gateway.add_source(Dead("dead", [tool("x")]))

    with pytest.raises(UpstreamError):
        await gateway.invoke("x")

    assert ["failed"] == [line["outcome"] for line in gateway.usage.call_log.lines()]


async def test_waiting_searches_are_written_in_batches_before_calls_and_on_close(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
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


async def test_forked_child_does_not_write_the_searches_and_refusals_of_its_parent(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
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

    assert [1] == [search.searches for search in gateway.usage.call_log.searches()]
    log = auditor_of(gateway.options, gateway.store).log
    assert log is not None
    assert ["", "2 more within a minute"] == [row.detail for _, row in read_all(log)]


async def test_calls_are_recorded_even_if_counting_searches_fails(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    log = gateway.usage.call_log = LockedCallLog(SqliteDatabase(tmp_path / "usage.sqlite3", USAGE))

    await gateway.search("send a letter")
    await gateway.invoke("letter_x", {"to": "Ada"})
    await gateway.search("send a letter")
    report = await gateway.usage.report(await gateway.snapshot())

    assert ["local/letter_x"] == [line["tool"] for line in log.lines()]
    assert 0 == report.total.searches


async def test_hanging_call_log_blocks_at_most_one_further_write(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Each waiting write occupies a worker thread."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    result = await gateway.search("send a letter", task=None)
    log = gateway.usage.call_log = HangingCallLog(SqliteDatabase(tmp_path / "usage.sqlite3", USAGE))
    submitted = list[object]()
    gateway.usage.submit = submitted.append  # the threads of this test do the work

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
    assert [3] == [search.searches for search in log.searches()]


async def test_searches_are_counted_without_storing_query_texts(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Browsing and test searches are not counted."""
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))

    await gateway.search(f"send a letter {CONTENT}", caller=Caller(tenant="acme"))
    await gateway.search(f"send a letter {CONTENT}", caller=Caller(tenant="acme"))
    await gateway.search("")
    await gateway.search("send a letter", task=None)
    report = await gateway.usage.report(await gateway.snapshot())
    (tally,) = gateway.usage.call_log.searches()
    found_counts = gateway.usage.call_log.found()
    gateway.close()

    assert (2, 0) == (tally.searches, tally.no_match)
    assert 2 == report.total.searches
    assert (2, 2) == (found_counts["local/letter_x"], found_counts["local/letter_y"])
    assert not _contains(tmp_path, CONTENT)


async def test_query_texts_are_stored_without_secrets_if_enabled(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Searches with several queries are left out, because the call cannot be assigned to one of
    them.
    """
    gateway = gateway_with(open_gateway, options(tmp_path, record=True, record_queries=True))

    await gateway.search("send a letter with password: hunter2", task="1")
    await gateway.search(queries=["a letter", "something else"], task="2")
    for task in "12":
        await gateway.invoke("letter_x", {"to": "Ada"}, task=task)

    served = gateway.usage.call_log.served_queries()
    assert [("send a letter with password: [redacted]", ("local/letter_x",))] == [
        (query.query, query.tools) for query in served
    ]


async def test_gateway_returns_the_usage_report(open_gateway: OpenGateway, tmp_path: Path) -> None:
    gateway = gateway_with(open_gateway, options(tmp_path, record=True))
    await gateway.search("send a letter")

    report = await gateway.usage.report(await gateway.snapshot())

    assert (1, ["local"]) == (report.total.searches, [server.server for server in report.servers])
