"""What an evaluation found, as values that are written as JSON and read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from gateway.errors import ConfigError
from gateway.quality.requests import EvalRequest
from gateway.runtime.json_models import read_value


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


@cache
def _adapter() -> TypeAdapter[EvalReport]:
    return TypeAdapter(EvalReport)


def read_report(text: str, *, where: str) -> EvalReport:
    """Read a report as `write_report` writes it.

    Raises:
        ConfigError: It is none; *where* names it.
    """
    try:
        raw = json.loads(text)
    except ValueError:
        raise ConfigError(f"{where} is no report of 'gateway eval run'") from None
    report: EvalReport = read_value(_adapter(), raw, where=where)
    return report


def write_report(report: EvalReport) -> str:
    """Return *report* as JSON."""
    return _adapter().dump_json(report, indent=1, by_alias=True).decode() + "\n"


def report_files(folder: Path) -> tuple[Path, ...]:
    """Return the reports of a folder, the newest last: their names begin with their date."""
    return tuple(sorted(folder.glob("*.json")))


def newest_report(folder: Path) -> EvalReport | None:
    """Return the newest report of a folder; None if there is none.

    Raises:
        ConfigError: The newest file is no report.
    """
    files = report_files(folder)
    if not files:
        return None
    try:
        text = files[-1].read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{files[-1].name} cannot be read: {type(error).__name__}") from None
    return read_report(text, where=files[-1].name)
