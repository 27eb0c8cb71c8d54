"""Findability page: evaluations of search with test requests, and their comparison."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from starlette.responses import Response

from gateway.config.config_file import read_text
from gateway.discovery.token_counter import token_counter
from gateway.errors import Failed, GatewayError, InvalidRequestError, attempt_call
from gateway.gateway import Gateway
from gateway.index.indexer import Progress
from gateway.index.snapshot import Snapshot
from gateway.plugins.quality.comparison import Comparison, compare
from gateway.plugins.quality.distractors import with_curve
from gateway.plugins.quality.eval_run import EvalRun, RunProgress, evaluate_catalog
from gateway.plugins.quality.report import (
    EvalReport,
    StoredReport,
    ToolReport,
    list_reports,
    load_report,
    to_page,
)
from gateway.plugins.quality.requests import EvalRequest, parse
from gateway.plugins.usage.analytics import schema_tokens
from gateway.plugins.usage.tables import call_log_of
from gateway.runtime.background_loop import in_thread
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import ADMIN
from gateway.serve.console.page import ConsoleOptions, PageView, Place, Redirect, Visit, page
from gateway.serve.guard import CONSOLE
from gateway.types import Caller

PER_PAGE = 50
MAX_REQUESTS_BYTES = 8 * 1024 * 1024
PATH = "/findability"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindabilityData:
    """Reports of evaluations, and the shown one."""

    reports: tuple[StoredReport, ...]
    keeps_reports: bool
    requests_file: str
    run: RunProgress | None
    """Progress of the latest evaluation in this process. None before the first one."""
    name: str
    compared: str
    """Older report to compare with. Empty without a comparison."""
    query: str
    sort: str
    page: int
    pages: int = 1
    report: EvalReport | None = None
    """The report without its catalog. Lists have at most `PER_PAGE` rows that match `query`. Only
    outcomes that missed an expected tool are listed."""
    counts: Mapping[str, int]
    """Number of rows in each complete list of the report."""
    tokens: Mapping[str, int]
    """Estimated tokens of the listed tools' definitions, keyed by id, without removed tools."""
    calls: Mapping[str, int] | None = None
    """Number of recorded calls, keyed by tool id. None if calls are not recorded."""
    comparison: Comparison | None = None
    """Comparison with the older report, with at most `PER_PAGE` wins and `PER_PAGE` losses."""
    same_catalog: bool = True
    """True if both reports evaluated the same tools."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """Progress of the latest evaluation."""

    run: RunProgress | None


class FindabilityPage:
    """Page that runs evaluations and shows their reports."""

    place: ClassVar = Place(title="Findability", path=PATH, right=ADMIN)

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options
        self._run: EvalRun | None = None

    @page("GET", PATH, right=ADMIN)
    async def show(self, visit: Visit) -> PageView:
        """Show the report ``run`` or the newest one, compared with the report ``with``."""
        snapshot = await self._gateway.snapshot()
        data = await in_thread(self._data, visit, snapshot)
        return PageView(template="findability.html", title="Findability", data=data)

    @page("GET", f"{PATH}/run", right=ADMIN)
    async def progress(self, _visit: Visit) -> PageView:
        """Show the progress of the latest evaluation."""
        return PageView(template="run.html", title="Run", data=RunData(run=self._progress))

    @page("POST", f"{PATH}/run", right=ADMIN)
    async def start(self, visit: Visit) -> Redirect:
        """Start an evaluation, unless one is in progress."""
        if self._run is not None and self._run.progress.running:
            return Redirect(to=CONSOLE + PATH, note="A run is already in progress.")
        curve = bool(visit.form.get("curve", ""))
        work = partial(self._evaluate, visit.caller, curve)
        self._run = EvalRun(self._gateway.bridge, work, self._folder)
        return Redirect(to=CONSOLE + PATH, note="The run has started.")

    @page("POST", f"{PATH}/cancel", right=ADMIN)
    async def cancel(self, _visit: Visit) -> Redirect:
        """Cancel the evaluation in progress."""
        if self._run is not None:
            self._run.cancel()
        return Redirect(to=CONSOLE + PATH)

    @page("GET", f"{PATH}/report", right=ADMIN)
    async def download(self, visit: Visit) -> Response:
        """Return the complete report ``run`` as an HTML file."""
        name, snapshot = visit.query.get("run", ""), await self._gateway.snapshot()
        text = await in_thread(lambda: to_page(self._load(name, visit.caller, snapshot)))
        file = re.sub(r"[^0-9A-Za-z.-]", "_", name.removesuffix(".json"))
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="findability-{file}.html"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(text.encode("utf-8", "replace"), 200, headers, "text/html")

    @property
    def _progress(self) -> RunProgress | None:
        return self._run.progress if self._run else None

    @property
    def _folder(self) -> Path:
        if self._options.reports is None:
            raise InvalidRequestError("this gateway was started without a folder for reports")
        return self._options.reports

    async def _evaluate(self, caller: Caller, curve: bool, progress: Progress) -> EvalReport:
        requests = await in_thread(_read_requests, self._options.requests)
        tokens = await token_counter(self._gateway, caller=caller)
        report = await evaluate_catalog(
            self._gateway, requests, caller=caller, tokens=tokens, progress=progress
        )
        if not curve:
            return report
        return await with_curve(report, self._gateway, self._options.documents, progress)

    def _load(self, name: str, caller: Caller, snapshot: Snapshot) -> EvalReport:
        """Return the report *name*, unless it names tools hidden from *caller*."""
        report, positions = load_report(self._folder, name), snapshot.eligibility.by_id
        tools = (snapshot.entities[positions[key]] for key in report.catalog if key in positions)
        if not all(caller.holds(tool.scopes) for tool in tools):
            raise RefusedError(
                403, "scope_missing", "the report names tools that your token may not see"
            )
        return report

    def _data(self, visit: Visit, snapshot: Snapshot) -> FindabilityData:
        reports = list_reports(self._folder)[::-1] if self._options.reports else ()
        newest = next((stored.name for stored in reports if not stored.error), "")
        number = visit.query.get("page", "")
        data = FindabilityData(
            reports=reports,
            keeps_reports=self._options.reports is not None,
            requests_file=str(self._options.requests or ""),
            run=self._progress,
            name=visit.query.get("run", "") or newest,
            compared=visit.query.get("with", ""),
            query=visit.query.get("q", "").strip(),
            sort=visit.query.get("sort", ""),
            page=int(number) if re.fullmatch("[1-9][0-9]{0,5}", number) else 1,
            counts={},
            tokens={},
        )
        try:
            if data.name:
                report = self._load(data.name, visit.caller, snapshot)
                data = self._with_report(data, report, visit.caller, snapshot)
                if data.compared:
                    before = self._load(data.compared, visit.caller, snapshot)
                    data = _with_comparison(data, before, report)
        except GatewayError as error:
            return replace(data, error=str(error))
        return data

    def _with_report(
        self, data: FindabilityData, report: EvalReport, caller: Caller, snapshot: Snapshot
    ) -> FindabilityData:
        by_id, calls = snapshot.eligibility.by_id, self._calls(caller)
        filtered = _filter_report(report, data.query.casefold())
        present = [snapshot.entities[by_id[row.id]] for row in filtered.tools if row.id in by_id]
        tokens = Counter({tool.id: schema_tokens(tool) for tool in present})
        key = _sort_key(data.sort, tokens, calls or Counter())
        tools = sorted(filtered.tools, key=lambda tool: (key(tool), tool.id))
        pages = max(1, math.ceil(len(tools) / PER_PAGE))
        number = min(data.page, pages)
        page_tools = tools[PER_PAGE * (number - 1) : PER_PAGE * number]
        return replace(
            data,
            page=number,
            pages=pages,
            report=replace(
                filtered,
                tools=tuple(page_tools),
                pairs=filtered.pairs[:PER_PAGE],
                outcomes=filtered.outcomes[:PER_PAGE],
                untested=filtered.untested[:PER_PAGE],
            ),
            counts={
                "catalog": len(report.catalog),
                "never_found": sum(not row.findable for row in report.tools),
                "tools": len(tools),
                "pairs": len(filtered.pairs),
                "missed": len(filtered.outcomes),
                "untested": len(filtered.untested),
            },
            tokens={row.id: tokens[row.id] for row in page_tools if row.id in tokens},
            calls=None if calls is None else {row.id: calls[row.id] for row in page_tools},
        )

    def _calls(self, caller: Caller) -> Counter[str] | None:
        if not self._gateway.options.usage.record:
            return None
        log = call_log_of(self._gateway.store)
        tallies = attempt_call(lambda: log.tallies(caller.tenant or None))
        if isinstance(tallies, Failed):
            return None
        counts: Counter[str] = Counter()
        for tally in tallies:
            counts[tally.tool] += tally.succeeded + tally.failed
        return counts


def _filter_report(report: EvalReport, word: str) -> EvalReport:
    """Return *report* with rows that contain *word*, and outcomes that missed a tool."""

    def fits(*texts: str) -> bool:
        return any(word in text.casefold() for text in texts)

    missed = (row for row in report.outcomes if row.missed)
    return replace(
        report,
        catalog={},
        tools=tuple(row for row in report.tools if fits(row.id)),
        pairs=tuple(row for row in report.pairs if fits(row.wanted, row.first)),
        outcomes=tuple(row for row in missed if fits(row.request.text, *row.tools)),
        untested=tuple(row for row in report.untested if fits(row)),
    )


def _sort_key(
    sort: str, tokens: Mapping[str, int], calls: Mapping[str, int]
) -> Callable[[ToolReport], float]:
    """Return the key for sorting tools, by default *found*, the share of requests."""
    keys: dict[str, Callable[[ToolReport], float]] = {
        "found": lambda tool: tool.found / tool.requests,
        "hit@1": lambda tool: tool.first / tool.requests,
        "hit@5": lambda tool: tool.top_five / tool.requests,
        "place": lambda tool: -(tool.median_place or math.inf),
        "requests": lambda tool: -tool.requests,
        "tokens": lambda tool: -tokens[tool.id],
        "calls": lambda tool: -calls[tool.id],
    }
    return keys.get(sort, keys["found"])


def _read_requests(file: Path | None) -> Sequence[EvalRequest]:
    text = read_text(file, max_bytes=MAX_REQUESTS_BYTES) if file else ""
    return parse(text, where=str(file)).requests if text.strip() else ()


def _with_comparison(
    data: FindabilityData, before: EvalReport, after: EvalReport
) -> FindabilityData:
    comparison = compare(before, after, other_catalog=True)
    counts = {"wins": len(comparison.wins), "losses": len(comparison.losses)}
    return replace(
        data,
        comparison=replace(
            comparison, wins=comparison.wins[:PER_PAGE], losses=comparison.losses[:PER_PAGE]
        ),
        counts={**data.counts, **counts},
        same_catalog=before.catalog == after.catalog,
    )
