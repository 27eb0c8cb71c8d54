"""What an evaluation found, as values that are written as JSON and read again.

Reports may be kept in a folder, one file each, whose name is the time.

A report as one HTML page that loads nothing from elsewhere. Pure.

What servers say of their tools is data: all of it is escaped.
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

_NAME = "%Y%m%dT%H%M%S.%fZ"
"""The name of a file is its time in UTC (ISO 8601, basic format): names sort by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one request found."""

    request: EvalRequest
    found: tuple[str, ...]
    """The ids of the first ten, best first."""
    places: tuple[int | None, ...] = ()
    """Where each wanted tool, an alternative or a twin of it stands, from 1; None if it is not
    found at all."""
    tools: tuple[str, ...] = ()
    """Which tool each place is counted for."""
    missed: bool = False
    """Whether a wanted tool is not among those that a search gives."""
    accepted: bool = True
    """Whether the answer is given without a warning that nothing in it is likely."""
    confidence: float = 0.0
    """Of the best match, 0 to 1."""
    figures: Mapping[str, float]
    """Empty if no tool serves the request."""
    missing_words: Mapping[str, tuple[str, ...]]
    """The words of the request that a missed tool lacks, by its id."""
    follows: bool | None = None
    """Whether the second tool is suggested after the first; None if the request has no order."""
    answer_tokens: int = 0
    schema_tokens: int = 0
    degraded: bool = False
    """Whether the search went without something, such as vectors, twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of some requests."""

    requests: int
    unanswerable: int
    """How many of them no tool serves."""
    figures: Mapping[str, float]
    """Means over those that a tool serves, and ``false_accepts`` over the others; shares of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """How one tool is found by the requests that want it."""

    id: str
    requests: int
    found: int
    """How many of them have it among the tools that a search gives."""
    first: int
    """How many of them have it as the first match (hit@1)."""
    top_five: int
    """How many of them have it among the first five (hit@5)."""
    findable: bool
    """Whether any has."""
    median_place: float | None
    """None if more than half of the requests do not find it at all."""
    outranked_by: Mapping[str, int]
    """Which tools stood above it, and how often, the most frequent first."""
    missing_words: tuple[str, ...]
    """Words of the requests that missed it and that it lacks, the most frequent first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfusionPair:
    """A tool that came first where another one was wanted."""

    wanted: str
    first: str
    requests: int
    are_twins: bool
    """Whether both say the same: then it is no miss, but is it one tool or two?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Estimated tokens that a model reads."""

    catalog: int
    """Of all schemas, as they would be sent without a gateway."""
    fixed: int
    """Of the meta-tools, which stand in each request."""
    answer_p50: int
    answer_p95: int
    """Of the answer of a search."""
    schemas_p50: int
    """Of the schemas of the found tools, which a search brings besides."""
    break_even: int
    """After so many searches in one conversation all schemas would have been cheaper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What is found in a catalog that grew by other people's tools."""

    tools: int
    """How many tools there are in all."""
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalReport:
    """What an evaluation found."""

    catalog: Mapping[str, str]
    """A short digest of each tool that may be found, by id."""
    strategy: str
    limit: int
    """How many matches a search gives: what is not among them is missed."""
    summary: Summary
    by_source: Mapping[str, Summary]
    by_language: Mapping[str, Summary]
    tools: tuple[ToolReport, ...]
    """Those that some request wants, never found ones first."""
    untested: tuple[str, ...]
    """The ids of the tools that no request wants."""
    unknown: tuple[str, ...]
    """What requests want and the catalog lacks; counted as missed."""
    pairs: tuple[ConfusionPair, ...]
    """The most frequent first."""
    cost: Cost | None = None
    degraded: int = 0
    """How many searches went without something: the figures are not those of a healthy gateway."""
    outcomes: tuple[Outcome, ...]
    curve: tuple[CurvePoint, ...] = ()
    """With more and more distractors; the first is the catalog alone. Empty if not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    """A report in a folder, without what it says of single tools and requests."""

    name: str
    """Of its file."""
    time: str
    """When it was made, ISO 8601 in UTC: by its name, or else when its file was changed."""
    requests: int = 0
    tools: int = 0
    """How many tools the catalog had."""
    catalog: str = ""
    """The digest of that catalog; equal ones mean equal catalogs."""
    figures: Mapping[str, float]
    """Of all requests; shares of 1."""
    degraded: int = 0
    """As in `EvalReport`."""
    error: str = ""
    """Why it cannot be read; empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What `list_reports` reads of an `EvalReport`."""

    catalog: Mapping[str, str]
    summary: Summary
    degraded: int = 0


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_report(text: str, *, where: str) -> EvalReport:
    """Read a report as `write_report` writes it.

    Raises:
        ConfigError: It is none; *where* names it.
    """
    report: EvalReport = _read(EvalReport, text, where)
    return report


def _read(kind: type, text: str, where: str) -> Any:
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise ConfigError(f"{where} is no report of 'gateway eval run'") from None
        raise ConfigError(f"{where}: {validation_message(error)}") from None


def write_report(report: EvalReport) -> str:
    """Return *report* as JSON."""
    return _adapter(EvalReport).dump_json(report, indent=1, by_alias=True).decode() + "\n"


def save_report(report: EvalReport, folder: Path) -> Path:
    """Write *report* to a new file in *folder*, which is made if it is missing, and return it.

    Raises:
        ConfigError: It cannot be written.
    """
    path = folder / f"{datetime.now(UTC).strftime(_NAME)}.json"
    try:
        write_atomically(path, write_report(report))
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error
    return path


def report_files(folder: Path) -> tuple[Path, ...]:
    """Return the reports of a folder, the newest last: their names begin with their date."""
    return tuple(sorted(path for path in folder.glob("*.json") if path.is_file()))


def list_reports(folder: Path) -> tuple[StoredReport, ...]:
    """Return the reports of a folder, the newest last; those that cannot be read say why."""
    return tuple(_head(path, *_version(path)) for path in report_files(folder))


def load_report(folder: Path, name: str) -> EvalReport:
    """Return the report in the file *name* of *folder*.

    Raises:
        InvalidRequestError: `list_reports` does not list it.
        ConfigError: It cannot be read.
    """
    path = folder / name
    if path not in report_files(folder):
        raise InvalidRequestError("there is no such report")
    return _load(path, *_version(path))


def newest_report(folder: Path) -> EvalReport | None:
    """Return the newest report of a folder; None if there is none.

    Raises:
        ConfigError: The newest file is no report.
    """
    files = report_files(folder)
    return load_report(folder, files[-1].name) if files else None


def _version(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=2)
def _load(path: Path, _changed_ns: int, _bytes: int) -> EvalReport:
    """Return the report in *path*; it is read again once the file changed."""
    return read_report(read_text(path), where=path.name)


@lru_cache(maxsize=1024)
def _head(path: Path, changed_ns: int, _bytes: int) -> StoredReport:
    try:
        time = datetime.strptime(path.stem, _NAME).replace(tzinfo=UTC)
    except ValueError:
        time = datetime.fromtimestamp(changed_ns / 1e9, UTC)
    shown = time.isoformat(timespec="microseconds")
    try:
        head: _Head = _read(_Head, read_text(path), path.name)
    except ConfigError as error:
        return StoredReport(name=path.name, time=shown, figures={}, error=str(error))
    return StoredReport(
        name=path.name,
        time=shown,
        requests=head.summary.requests,
        tools=len(head.catalog),
        catalog=catalog_digest(head.catalog),
        figures=head.summary.figures,
        degraded=head.degraded,
    )


_TOOL = ("id", "found", "requests", "median_place", "outranked_by", "missing_words")


def to_page(report: EvalReport) -> str:
    """Return *report* as a page: figures, tools, pairs and every miss."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    names = [*report.summary.figures]
    summaries = {"all": report.summary, **report.by_source, **report.by_language}
    figures = [
        (key, each.requests, *_values(each.figures, names)) for key, each in summaries.items()
    ]
    tools = [[getattr(tool, name) for name in _TOOL] for tool in report.tools]
    pairs = [
        (pair.wanted, pair.first, pair.requests, "one tool or two?" if pair.are_twins else "")
        for pair in report.pairs
    ]
    missed = [
        (each.request.text, each.request.source, each.tools, each.places, each.found)
        for each in report.outcomes
        if each.missed
    ]
    return template.substitute(
        catalog=f"{len(report.catalog)} tools, strategy {escape(report.strategy)}",
        figures=_table(("", "requests", *names), figures),
        tokens=_table(("", "tokens"), asdict(report.cost).items() if report.cost else ()),
        curve=_table(
            ("tools", *names),
            ((each.tools, *_values(each.figures, names)) for each in report.curve),
        ),
        tools=_table([name.replace("_", " ") for name in _TOOL], tools),
        pairs=_table(("wanted", "came first", "requests", "equal"), pairs),
        missed=_table(("request", "source", "wanted", "place", "found instead"), missed),
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
