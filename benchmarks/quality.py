"""What the graph adds to search: every strategy, with and without edges, in both views.

* Each strategy asks each query once an edge source; both views are read from the same answers.
* Goals belong to named sets; where a set has none, only the law about `shown` holds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import get_args

from benchmarks.data import Benchmark
from benchmarks.metrics import Figures, summary
from benchmarks.ranking import Answered, Edges, View, asked, rank
from benchmarks.recalled import Recalled
from gateway import LocalEmbedder
from gateway.types import Strategy

VIEWS: tuple[View, ...] = get_args(View)
LOST = 0.005
"""What a row may lose before the table says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    strategy: Strategy
    edges: Edges
    view: View
    figures: Figures
    next_figures: Figures
    direct: float | None
    """Share of the first match's direct dependencies that are listed; None without given edges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure that strategy ``auto`` is to reach on a set."""

    figure: str
    edges: Edges
    view: View
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A goal, and what was reached."""

    goal: Goal
    reached: float

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.reached >= self.goal.least


def _goals(edges: Edges, view: View, **least: float) -> tuple[Goal, ...]:
    return tuple(
        Goal(figure=name.replace("_at_", "@"), edges=edges, view=view, least=figure)
        for name, figure in least.items()
    )


GOALS: Mapping[str, tuple[Goal, ...]] = MappingProxyType(
    {
        "toollinkos": (
            *_goals(
                "given",
                "shown",
                recall_at_5=0.72,
                recall_at_10=0.93,
                map_at_10=0.89,
                comp_at_10=0.80,
                direct=1.0,
            ),
            *_goals("derived", "shown", map_at_10=0.35),
        ),
        "mcp_bench": _goals("derived", "matches", next_hit_at_5=0.75),
        "nestful": _goals("derived", "matches", next_hit_at_5=0.93),
    }
)


def edges_of(benchmark: Benchmark) -> tuple[Edges, ...]:
    """Give the edge sources that a set can be searched with."""
    return ("given", "derived", "none") if benchmark.edges else ("derived", "none")


def table(benchmark: Benchmark, strategies: Sequence[Strategy]) -> Iterator[Row]:
    """Measure one pair of rows after another, as they are asked for."""
    texts = asked(benchmark)
    # A long request is many texts, and embedding them costs far more than all searches do.
    embedder = Recalled(LocalEmbedder()) if set(strategies) - {"graph"} else None
    for strategy in strategies:
        for edges in edges_of(benchmark):
            work = rank(
                benchmark, texts, strategy=strategy, edges=edges, embedder=embedder or "local"
            )
            found = asyncio.run(work)
            direct = _direct(benchmark, found) if edges == "given" else None
            for view in VIEWS:
                judged = summary(benchmark.queries, [each.line(view) for each in found])
                yield Row(
                    strategy=strategy,
                    edges=edges,
                    view=view,
                    figures=judged.figures,
                    next_figures=judged.next_figures,
                    direct=direct,
                )


def _direct(benchmark: Benchmark, found: Sequence[Answered]) -> float | None:
    """Give the share of direct dependencies of first matches that stand in any list."""
    needs: defaultdict[str, set[str]] = defaultdict(set)
    for edge in benchmark.edges:
        needs[str(edge["source"])].add(str(edge["target"]))
    wanted = listed = 0
    for each in found:
        direct = needs.get(each.matches[0], set()) if each.matches else set()
        direct = direct & benchmark.entity_ids.keys()
        wanted += len(direct)
        listed += len(direct & {*each.matches, *each.prerequisites})
    return listed / wanted if wanted else None


def judged(name: str, rows: Sequence[Row]) -> list[Judged]:
    """Hold the rows of strategy ``auto`` against the goals of the set called *name*."""
    by_kind = {(row.edges, row.view): row for row in rows if row.strategy == "auto"}
    return [
        Judged(goal=goal, reached=reached)
        for goal in GOALS.get(name, ())
        if (row := by_kind.get((goal.edges, goal.view))) is not None
        and (reached := figure(row, goal.figure)) is not None
    ]


def figure(row: Row, name: str) -> float | None:
    """Give one figure of a row by its name; None if it has none."""
    if name == "direct":
        return row.direct
    return {**row.figures, **row.next_figures}.get(name)


def losing(rows: Sequence[Row]) -> list[str]:
    """Say of each row what it loses by more than `LOST`; empty where it loses nothing.

    The view ``shown`` is held against ``matches`` by recall@10, but with given edges, where the
    room is meant for dependencies; ``matches`` with edges against none by recall@5.
    """
    found = {(row.strategy, row.edges, row.view): row for row in rows}
    return [_loss(row, found) for row in rows]


def _loss(row: Row, rows: Mapping[tuple[Strategy, Edges, View], Row]) -> str:
    if row.view == "matches":
        name, other = "recall@5", rows.get((row.strategy, "none", "matches"))
    elif row.edges == "given":
        return ""
    else:
        name, other = "recall@10", rows.get((row.strategy, row.edges, "matches"))
    if other is None:
        return ""
    lost = other.figures.get(name, 0.0) - row.figures.get(name, 0.0)
    against = "no edges" if row.view == "matches" else "matches"
    return f"-{100 * lost:.1f} {name} on {against}" if lost > LOST else ""
