"""Outcomes of requests -> which tools are found, and which stand in their place. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from gateway.plugins.quality.report import ConfusionPair, Outcome, ToolReport
from gateway.plugins.quality.twins import Twins

_NOWHERE = float("inf")
_NAMED = 5


def report_tools(outcomes: Iterable[Outcome], *, limit: int) -> tuple[ToolReport, ...]:
    """Report on each tool that a request wants; those that are never found come first.

    Args:
        outcomes: Of the requests.
        limit: How many matches a search gives.
    """
    places: defaultdict[str, list[float]] = defaultdict(list)
    above: defaultdict[str, Counter[str]] = defaultdict(Counter)
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for tool, place in zip(outcome.tools, outcome.places, strict=True):
            places[tool].append(place or _NOWHERE)
            better = outcome.found[: (place or limit + 1) - 1][:limit]
            above[tool].update(other for other in better if other not in outcome.tools)
            words[tool].update(outcome.missing_words.get(tool, ()))
    reports = (_report(tool, places[tool], above[tool], words[tool], limit) for tool in places)
    return tuple(sorted(reports, key=lambda each: (each.found / each.requests, each.id)))


def _report(
    tool: str, places: Sequence[float], above: Counter[str], words: Counter[str], limit: int
) -> ToolReport:
    found, middle = sum(place <= limit for place in places), median(places)
    return ToolReport(
        id=tool,
        requests=len(places),
        found=found,
        first=sum(place == 1 for place in places),
        top_five=sum(place <= 5 for place in places),
        findable=found > 0,
        median_place=None if middle == _NOWHERE else middle,
        outranked_by=dict(_most_common(above)),
        missing_words=tuple(word for word, _ in _most_common(words)),
    )


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]


def find_confusions(outcomes: Iterable[Outcome], twins: Twins) -> tuple[ConfusionPair, ...]:
    """Return which tools came first where others were wanted, the most frequent pair first."""
    counts: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        wanted = {key for group in outcome.request.wanted for key in group}
        if outcome.found and wanted.isdisjoint(outcome.found[:1]):
            counts.update((tool, outcome.found[0]) for tool in outcome.tools)
    pairs = (
        ConfusionPair(
            wanted=wanted, first=first, requests=count, are_twins=_are(twins, wanted, first)
        )
        for (wanted, first), count in counts.items()
    )
    return tuple(sorted(pairs, key=lambda each: (-each.requests, each.wanted, each.first)))


def _are(twins: Mapping[str, frozenset[str]], tool: str, other: str) -> bool:
    return other in twins.get(tool, ())
