"""Metrics of rankings, and reports on tools and confused pairs of tools.

* Every figure is a share of 1.
* The gold of a query, its correct answer, is a list of groups of tools. A group is served if one of
  its tools is found.
* Sums have a fixed order, so that equal rankings have exactly equal figures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import TypeAlias

import numpy as np

from gateway.plugins.quality.report import ConfusionPair, Outcome, ToolReport
from gateway.plugins.quality.twins import Twins

Figures: TypeAlias = Mapping[str, float]
Gold: TypeAlias = Sequence[frozenset[str]]

DEPTH = 10
RECALL_AT = (1, 3, 5, DEPTH)
_GAINS = tuple(float(1 / np.log2(place + 2)) for place in range(DEPTH))
_MAX_GAINS = (0.0, *accumulate(_GAINS))
"""Maximum discounted gain, by number of groups."""


def score(ranked: Sequence[str], gold: Gold) -> Figures:
    """Return the figures of one ranking, keyed by name.

    Args:
        ranked: Tool ids, best first.
        gold: Groups of tools that serve the query. At least one group.

    Example:
        >>> score(["b", "a"], [frozenset({"a"})])["mrr"]
        0.5
    """
    relevant = frozenset[str]().union(*gold)
    recalls = {f"recall@{depth}": _recall(ranked[:depth], gold) for depth in RECALL_AT}
    served = _serving_positions(ranked[:DEPTH], gold)
    most = min(DEPTH, len(gold))
    gain = precision = 0.0
    for count, place in enumerate(served, 1):
        gain += _GAINS[place]
        precision += count / (place + 1)
    places = (place for place, tool in enumerate(ranked, 1) if tool in relevant)
    return {
        "hit@1": float(bool(ranked) and ranked[0] in relevant),
        **recalls,
        "ndcg@10": gain / _MAX_GAINS[most],
        "mrr": next((1 / place for place in places), 0.0),
        "comp@10": float(recalls["recall@10"] >= 1),
        "map@10": precision / most,
    }


def _recall(top: Sequence[str], gold: Gold) -> float:
    return sum(not group.isdisjoint(top) for group in gold) / len(gold)


def _serving_positions(top: Sequence[str], gold: Gold) -> list[int]:
    """Return the positions in *top*, from 0, of tools that serve a new group."""
    waiting = list(gold)
    places: list[int] = []
    for place, tool in enumerate(top):
        group = next((group for group in waiting if tool in group), None)
        if group is not None:
            waiting.remove(group)
            places.append(place)
    return places


def mean(rows: Sequence[Figures]) -> Figures:
    """Return the mean of each figure; {} without rows."""
    if not rows:
        return {}
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


_NOT_FOUND_RANK = float("inf")
_MAX_NAMED = 5


def report_tools(outcomes: Iterable[Outcome], *, limit: int) -> tuple[ToolReport, ...]:
    """Report on each wanted tool, beginning with tools that are never found.

    Args:
        outcomes: Outcomes of the requests.
        limit: Number of matches of a search. Lower ranked tools are missed.
    """
    places: defaultdict[str, list[float]] = defaultdict(list)
    above: defaultdict[str, Counter[str]] = defaultdict(Counter)
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for tool, place in zip(outcome.tools, outcome.places, strict=True):
            places[tool].append(place or _NOT_FOUND_RANK)
            better = outcome.found[: (place or limit + 1) - 1][:limit]
            above[tool].update(other for other in better if other not in outcome.tools)
            words[tool].update(outcome.missing_words.get(tool, ()))
    reports = (_tool_report(tool, places[tool], above[tool], words[tool], limit) for tool in places)
    return tuple(sorted(reports, key=lambda each: (each.found / each.requests, each.id)))


def _tool_report(
    tool: str, places: Sequence[float], above: Counter[str], words: Counter[str], limit: int
) -> ToolReport:
    found_count, middle = sum(place <= limit for place in places), median(places)
    return ToolReport(
        id=tool,
        requests=len(places),
        found=found_count,
        first=sum(place == 1 for place in places),
        top_five=sum(place <= 5 for place in places),
        findable=found_count > 0,
        median_place=None if middle == _NOT_FOUND_RANK else middle,
        outranked_by=dict(_most_common(above)),
        missing_words=tuple(word for word, _ in _most_common(words)),
    )


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_NAMED]


def find_confusions(outcomes: Iterable[Outcome], twins: Twins) -> tuple[ConfusionPair, ...]:
    """Return pairs of a wanted tool and the tool that ranked first in its place, by frequency."""
    counts: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        wanted_tool = {key for group in outcome.request.wanted for key in group}
        if outcome.found and wanted_tool.isdisjoint(outcome.found[:1]):
            counts.update((tool, outcome.found[0]) for tool in outcome.tools)
    pairs = (
        ConfusionPair(
            wanted=wanted_tool,
            first=first,
            requests=count,
            are_twins=_is_twin_pair(twins, wanted_tool, first),
        )
        for (wanted_tool, first), count in counts.items()
    )
    return tuple(sorted(pairs, key=lambda each: (-each.requests, each.wanted, each.first)))


def _is_twin_pair(twins: Mapping[str, frozenset[str]], tool: str, other: str) -> bool:
    return other in twins.get(tool, ())
