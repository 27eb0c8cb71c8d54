"""Evaluations in the background of a gateway that is in use."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

from gateway.gateway import Gateway
from gateway.options import UsageOptions
from gateway.plugins.quality import (
    UNANSWERABLE,
    EvalReport,
    EvalRequest,
    EvalRun,
    RunProgress,
    evaluate_catalog,
    list_reports,
    newest_report,
)
from gateway.plugins.usage import call_log_of
from gateway.types import Access, Caller, ToolDefinition
from tests.conftest import PATIENT, OpenGateway
from tests.fakes import ListSource, tool

OWN = (
    EvalRequest(text="a flight", wanted=(("book_flight",),)),
    EvalRequest(text="mend my bicycle", wanted=(("garage/mend",),)),
)


async def ended(run: EvalRun) -> RunProgress:
    """Wait for the end of a run, and return how it ended."""
    await asyncio.wrap_future(run.work)
    return run.progress


async def test_a_run_asks_own_requests_and_those_of_rules(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], tmp_path: Path
) -> None:
    """A tool that is gone is missed, and nothing is noted as use."""
    recording = replace(PATIENT, usage=UsageOptions(record=True))
    gateway = open_gateway(catalog, options=recording)
    seen: list[tuple[str, int, int]] = []

    def note(*progress: object) -> None:
        seen.append(progress)  # type: ignore[arg-type]

    report = await evaluate_catalog(gateway, OWN, progress=note)

    rules = [each for each in report.outcomes if each.request.source == "rules"]
    asked = {key for each in rules for group in each.request.wanted for key in group}
    assert {*report.catalog} == asked
    assert UNANSWERABLE == report.by_source["held_out"].requests
    assert ("garage/mend",) == report.unknown
    assert [("shelf/book_flight",), ("garage/mend",)] == [
        each.tools for each in report.outcomes if each.request.source == "user"
    ]
    total = len(report.outcomes)
    assert [("requests", 0, total), ("requests", total, total)] == [seen[0], seen[-1]]
    assert () == tuple(call_log_of(gateway.store).searches())


async def test_only_what_the_caller_may_see_is_asked_for(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)
    hidden = Access(scopes=frozenset({"billing"}))
    gateway.add_source(ListSource("hidden", [tool("pay_out", "Pay money out.")]), access=hidden)

    outside = await evaluate_catalog(gateway)
    inside = await evaluate_catalog(gateway, caller=Caller(scopes=frozenset({"billing"})))

    assert ["hidden/pay_out"] == [*(inside.catalog.keys() - outside.catalog.keys())]


async def test_a_report_is_kept_while_searches_go_on(gateway: Gateway, tmp_path: Path) -> None:
    """The page asks how far it is, from another loop."""
    halfway, go_on = threading.Event(), threading.Event()

    async def work(progress: object) -> EvalReport:
        assert callable(progress)
        progress("requests", 3, 9)
        halfway.set()
        await asyncio.to_thread(go_on.wait)
        return await evaluate_catalog(gateway, OWN)

    run = EvalRun(gateway.bridge, work, tmp_path)
    await asyncio.to_thread(halfway.wait)
    during = run.progress
    found = await gateway.search("book a flight")
    go_on.set()
    after = await ended(run)

    assert RunProgress(running=True, stage="requests", done=3, total=9) == during
    assert "book_flight" == found.matches[0].name
    assert [(after.report, False, "")] == [
        (each.name, after.running, after.error) for each in list_reports(tmp_path)
    ]
    kept = newest_report(tmp_path)
    assert kept is not None
    assert ("garage/mend",) == kept.unknown
    run.cancel()
    assert after == run.progress


async def test_a_cancelled_run_keeps_nothing(gateway: Gateway, tmp_path: Path) -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def work(_progress: object) -> EvalReport:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    run = EvalRun(gateway.bridge, work, tmp_path / "reports")
    await asyncio.to_thread(started.wait)
    run.cancel()
    await asyncio.to_thread(cancelled.wait)

    assert (False, "it was cancelled", "") == (
        run.progress.running,
        run.progress.error,
        run.progress.report,
    )
    assert not (tmp_path / "reports").exists()


async def test_a_run_that_fails_says_why(gateway: Gateway, tmp_path: Path) -> None:
    """Our own errors in full; a foreign one may hold anything."""
    own = (EvalRequest(text="an e-mail", wanted=((" ",),)),)
    ours = EvalRun(gateway.bridge, lambda _: evaluate_catalog(gateway, own), tmp_path)

    async def broken(_progress: object) -> EvalReport:
        raise ValueError("s3cr3t")

    foreign = EvalRun(gateway.bridge, broken, tmp_path)

    assert (
        "'an e-mail': the tool's name is empty: give an id or a name" == (await ended(ours)).error
    )
    assert "ValueError" == (await ended(foreign)).error
    assert () == list_reports(tmp_path)
