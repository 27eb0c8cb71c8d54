"""Evaluation reports: JSON files, named after their time, and an HTML page.

The page loads nothing from elsewhere, and escapes all texts of servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gateway.config.config_file import read_text
from gateway.errors import ConfigError, InvalidRequestError
from gateway.plugins.quality.requests import EvalRequest, catalog_digest
from gateway.runtime.atomic_file import write_atomically
from gateway.runtime.json_models import validation_message

_FILE_NAME_FORMAT = "%Y%m%dT%H%M%S.%fZ"
"""Format of a report's file name: the UTC time (ISO 8601, basic format), so that names sort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a test request."""

    request: EvalRequest
    found: tuple[str, ...]
    """Ids of the first ten tools, best first."""
    places: tuple[int | None, ...] = ()
    """Rank of each wanted tool, an alternative or a twin, from 1; None if not found."""
    tools: tuple[str, ...] = ()
    """Ids of the tools at `places`."""
    missed: bool = False
    """True if a wanted tool is not among the matches that a search returns."""
    accepted: bool = True
    """True if the search did not warn of weak matches."""
    confidence: float = 0.0
    figures: Mapping[str, float]
    """Metrics; empty if no tool serves the request."""
    missing_words: Mapping[str, tuple[str, ...]]
    """Words of the request that a missed tool's text lacks, keyed by tool id."""
    follows: bool | None = None
    """True if the second wanted tool is suggested after the first; None without an order."""
    answer_tokens: int = 0
    schema_tokens: int = 0
    degraded: bool = False
    """True if both attempts lacked an optional stage, such as vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Mean figures of requests."""

    requests: int
    unanswerable: int
    """Number of requests that no tool serves."""
    figures: Mapping[str, float]
    """Means over the requests that a tool serves (``false_accepts``: over the others), keyed by
    name, as shares of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """Report on a tool: how often requests find it."""

    id: str
    requests: int
    found: int
    """Number of requests with the tool among the matches."""
    first: int
    """Number of requests with the tool first (hit@1)."""
    top_five: int
    """Number of requests with the tool among the first five (hit@5)."""
    findable: bool
    """True if `found` is above 0."""
    median_place: float | None
    """Median rank; None if at least half of the requests do not find the tool."""
    outranked_by: Mapping[str, int]
    """Number of times that other tools ranked higher, keyed by tool id, most frequent first."""
    missing_words: tuple[str, ...]
    """Words of requests that missed the tool, which its text lacks, most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionPair:
    """A wanted tool, and the tool that ranked first in its place."""

    wanted: str
    first: str
    requests: int
    are_twins: bool
    """True if both have nearly the same description, so that `first` counts as found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Estimated tokens that a model reads with and without the gateway."""

    catalog: int
    """Tokens of the schemas of all tools, without a gateway."""
    fixed: int
    """Tokens of the meta-tools, in each model request."""
    answer_p50: int
    answer_p95: int
    """95th percentile of the tokens of a search result."""
    schemas_p50: int
    """Median tokens of the schemas of found tools, sent after the search result."""
    break_even: int
    """Number of searches in a conversation from which the gateway costs more than all schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Figures of the requests in a catalog with distractors."""

    tools: int
    """Number of tools in that catalog."""
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReport:
    """Result of an evaluation."""

    catalog: Mapping[str, str]
    """Short digests of the visible tools' definitions, keyed by tool id."""
    strategy: str
    limit: int
    """Number of matches of a search. Lower ranked tools are missed."""
    summary: Summary
    by_source: Mapping[str, Summary]
    by_language: Mapping[str, Summary]
    tools: tuple[ToolReport, ...]
    """Reports on wanted tools, beginning with tools that are never found."""
    untested: tuple[str, ...]
    """Ids of tools that no request wants."""
    unknown: tuple[str, ...]
    """Wanted tools outside the catalog, which count as missed."""
    pairs: tuple[ConfusionPair, ...]
    """Pairs of confused tools, most frequent first."""
    cost: Cost | None = None
    degraded: int = 0
    """Number of searches that lacked an optional stage, such as vectors."""
    outcomes: tuple[Outcome, ...]
    curve: tuple[CurvePoint, ...] = ()
    """Figures in catalogs of growing size, first without distractors; empty if not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """Overview of a saved report."""

    name: str
    """Name of the file."""
    time: str
    """Creation time (ISO 8601, UTC), from the file's name or else its modification time."""
    requests: int = 0
    tools: int = 0
    """Number of tools in the catalog."""
    catalog: str = ""
    """Digest of the catalog."""
    figures: Mapping[str, float]
    """Figures of all requests, as shares of 1."""
    degraded: int = 0
    """Number of searches that lacked an optional stage, such as vectors."""
    error: str = ""
    """Reason why the report cannot be read, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReportHead:
    """Fields of an `EvalReport` for an overview."""

    catalog: Mapping[str, str]
    summary: Summary
    degraded: int = 0


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_report(text: str, *, where: str) -> EvalReport:
    """Return the report that `write_report` wrote as *text*.

    Raises:
        ConfigError: If *text* is not a report; the message names *where*.
    """
    report: EvalReport = _read(EvalReport, text, where)
    return report


def _read(kind: type, text: str, where: str) -> Any:
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise ConfigError(f"{where} is not a report of 'gateway eval run'") from None
        raise ConfigError(f"{where}: {validation_message(error)}") from None


def write_report(report: EvalReport) -> str:
    """Return *report* as JSON."""
    return _adapter(EvalReport).dump_json(report, indent=1, by_alias=True).decode() + "\n"


def save_report(report: EvalReport, folder: Path) -> Path:
    """Write *report* to a new file, in a folder that is created if missing. Return its path.

    Raises:
        ConfigError: If the file cannot be written.
    """
    path = folder / f"{datetime.now(UTC).strftime(_FILE_NAME_FORMAT)}.json"
    try:
        write_atomically(path, write_report(report))
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error
    return path


def report_files(folder: Path) -> tuple[Path, ...]:
    """Return the paths of the reports in *folder*, newest last."""
    return tuple(sorted(path for path in folder.glob("*.json") if path.is_file()))


def list_reports(folder: Path) -> tuple[StoredReport, ...]:
    """Return overviews of the reports in *folder*, newest last. Unreadable ones have an `error`."""
    return tuple(_stored_report(path, *_file_version(path)) for path in report_files(folder))


def load_report(folder: Path, name: str) -> EvalReport:
    """Return the report in a file.

    Raises:
        InvalidRequestError: If *folder* does not contain the file.
        ConfigError: If the file cannot be read.
    """
    path = folder / name
    if path not in report_files(folder):
        raise InvalidRequestError("there is no such report")
    return _load(path, *_file_version(path))


def newest_report(folder: Path) -> EvalReport | None:
    """Return the newest report in *folder*; None without reports.

    Raises:
        ConfigError: If the newest file is not a report.
    """
    files = report_files(folder)
    return load_report(folder, files[-1].name) if files else None


def _file_version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=2)
def _load(path: Path, _changed_ns: int, _bytes: int) -> EvalReport:
    """Return the report in a file, cached by path, change time and size."""
    return read_report(read_text(path), where=path.name)


@lru_cache(maxsize=1024)
def _stored_report(path: Path, changed_ns: int, _bytes: int) -> StoredReport:
    try:
        time = datetime.strptime(path.stem, _FILE_NAME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        time = datetime.fromtimestamp(changed_ns / 1e9, UTC)
    iso_time = time.isoformat(timespec="microseconds")
    try:
        head: _ReportHead = _read(_ReportHead, read_text(path), path.name)
    except ConfigError as error:
        return StoredReport(name=path.name, time=iso_time, figures={}, error=str(error))
    return StoredReport(
        name=path.name,
        time=iso_time,
        requests=head.summary.requests,
        tools=len(head.catalog),
        catalog=catalog_digest(head.catalog),
        figures=head.summary.figures,
        degraded=head.degraded,
    )


_TOOL_COLUMNS = ("id", "found", "requests", "median_place", "outranked_by", "missing_words")


def to_page(report: EvalReport) -> str:
    """Return *report* as an HTML page."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    names = [*report.summary.figures]
    summaries = {"all": report.summary, **report.by_source, **report.by_language}
    figures = [
        (key, item.requests, *_values(item.figures, names)) for key, item in summaries.items()
    ]
    tools = [[getattr(tool, name) for name in _TOOL_COLUMNS] for tool in report.tools]
    pairs = [
        (pair.wanted, pair.first, pair.requests, "yes" if pair.are_twins else "")
        for pair in report.pairs
    ]
    missed = [
        (item.request.text, item.request.source, item.tools, item.places, item.found)
        for item in report.outcomes
        if item.missed
    ]
    return template.substitute(
        catalog=f"{len(report.catalog)} tools, strategy {escape(report.strategy)}",
        figures=_table(("", "requests", *names), figures),
        tokens=_table(("", "tokens"), asdict(report.cost).items() if report.cost else ()),
        curve=_table(
            ("tools", *names),
            ((item.tools, *_values(item.figures, names)) for item in report.curve),
        ),
        tools=_table([name.replace("_", " ") for name in _TOOL_COLUMNS], tools),
        pairs=_table(("wanted", "ranked first", "requests", "twins"), pairs),
        missed=_table(("request", "source", "wanted", "rank", "found"), missed),
    )


def _values(figures: Mapping[str, float], names: Iterable[str]) -> list[str]:
    values = map(figures.get, names)
    return ["" if value is None else f"{value:.1%}" for value in values]


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [_line(heads, "th"), *(_line(row, "td") for row in rows)]
    return "\n".join(lines)


def _line(cells: Iterable[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_text(cell))}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    if cell is None:
        return "not found"
    return ", ".join(map(_text, cell)) if isinstance(cell, tuple | Mapping) else str(cell)
