"""What a report holds: systems, sets, and what ours is worth against the floor. Pure.

The floor of a set is its best measured baseline, by recall@5, in the same view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.bootstrap import Difference, paired
from benchmarks.data import Benchmark, Row
from benchmarks.metrics import gold_of, strings, summary
from benchmarks.ranking import View
from gateway.plugins.quality.metrics import Figures, score

Origin = Literal["ours", "baseline", "given"]

FIGURE = "recall@5"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One row: what one system reaches on one set, in one view."""

    name: str
    view: View
    origin: Origin
    figures: Figures
    typos: Figures
    """The same queries, misspelt."""
    by_language: Mapping[str, Figures]
    next_figures: Figures
    recalls: tuple[float, ...]
    """Recall@5 of each clean query, in the order of the set; empty for a given row."""

    @property
    def recall(self) -> float:
        """Recall@5 of the clean queries."""
        return self.figures.get(FIGURE, 0.0)

    @property
    def typo_share(self) -> float | None:
        """The share of the clean recall@5 that typing errors leave; None if it is not known."""
        return self.typos[FIGURE] / self.recall if self.recall and self.typos else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """One of ours against the floor, query by query."""

    ours: System
    floor: System
    difference: Difference
    better: int
    same: int
    worse: int
    """Queries where ours finds more, as much, or less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    """One folder, measured."""

    name: str
    tools: int
    languages: Mapping[str, int]
    """How many queries each language has."""
    systems: tuple[System, ...]
    versus: tuple[Versus, ...]
    """In each view that has a floor."""

    @property
    def queries(self) -> int:
        """How many queries were judged."""
        return sum(self.languages.values())


def system_of(
    benchmark: Benchmark,
    name: str,
    view: View,
    origin: Origin,
    clean: Iterable[Row],
    typed: Iterable[Row],
) -> System:
    """Judge the clean and the misspelt run of one system."""
    lines = list(clean)
    found = summary(benchmark.queries, lines)
    by_id = {str(line["id"]): line for line in lines}
    golden = {str(query["id"]): gold_of(query) for query in benchmark.queries}
    return System(
        name=name,
        view=view,
        origin=origin,
        figures=found.figures,
        typos=summary(benchmark.queries, list(typed)).figures,
        by_language=found.by_language,
        next_figures=found.next_figures,
        recalls=tuple(
            score(strings(by_id[query].get("ranked")), gold)[FIGURE]
            for query, gold in golden.items()
            if gold
        ),
    )


def given_of(name: str, figures: Figures) -> System:
    """Make a row of figures that somebody else measured."""
    return System(
        name=name,
        view="matches",
        origin="given",
        figures=figures,
        typos={},
        by_language={},
        next_figures={},
        recalls=(),
    )


def against(systems: Sequence[System]) -> Iterator[Versus]:
    """Hold the first of ours against the floor, in each view that has one."""
    views: tuple[View, ...] = ("matches", "shown")
    for view in views:
        ours = next((each for each in systems if each.origin == "ours" and each.view == view), None)
        floor = best_of(systems, view)
        if ours and floor and ours.recalls:
            pairs = list(zip(ours.recalls, floor.recalls, strict=True))
            better, worse = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
            yield Versus(
                ours=ours,
                floor=floor,
                difference=paired(ours.recalls, floor.recalls),
                better=better,
                same=len(pairs) - better - worse,
                worse=worse,
            )


def best_of(systems: Iterable[System], view: View, *, origin: Origin = "baseline") -> System | None:
    """Return the best row of one origin in one view, by recall@5; None if there is none."""
    found = [each for each in systems if each.origin == origin and each.view == view]
    return max(found, key=lambda each: each.recall, default=None)
