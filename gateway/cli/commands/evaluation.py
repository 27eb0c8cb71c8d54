"""`gateway eval`."""

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
from gateway.types import ANYONE, Caller, Entity

T = TypeVar("T")
_SHOWN = 20
"""How many rows of a list are printed; --json has all."""
_TOOL = ("tool=id", "found", "requests", "place=median_place", "by=first", "lacks=missing_words")
MODEL_TIMEOUT_S = 60.0
OutFile = Annotated[Path | None, "--out", "-o", "A file to write."]

app = command_group("eval")


@command(app)
def requests(
    files: Annotated[list[Path] | None, "Your own requests: Markdown tables or JSON Lines."] = None,
    *,
    rules: Annotated[bool, "Make some for each tool."] = True,
    language: Annotated[options.Texts, "Of those made; repeatable. Default: en."] = None,
    typos: Annotated[bool, "Misspell one of them."] = True,
    unanswerable: Annotated[
        int, Option(min=0, help="So many are asked again with their tools held out.")
    ] = 20,
    usage: Annotated[bool, "Take searches that were recorded and led to a call."] = False,
    model: Annotated[
        str, "A chat model that writes three more; its key is that of --normalize."
    ] = "",
    out: OutFile = None,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
    caller: Caller | None = None,
) -> Output:
    """Make the test requests of your catalog, and freeze them with its digest.

    Read what was made, and mend it, before you trust it. Without --model nothing is sent anywhere.
    """
    own = [each for file in files or () for each in read_file(file, parse).requests]
    filters = (caller or ANYONE).filters()
    languages = language or ("en",)
    rejected: list[str] = []
    with open_session(config) as session:
        snapshot = session.gateway.snapshot()
        tools = snapshot.visible(filters)
        ledger, tenant = call_log_of(session.gateway.gateway.store), (caller or ANYONE).tenant
        made = _recorded(ledger, tools, tenant) if usage else []
        made += offline_requests(tools, languages=languages, typos=typos) if rules else []
        for name in languages if model else ():
            settings = with_model(read_config(config).normalizer, model)
            written = _write_requests(session, settings, tools, name)
            made += written.requests
            rejected += written.rejected
    frozen = freeze([*own, *made], snapshot, filters)
    held = hold_out(frozen.requests, tools, count=unanswerable)
    frozen = freeze([*frozen.requests, *held], snapshot, filters)
    text = to_json_lines(frozen)
    if out is not None:
        write_file(out, text, force=force)
    header, *rows = map(json.loads, text.splitlines())
    count = f"{len(rows)} requests"
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
    file: Annotated[Path, "Your requests; a new file.md is a table, else JSON Lines."],
    request: Annotated[str, "What somebody asks."],
    tools: Annotated[str, "What it wants: 'a, b', 'a -> b', 'a or b', 'none', as in a table."],
) -> Output:
    """Add one request to your own, and its tools. No server is started."""
    wanted, ordered = parse_tools(tools)
    made = EvalRequest(text=request, wanted=wanted, ordered=ordered)
    added = save_request(file, made)
    data = {"file": file, "added": added}
    return Output(data, f"added to {file}" if added else f"it is in {file} already")


@command(app)
def run(
    requests_file: Annotated[Path, "The requests: frozen ones, or your own."],
    *,
    out: OutFile = None,
    page: Annotated[Path | None, "An HTML page to write."] = None,
    reports: Annotated[Path | None, "A folder to keep the report in, by its time."] = None,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    normalize: options.Normalize = "",
    curve: Annotated[bool, "Ask again among 3 and 10 times as many tools."] = False,
    caller: Caller | None = None,
) -> Output:
    """Ask all requests and report what is found, tool by tool; never found tools come first."""
    wanted = read_file(requests_file, parse)
    with open_session(
        config, strategy=strategy, documents=documents, normalize=normalize
    ) as session:
        report = _evaluate(session, wanted, caller or ANYONE)
        if curve:
            gateway, progress = session.gateway.gateway, session.on_progress
            report = gateway.bridge.call(partial(with_curve, report, gateway, documents, progress))
    if out is not None:
        write_file(out, write_report(report), force=True)
    if page is not None:
        write_file(page, to_page(report), force=True)
    notes = [f"kept in {save_report(report, reports)}"] if reports else []
    if wanted.catalog not in {"", catalog_digest(report.catalog)}:
        notes.append("the catalog changed since the requests were frozen")
    if report.degraded:
        notes.append(f"{report.degraded} searches went without something that they should have had")
    data = json.loads(write_report(report))
    return Output(data, report_view(report), code=session.code, notes=notes)


@command(app, "compare")
def compare_runs(
    runs: Annotated[list[Path], "Two reports, the older one first."],
    *,
    baseline: Annotated[Path | None, "The report to compare with; then name one other."] = None,
    tolerance: Annotated[
        float, Option(min=0, max=1, help="How much worse a judged figure may get.")
    ] = 0.02,
    strict: Annotated[bool, "Exit code 1 if it is worse."] = False,
    other_catalog: Annotated[bool, "Compare although the catalogs differ."] = False,
) -> Output:
    """Compare two reports of 'gateway eval run', request by request.

    It is worse if recall@5 or complete@10 fell, or false accepts rose, by more than --tolerance.
    """
    files = [*([baseline] if baseline else ()), *runs]
    if len(files) != 2:
        raise InvalidRequestError("name two reports, or one and a --baseline")
    before, after = (read_file(file, read_report) for file in files)
    found = compare(before, after, tolerance=tolerance, other_catalog=other_catalog)
    notes = [f"worse by more than {tolerance:g}: {name}" for name in found.worse]
    if found.degraded:
        notes.append("searches went without something: these are not two healthy gateways")
    code = NOTHING if strict and found.worse else OK
    data = {"worse": found.worse, **to_jsonable(found)}
    return Output(data, comparison_view(found), code=code, notes=notes)


def _recorded(ledger: CallLog, tools: Sequence[Entity], tenant: str) -> list[EvalRequest]:
    """Return the searches that led to calls, of *tenant* and without one; "" for all."""
    ids = {tool.id for tool in tools}
    served = ledger.served_queries(tenant or None)
    return [
        EvalRequest(text=each.query, wanted=tuple((tool,) for tool in each.tools), source="usage")
        for each in served
        if ids.issuperset(each.tools)
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
    """Return what *parse* makes of the text of *file*; raise a ConfigError if it cannot be read."""
    return parse(read_text(file, missing=f"there is no file {str(file)!r}"), where=str(file))


def write_file(file: Path, text: str, *, force: bool) -> None:
    """Write *file*; raise a ConfigError if it is there already, without *force*."""
    before = read_text(file)
    if before and not force:
        raise ConfigError(f"{str(file)!r} is there already: name another file, or --force")
    write_text(file, text, expected=before)


def report_view(report: EvalReport) -> RenderableType:
    """Return the figures, and what to look at first."""
    tools = [
        {**to_jsonable(each), "first": next(iter(each.outranked_by), "")}
        for each in report.tools
        if each.found < each.requests
    ]
    missed = [each for each in report.outcomes if each.missed]
    rest = {
        "tools that no request wants": len(report.untested) or None,
        "wanted, but not in the catalog": report.unknown,
    }
    pair = ("wanted", "came first=first", "requests", "equal=are_twins")
    request = ("request=request.text", "wanted=tools", "place=places")
    return Group(
        _figures(report),
        *((heading("tokens, estimated"), pairs(to_jsonable(report.cost))) if report.cost else ()),
        *listing("tools that requests missed, never found ones first", tools, *_TOOL),
        *listing("tools that came first where another one was wanted", report.pairs, *pair),
        *listing("requests that missed a tool", missed, *request),
        Text(),
        pairs(rest),
    )


def listing(title: str, rows: Sequence[object], *columns: str) -> list[RenderableType]:
    """Return the first of *rows* under how many there are; nothing if there are none."""
    if not rows:
        return []
    more = f" (the first {_SHOWN}; --json has all)" if len(rows) > _SHOWN else ""
    return [heading(f"{len(rows)} {title}{more}"), table(rows[:_SHOWN], *columns)]


def _figures(report: EvalReport) -> RenderableType:
    summaries = {"all": report.summary, **report.by_source}
    if len(report.by_language) > 1:
        summaries |= report.by_language
    counts: dict[str, object] = {"figure": "requests"}
    counts |= {key: each.requests for key, each in summaries.items()}
    columns: dict[str, Mapping[str, float]] = {key: each.figures for key, each in summaries.items()}
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


def comparison_view(found: Comparison) -> RenderableType:
    """Return what changed."""
    changes = [{"figure": name, **to_jsonable(each)} for name, each in found.changes.items()]
    rest = {
        "no longer found": found.lost_tools,
        "now found": found.gained_tools,
        "requests in one of them only": found.left_out or None,
    }
    moved = ("request", "tools", "before", "after")
    return Group(
        table(changes, *changes[0]),
        *listing("requests are worse", found.losses, *moved),
        *listing("requests are better", found.wins, *moved),
        Text(),
        pairs(rest),
    )
