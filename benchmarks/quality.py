"""What the graph adds to search: every strategy, with and without edges, in both views.

* Each strategy asks each query once an edge source; both views are read from the same answers.
* Goals belong to named sets; where a set has none, only the law about `shown` holds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from benchmarks.data import Benchmark
from benchmarks.metrics import summary
from benchmarks.ranking import Answered, Edges, View, query_texts, rank
from benchmarks.recalled import Recalled
from gateway import LocalEmbedder
from gateway.types import Strategy

VIEWS: tuple[View, ...] = get_args(View)
LOST = 0.005
"""What a row may lose before the table names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    strategy: Strategy
    edges: Edges
    view: View
    figures: Mapping[str, float | None]
    """Those of `metrics`, and ``direct``: the share of the first match's direct dependencies that
    are listed; None without given edges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure that strategy ``auto`` is to reach on a set."""

    set: str
    figure: str
    edges: Edges
    view: View
    target: float


GOALS = (
    Goal(set="toollinkos", figure="recall@5", edges="given", view="shown", target=0.72),
    Goal(set="toollinkos", figure="recall@10", edges="given", view="shown", target=0.93),
    Goal(set="toollinkos", figure="map@10", edges="given", view="shown", target=0.89),
    Goal(set="toollinkos", figure="comp@10", edges="given", view="shown", target=0.80),
    Goal(set="toollinkos", figure="direct", edges="given", view="shown", target=1.0),
    Goal(set="toollinkos", figure="map@10", edges="derived", view="shown", target=0.35),
    Goal(set="mcp_bench", figure="next_hit@5", edges="derived", view="matches", target=0.75),
    Goal(set="nestful", figure="next_hit@5", edges="derived", view="matches", target=0.93),
)


def edges_of(benchmark: Benchmark) -> tuple[Edges, ...]:
    """Return the edge sources that a set can be searched with."""
    return ("given", "derived", "none") if benchmark.edges else ("derived", "none")


def table(benchmark: Benchmark, strategies: Sequence[Strategy]) -> Iterator[Row]:
    """Measure one pair of rows after another, as they are asked for."""
    texts = query_texts(benchmark)
    # A long request is many texts, and embedding them costs far more than all searches do.
    embedder = Recalled(LocalEmbedder()) if set(strategies) - {"graph"} else None
    for strategy in strategies:
        for edges in edges_of(benchmark):
            work = rank(
                benchmark, texts, strategy=strategy, edges=edges, embedder=embedder or "local"
            )
            answers = asyncio.run(work)
            direct = _direct(benchmark, answers) if edges == "given" else None
            for view in VIEWS:
                result = summary(benchmark.queries, [answer.line(view) for answer in answers])
                figures = {**result.figures, **result.next_figures, "direct": direct}
                yield Row(strategy=strategy, edges=edges, view=view, figures=figures)


def _direct(benchmark: Benchmark, answers: Sequence[Answered]) -> float | None:
    """Return the share of direct dependencies of first matches that stand in any list."""
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for edge in benchmark.edges:
        needs[str(edge["source"])].add(str(edge["target"]))
    wanted = listed = 0
    for answer in answers:
        direct = needs.get(answer.matches[0], set()) if answer.matches else set()
        direct = direct & benchmark.entity_ids.keys()
        wanted += len(direct)
        listed += len(direct & {*answer.matches, *answer.prerequisites})
    return listed / wanted if wanted else None


def goals(name: str, rows: Sequence[Row]) -> list[dict[str, object]]:
    """Hold the rows of strategy ``auto`` against the goals of the set called *name*."""
    by_kind = {(row.edges, row.view): row.figures for row in rows if row.strategy == "auto"}
    found: list[dict[str, object]] = []
    for goal in GOALS:
        reached = by_kind.get((goal.edges, goal.view), {}).get(goal.figure)
        if goal.set == name and reached is not None:
            found.append(
                {
                    "figure": goal.figure,
                    "edges": goal.edges,
                    "view": goal.view,
                    "reached": reached,
                    "target": goal.target,
                    "met": reached >= goal.target,
                }
            )
    return found


def losses(rows: Sequence[Row]) -> list[str]:
    """Name what each row loses by more than `LOST`; an empty text where it loses nothing.

    The view ``shown`` is held against ``matches`` by recall@10, but with given edges, where the
    room is meant for dependencies; ``matches`` with edges against none by recall@5.
    """
    by_kind = {(row.strategy, row.edges, row.view): row.figures for row in rows}
    found = []
    for row in rows:
        if row.view == "matches":
            name, against = "recall@5", "no edges"
            other = by_kind.get((row.strategy, "none", "matches"), row.figures)
        else:
            name, against = "recall@10", "matches"
            other = by_kind.get((row.strategy, row.edges, "matches"), row.figures)
        lost = (other.get(name) or 0.0) - (row.figures.get(name) or 0.0)
        counts = lost > LOST and (row.view == "matches" or row.edges != "given")
        found.append(f"-{100 * lost:.1f} {name} on {against}" if counts else "")
    return found
