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


async def wait_for_end(run: EvalRun) -> RunProgress:
    """Wait for the end of a run, and return its result."""
    await asyncio.wrap_future(run.work)
    return run.progress


async def test_evaluate_catalog_uses_own_and_generated_requests(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], tmp_path: Path
) -> None:
    """The searches must not be recorded as usage."""
    recording = replace(PATIENT, usage=UsageOptions(record=True))
    gateway = open_gateway(catalog, options=recording)
    steps: list[tuple[str, int, int]] = []

    def note(*progress: object) -> None:
        steps.append(progress)  # type: ignore[arg-type]

    report = await evaluate_catalog(gateway, OWN, progress=note)

    rules = [outcome for outcome in report.outcomes if outcome.request.source == "rules"]
    wanted_ids = {key for outcome in rules for group in outcome.request.wanted for key in group}
    assert {*report.catalog} == wanted_ids
    assert UNANSWERABLE == report.by_source["held_out"].requests
    assert ("garage/mend",) == report.unknown
    assert [("shelf/book_flight",), ("garage/mend",)] == [
        outcome.tools for outcome in report.outcomes if outcome.request.source == "user"
    ]
    total = len(report.outcomes)
    assert [("requests", 0, total), ("requests", total, total)] == [steps[0], steps[-1]]
    assert () == tuple(call_log_of(gateway.store).searches())


async def test_evaluate_catalog_uses_only_tools_visible_to_the_caller(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)
    hidden = Access(scopes=frozenset({"billing"}))
    gateway.add_source(ListSource("hidden", [tool("pay_out", "Pay money out.")]), access=hidden)

    outside = await evaluate_catalog(gateway)
    inside = await evaluate_catalog(gateway, caller=Caller(scopes=frozenset({"billing"})))

    assert ["hidden/pay_out"] == [*(inside.catalog.keys() - outside.catalog.keys())]


async def test_eval_run_saves_a_report_while_searches_continue(
    gateway: Gateway, tmp_path: Path
) -> None:
    """The console polls the progress from another loop."""
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
    result = await gateway.search("book a flight")
    go_on.set()
    after = await wait_for_end(run)

    assert RunProgress(running=True, stage="requests", done=3, total=9) == during
    assert "book_flight" == result.matches[0].name
    assert [(after.report, False, "")] == [
        (item.name, after.running, after.error) for item in list_reports(tmp_path)
    ]
    saved_report = newest_report(tmp_path)
    assert saved_report is not None
    assert ("garage/mend",) == saved_report.unknown
    run.cancel()
    assert after == run.progress


async def test_cancelled_eval_run_saves_nothing(gateway: Gateway, tmp_path: Path) -> None:
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


async def test_failed_eval_run_gives_the_reason(gateway: Gateway, tmp_path: Path) -> None:
    """Messages of foreign errors are not shown, because they may contain secrets."""
    requests = (EvalRequest(text="an e-mail", wanted=((" ",),)),)
    ours = EvalRun(gateway.bridge, lambda _: evaluate_catalog(gateway, requests), tmp_path)

    async def broken(_progress: object) -> EvalReport:
        raise ValueError("s3cr3t")

    foreign = EvalRun(gateway.bridge, broken, tmp_path)

    assert (
        "'an e-mail': the tool's name is empty: give an id or a name"
        == (await wait_for_end(ours)).error
    )
    assert "ValueError" == (await wait_for_end(foreign)).error
    assert () == list_reports(tmp_path)
