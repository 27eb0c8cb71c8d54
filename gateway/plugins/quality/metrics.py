"""What a ranking is worth. Pure functions; every figure is a share of 1.

* The gold of a query is a list of groups: a group is served as soon as one of its tools is found.
* Sums run in one fixed order, so that two runs of the same ranking agree to the last digit.

Outcomes of requests -> which tools are found, and which stand in their place. Pure.
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
_IDEAL = (0.0, *accumulate(_GAINS))
"""The most that so many groups can gain."""


def score(ranked: Sequence[str], gold: Gold) -> Figures:
    """Judge one ranking.

    Args:
        ranked: Tool ids, best first.
        gold: At least one group.
    """
    relevant = frozenset[str]().union(*gold)
    recalls = {f"recall@{depth}": _recall(ranked[:depth], gold) for depth in RECALL_AT}
    served = _served(ranked[:DEPTH], gold)
    most = min(DEPTH, len(gold))
    gain = precision = 0.0
    for count, place in enumerate(served, 1):
        gain += _GAINS[place]
        precision += count / (place + 1)
    places = (place for place, tool in enumerate(ranked, 1) if tool in relevant)
    return {
        "hit@1": float(bool(ranked) and ranked[0] in relevant),
        **recalls,
        "ndcg@10": gain / _IDEAL[most],
        "mrr": next((1 / place for place in places), 0.0),
        "comp@10": float(recalls["recall@10"] >= 1),
        "map@10": precision / most,
    }


def _recall(top: Sequence[str], gold: Gold) -> float:
    return sum(not group.isdisjoint(top) for group in gold) / len(gold)


def _served(top: Sequence[str], gold: Gold) -> list[int]:
    """Return the places, from 0, at which a group is served that was not yet."""
    waiting = list(gold)
    places: list[int] = []
    for place, tool in enumerate(top):
        group = next((group for group in waiting if tool in group), None)
        if group is not None:
            waiting.remove(group)
            places.append(place)
    return places


def mean(rows: Sequence[Figures]) -> Figures:
    """Average each figure; empty without rows."""
    if not rows:
        return {}
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


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
