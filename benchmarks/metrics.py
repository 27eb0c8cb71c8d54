"""What the runs of a set are worth, and what should come after its first tools. Pure.

A single ranking is judged by `gateway.plugins.quality.metrics`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.data import Row
from gateway.plugins.quality.metrics import RECALL_AT, Figures, mean, score

STEPS = 5
"""How many suggestions of a next step count."""
COLUMNS = (
    "hit@1",
    *(f"recall@{depth}" for depth in RECALL_AT),
    "ndcg@10",
    "mrr",
    "comp@10",
    "map@10",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextGold:
    """What should come after the first tool of a task."""

    first: str
    """The tool just used; suggesting it counts for nothing."""
    following: str
    """The one tool that comes next; empty where any of `others` will do."""
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one run over one set."""

    queries: int
    answered: int
    """How many of the queries the run holds; the others count as found nothing."""
    figures: Figures
    by_language: Mapping[str, Figures]
    by_language_count: Mapping[str, int]
    next_figures: Figures
    """Empty if the run suggests nothing, or the set knows no order."""
    next_count: int
    """How many queries have a gold next step."""


def strings(value: object) -> list[str]:
    """Return the texts of a JSON list; empty for everything else."""
    return [str(each) for each in value] if isinstance(value, list) else []


def gold_of(query: Row) -> tuple[frozenset[str], ...]:
    """Return the groups of *query*; each relevant tool is its own where none are written."""
    groups = query.get("groups")
    if isinstance(groups, list) and groups:
        return tuple(frozenset(strings(group)) for group in groups)
    return tuple(frozenset((tool,)) for tool in strings(query.get("relevant")))


def next_gold(query: Row) -> NextGold | None:
    """Return what should be suggested after the first tool of *query*; None if nothing is known."""
    main = str(query.get("main") or "")
    if main:
        others = tuple(tool for tool in strings(query.get("relevant")) if tool != main)
        return NextGold(first=main, following="", others=others) if others else None
    steps = tuple(dict.fromkeys(strings(query.get("sequence"))))
    if len(steps) < 2:
        return None
    return NextGold(first=steps[0], following=steps[1], others=steps[1:])


def score_next(suggested: Sequence[str], gold: NextGold) -> Figures:
    """Judge the suggestions after the first tool of a task."""
    top = [tool for tool in dict.fromkeys(suggested) if tool != gold.first][:STEPS]
    met = set(top) & set(gold.others)
    return {
        "next_hit@5": float(gold.following in top if gold.following else bool(met)),
        "next_rec@5": len(met) / len(gold.others),
    }


def summary(queries: Sequence[Row], run: Sequence[Row]) -> Summary:
    """Judge *run*, one line a query, against the gold of *queries*.

    Queries without any gold tool are left out: nothing can be right there.
    """
    lines = {str(line["id"]): line for line in run}
    nothing: Row = {}
    judged = [query for query in queries if gold_of(query)]
    scored: defaultdict[str, list[Figures]] = defaultdict(list)
    every: list[Figures] = []
    steps: list[Figures] = []
    for query in judged:
        line = lines.get(str(query["id"]), nothing)
        every.append(score(strings(line.get("ranked")), gold_of(query)))
        scored[str(query.get("lang") or "und")].append(every[-1])
        after = next_gold(query)
        if after:
            steps.append(score_next(strings(line.get("next")), after))
    suggests = any("next" in line for line in run)
    return Summary(
        queries=len(judged),
        answered=sum(str(query["id"]) in lines for query in judged),
        figures=mean(every),
        by_language={language: mean(scored[language]) for language in sorted(scored)},
        by_language_count={language: len(scored[language]) for language in sorted(scored)},
        next_figures=mean(steps) if suggests else {},
        next_count=len(steps) if suggests else 0,
    )


def to_json(found: Summary) -> dict[str, object]:
    """Write *found* as JSON values: the figures at the top, then next steps and languages."""
    written: dict[str, object] = {
        "queries": found.queries,
        "answered": found.answered,
        **found.figures,
    }
    if found.next_figures:
        written["next"] = {**found.next_figures, "n": found.next_count}
    counts = found.by_language_count
    written["per_lang"] = {
        language: {**figures, "n": counts[language]}
        for language, figures in found.by_language.items()
    }
    return written
