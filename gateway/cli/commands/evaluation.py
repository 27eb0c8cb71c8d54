"""`gateway eval`: test requests, their runs, and comparisons of runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Option

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.session import CatalogSession, open_session, read_config, with_model
from gateway.cli.tables import pairs, table, to_jsonable
from gateway.config.config_file import read_text, write_text
from gateway.config.manifest import NormalizerSettings
from gateway.discovery.token_counter import token_counter
from gateway.errors import ConfigError, InvalidRequestError
from gateway.plugins.quality.comparison import Comparison, compare
from gateway.plugins.quality.distractors import with_curve
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.model_requests import ModelRequests, model_requests
from gateway.plugins.quality.offline import offline_requests
from gateway.plugins.quality.report import (
    EvalReport,
    read_report,
    save_report,
    to_page,
    write_report,
)
from gateway.plugins.quality.requests import (
    EvalRequest,
    RequestSet,
    catalog_digest,
    freeze,
    parse,
    parse_tools,
    save_request,
    to_json_lines,
)
from gateway.plugins.quality.twins import hold_out
from gateway.plugins.usage.call_log import CallLog
from gateway.plugins.usage.tables import call_log_of
from gateway.runtime.text import counted
from gateway.types import ANYONE, Caller, Entity

T = TypeVar("T")
_MAX_ROWS = 20
"""Maximum number of printed rows of a list; --json prints all."""
_TOOL_COLUMNS = (
    *("tool=id", "found", "requests", "median rank=median_place"),
    *("outranked by=first", "missing words=missing_words"),
)
MODEL_TIMEOUT_S = 60.0
OutFile = Annotated[Path | None, "--out", "-o", "File to write."]

app = command_group("eval")


@command(app)
def requests(
    files: Annotated[
        list[Path] | None, "Files with your own requests: Markdown tables or JSON Lines."
    ] = None,
    *,
    rules: Annotated[bool, "Make requests for each tool by rules."] = True,
    language: Annotated[
        options.Texts, "Language of the made requests; repeatable. Default: en."
    ] = None,
    typos: Annotated[bool, "Add a misspelt request for each tool."] = True,
    unanswerable: Annotated[
        int,
        Option(
            min=0, help="Number of requests that are repeated without their tools, as unanswerable."
        ),
    ] = 20,
    usage: Annotated[bool, "Add recorded searches that led to a call."] = False,
    model: Annotated[
        str, "Chat model that writes three more per tool; it uses the key of --normalize."
    ] = "",
    out: OutFile = None,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Make test requests for your catalog, and freeze them with the catalog's digest.

    Read and correct the requests before you rely on them. Without --model nothing is sent anywhere.
    """
    own_requests = [request for file in files or () for request in read_file(file, parse).requests]
    filters = (caller or ANYONE).filters()
    languages = language or ("en",)
    rejected: list[str] = []
    with open_session(config) as session:
        snapshot = session.gateway.snapshot()
        tools = snapshot.visible(filters)
        call_log, tenant = call_log_of(session.gateway.gateway.store), (caller or ANYONE).tenant
        generated = _recorded_searches(call_log, tools, tenant) if usage else []
        generated += offline_requests(tools, languages=languages, typos=typos) if rules else []
        for name in languages if model else ():
            settings = with_model(read_config(config).normalizer, model)
            written = _write_requests(session, settings, tools, name)
            generated += written.requests
            rejected += written.rejected
    frozen = freeze([*own_requests, *generated], snapshot, filters)
    unanswerable_requests = hold_out(frozen.requests, tools, count=unanswerable)
    frozen = freeze([*frozen.requests, *unanswerable_requests], snapshot, filters)
    text = to_json_lines(frozen)
    if out is not None:
        write_file(out, text, force=force)
    header, *rows = map(json.loads, text.splitlines())
    count = counted(len(rows), "request")
    view = table(rows, "request", "tools", "source", "style", "language")
    return Output(
        {**header, "requests": rows, "rejected": rejected},
        count if out else view,
        found=rows,
        code=session.code,
        notes=[f"rejected: {text}" for text in rejected],
    )


@command(app)
def add(
    file: Annotated[
        Path, "File of your requests; a new .md file is a table, others are JSON Lines."
    ],
    request: Annotated[str, "The request as a user would write it."],
    tools: Annotated[
        str, "Expected tools: 'a, b' (both), 'a -> b' (in this order), 'a or b', or 'none'."
    ],
) -> Output:
    """Add one request and its expected tools to a file. No server is started."""
    expected, ordered = parse_tools(tools)
    new_request = EvalRequest(text=request, wanted=expected, ordered=ordered)
    added = save_request(file, new_request)
    data = {"file": file, "added": added}
    return Output(data, f"added to {file}" if added else f"{file} already has this request")


@command(app)
def run(
    requests_file: Annotated[Path, "File of requests: frozen ones, or your own."],
    *,
    out: OutFile = None,
    page: Annotated[Path | None, "HTML page to write."] = None,
    reports: Annotated[Path | None, "Folder in which the report is stored under its time."] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    curve: Annotated[bool, "Repeat the run with 3 and 10 times as many tools."] = False,
    caller: Caller | None = None,
) -> Output:
    """Run all requests and report which tools are found; tools that are never found come first."""
    request_set = read_file(requests_file, parse)
    with open_session(
        config, strategy=strategy, documents=documents, normalize=normalize
    ) as session:
        report = _evaluate(session, request_set, caller or ANYONE)
        if curve:
            gateway, progress = session.gateway.gateway, session.on_progress
            report = gateway.bridge.call(partial(with_curve, report, gateway, documents, progress))
    if out is not None:
        write_file(out, write_report(report), force=True)
    if page is not None:
        write_file(page, to_page(report), force=True)
    notes = [f"stored as {save_report(report, reports)}"] if reports else []
    if request_set.catalog not in {"", catalog_digest(report.catalog)}:
        notes.append("the catalog changed since the requests were frozen")
    if report.degraded:
        searches = counted(report.degraded, "search", "searches")
        notes.append(f"{searches} ran without an optional stage that failed")
    data = json.loads(write_report(report))
    return Output(data, report_view(report), code=session.code, notes=notes)


@command(app, "compare")
def compare_runs(
    runs: Annotated[list[Path], "Two reports, the older one first."],
    *,
    baseline: Annotated[Path | None, "Older report; then name only the newer one."] = None,
    tolerance: Annotated[
        float, Option(min=0, max=1, help="Allowed loss of each compared figure, from 0 to 1.")
    ] = 0.02,
    strict: Annotated[bool, "Exit with code 1 if the newer report is worse."] = False,
    other_catalog: Annotated[bool, "Compare even if the catalogs differ."] = False,
) -> Output:
    """Compare two reports of 'gateway eval run', request by request.

    The newer report is worse if recall@5 or complete@10 fell, or false accepts rose, by more than
    --tolerance.
    """
    files = [*([baseline] if baseline else ()), *runs]
    if len(files) != 2:
        raise InvalidRequestError("name two reports, or one report and a --baseline")
    before, after = (read_file(file, read_report) for file in files)
    comparison = compare(before, after, tolerance=tolerance, other_catalog=other_catalog)
    notes = [f"worse by more than {tolerance:g}: {name}" for name in comparison.worse]
    if comparison.degraded:
        notes.append(
            "an optional stage failed in some searches, so the reports are hard to compare"
        )
    code = NOTHING if strict and comparison.worse else OK
    data = {"worse": comparison.worse, **to_jsonable(comparison)}
    return Output(data, comparison_view(comparison), code=code, notes=notes)


def _recorded_searches(
    call_log: CallLog, tools: Sequence[Entity], tenant: str
) -> list[EvalRequest]:
    """Return recorded searches that led to calls, of *tenant* and without a tenant; "" is all."""
    ids = {tool.id for tool in tools}
    served = call_log.served_queries(tenant or None)
    return [
        EvalRequest(text=query.query, wanted=tuple((tool,) for tool in query.tools), source="usage")
        for query in served
        if ids.issuperset(query.tools)
    ]


def _write_requests(
    session: CatalogSession, settings: NormalizerSettings, tools: Sequence[Entity], language: str
) -> ModelRequests:
    from gateway.search.openai import connected_normalizer  # noqa: PLC0415  (openai is heavy)

    gateway, progress = session.gateway.gateway, session.on_progress
    with connected_normalizer(settings, timeout_s=MODEL_TIMEOUT_S) as model:
        work = partial(model_requests, tools, model, gateway.telemetry, language=language)
        return gateway.bridge.call(partial(work, progress=progress))


def _evaluate(session: CatalogSession, requests: RequestSet, caller: Caller) -> EvalReport:
    gateway = session.gateway.gateway

    async def work() -> EvalReport:
        frozen = requests
        if not frozen.catalog:
            frozen = freeze(requests.requests, await gateway.snapshot(), caller.filters())
        tokens = await token_counter(gateway, caller=caller)
        return await evaluate(
            gateway, frozen, caller=caller, tokens=tokens, progress=session.on_progress
        )

    return gateway.bridge.call(work)


def read_file(file: Path, parse: Callable[..., T]) -> T:
    """Return the parsed *file*; raise a `ConfigError` if it cannot be read."""
    return parse(read_text(file, missing=f"file {str(file)!r} was not found"), where=str(file))


def write_file(file: Path, text: str, *, force: bool) -> None:
    """Write *file*; raise a `ConfigError` if it exists, unless *force*."""
    before = read_text(file)
    if before and not force:
        raise ConfigError(
            f"{str(file)!r} already exists: name another file, or overwrite with --force"
        )
    write_text(file, text, expected=before)


def report_view(report: EvalReport) -> RenderableType:
    """Return the figures of a report, and the weakest tools and requests."""
    tools = [
        {**to_jsonable(tool), "first": next(iter(tool.outranked_by), "")}
        for tool in report.tools
        if tool.found < tool.requests
    ]
    missed = [outcome for outcome in report.outcomes if outcome.missed]
    remarks = {
        "tools without a request": len(report.untested) or None,
        "expected tools missing in the catalog": report.unknown,
    }
    pair = ("expected=wanted", "ranked first=first", "requests", "same definition=are_twins")
    request = ("request=request.text", "expected tools=tools", "ranks=places")
    return Group(
        _figures(report),
        *((heading("tokens, estimated"), pairs(to_jsonable(report.cost))) if report.cost else ()),
        *listing(
            ("tool missed by requests", "tools missed by requests, never found tools first"),
            tools,
            *_TOOL_COLUMNS,
        ),
        *listing(
            ("tool ranked before the expected one", "tools ranked before the expected ones"),
            report.pairs,
            *pair,
        ),
        *listing(("request missed a tool", "requests missed a tool"), missed, *request),
        Text(),
        pairs(remarks),
    )


def listing(nouns: tuple[str, str], rows: Sequence[object], *columns: str) -> list[RenderableType]:
    """Return a heading with the number of rows, and the first rows; empty without rows."""
    if not rows:
        return []
    more = f" (the first {_MAX_ROWS}; --json has all)" if len(rows) > _MAX_ROWS else ""
    return [heading(f"{counted(len(rows), *nouns)}{more}"), table(rows[:_MAX_ROWS], *columns)]


def _figures(report: EvalReport) -> RenderableType:
    summaries = {"all": report.summary, **report.by_source}
    if len(report.by_language) > 1:
        summaries |= report.by_language
    counts: dict[str, object] = {"figure": "requests"}
    counts |= {key: summary.requests for key, summary in summaries.items()}
    columns: dict[str, Mapping[str, float]] = {
        key: summary.figures for key, summary in summaries.items()
    }
    for point in report.curve[1:]:
        counts[key := f"of {point.tools} tools"] = report.summary.requests
        columns[key] = point.figures
    rows = [
        {"figure": name} | {key: figures.get(name) for key, figures in columns.items()}
        for name in report.summary.figures
    ]
    return table([counts, *rows], *counts)


def heading(text: str) -> RenderableType:
    """Return *text* as the heading of a table."""
    return Text(f"\n{text}", style="bold underline")


def comparison_view(comparison: Comparison) -> RenderableType:
    """Return the changes between two reports as tables."""
    changes = [
        {"figure": name, **to_jsonable(change)} for name, change in comparison.changes.items()
    ]
    remarks = {
        "no longer found": comparison.lost_tools,
        "now found": comparison.gained_tools,
        "requests in one report only": comparison.left_out or None,
    }
    moved = ("request", "tools", "before", "after")
    return Group(
        table(changes, *changes[0]),
        *listing(("request is worse", "requests are worse"), comparison.losses, *moved),
        *listing(("request is better", "requests are better"), comparison.wins, *moved),
        Text(),
        pairs(remarks),
    )
