"""Every strategy and every baseline over every set, clean and misspelt, held against each other.

* Ours goes through the public API; the baselines are computed here, in the same run.
* Figures that somebody else measured may be given; they are marked, and cannot be resampled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks import baselines, ranking
from benchmarks.data import Benchmark, read
from benchmarks.metrics import summary
from benchmarks.pages import page, replace_report
from benchmarks.ranking import Answered, View, Way, query_texts, rank
from benchmarks.systems import SetReport, System, against, given_of, system_of
from gateway import Embedder
from gateway.errors import ConfigError
from gateway.plugins.quality.metrics import Figures

Given = Mapping[str, Mapping[str, Figures]]
"""Figures measured elsewhere: by set and system, shares of 1."""
Log = Callable[[str], None]

_NO_MODEL: frozenset[Way] = frozenset({"graph"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured, and how."""

    strategies: tuple[Way, ...]
    """The first one is the one that is held against the baselines."""
    embedder: Embedder | None = None
    """Without one, strategies and baselines that need it are left out."""
    noise: float = 0.3
    seed: int = 7
    limit: int = 0
    """A fixed sample of so many queries a set; 0 takes all."""


def feasible(wanted: Iterable[str], *, model: bool) -> tuple[tuple[Way, ...], list[str]]:
    """Take those strategies that the gateway knows and can serve; name the others."""
    known = {name: name for name in ranking.STRATEGIES}
    names = list(wanted)
    taken = [known[name] for name in names if name in known]
    taken = [name for name in taken if model or name in _NO_MODEL]
    return tuple(taken), [name for name in names if name not in taken]


def read_given(path: Path | None) -> Given:
    """Read figures that somebody else measured: set, system, figure, a share of 1.

    Raises:
        ConfigError: If a figure is no share, such as a percentage.
    """
    if path is None:
        return {}
    given: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text(encoding="utf-8"))
    for name, systems in given.items():
        for system, figures in systems.items():
            if not all(0 <= float(value) <= 1 for value in figures.values()):
                raise ConfigError(f"{path.name}: {name}, {system}: figures must be shares of 1")
    return given


def write_report(folders: Sequence[Path], out: Path, plan: Plan, *, given: Given) -> None:
    """Measure *folders* and write the report into *out*, between its marks.

    Args:
        folders: In the common format.
        out: A Markdown document, made if it is not there.
        plan: What is measured.
        given: Figures of other systems.
    """
    console = Console(stderr=True)
    sets = [measure(folder, plan, given=given, log=console.print) for folder in folders]
    before = out.read_text(encoding="utf-8") if out.exists() else "# Measured\n"
    out.write_text(replace_report(before, page(sets, method=_method(plan))), encoding="utf-8")


def _method(plan: Plan) -> str:
    sample = f" A sample of {plan.limit:,} queries a set." if plan.limit else ""
    model = f" Embedder: `{plan.embedder.info.model_id}`." if plan.embedder else " No embedder."
    return (
        f"Percentages; typing errors in {100 * plan.noise:.0f} % of the words (seed {plan.seed})."
        f"{model}{sample} Ours (bold) goes through the public API; the baselines were "
        "computed in the same run, over one text a tool. A difference is ours less the floor, the "
        "best baseline, in points of recall@5, with the interval that holds 95 % of a paired "
        "bootstrap over queries: `wins` or `loses` where 0 lies outside it. Rows that are `given` "
        "were measured elsewhere."
    )


def measure(folder: Path, plan: Plan, *, given: Given, log: Log) -> SetReport:
    """Measure one folder.

    Args:
        folder: In the common format.
        plan: What is measured.
        given: Figures of other systems, for any set.
        log: Called with what is measured next.
    """
    benchmark = read(folder, limit=plan.limit)
    clean, typed = query_texts(benchmark), query_texts(benchmark, noise=plan.noise, seed=plan.seed)
    systems: list[System] = []
    for strategy in plan.strategies:
        log(f"{benchmark.name}: {strategy}")
        runs = [asyncio.run(_rank(benchmark, texts, plan, strategy)) for texts in (clean, typed)]
        for view in views_of(strategy):
            lines = ([answer.line(view) for answer in run] for run in runs)
            systems.append(system_of(benchmark, strategy, view, "ours", *lines))
    log(f"{benchmark.name}: baselines")
    work = baselines.run_baselines(benchmark, [clean, typed], embedder=plan.embedder)
    found, misspelt = asyncio.run(work)
    for name, run in found.items():
        view = "shown" if name.endswith(baselines.EDGES) else "matches"
        systems.append(system_of(benchmark, name, view, "baseline", run, misspelt[name]))
    systems += [given_of(name, figures) for name, figures in given.get(benchmark.name, {}).items()]
    return SetReport(
        name=benchmark.name,
        tools=len(benchmark.tools),
        languages=summary(benchmark.queries, []).by_language_count,
        systems=tuple(systems),
        versus=tuple(against(systems)),
    )


async def _rank(
    benchmark: Benchmark, texts: Mapping[str, str], plan: Plan, strategy: Way
) -> list[Answered]:
    return await rank(
        benchmark, texts, strategy=strategy, edges="given", embedder=plan.embedder or "local"
    )


def views_of(strategy: Way) -> tuple[View, ...]:
    """Return the views of a strategy: `auto` alone has supplements worth a row."""
    return ("matches", "shown") if strategy == "auto" else ("matches",)
