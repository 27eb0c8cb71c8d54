"""Every strategy and every baseline over every set, clean and misspelt, held against each other.

* Ours goes through the public API; the baselines are computed here, in the same run.
* Figures that somebody else measured may be given; they are marked, and cannot be resampled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rich.console import Console

import gateway
import graphs
from benchmarks import baselines, data, ranking, typos
from benchmarks.data import Benchmark, read
from benchmarks.metrics import Figures, summary
from benchmarks.pages import page, replace_report
from benchmarks.ranking import Answered, View, Way, asked, rank
from benchmarks.run_cache import Lines, cached_runs, data_hash, files_hash
from benchmarks.systems import SetReport, System, against, given_of, system_of
from gateway import Embedder
from gateway.errors import ConfigError
from graphs.lexical import analysis

Given = Mapping[str, Mapping[str, Figures]]
"""Figures measured elsewhere: by set and system, shares of 1."""
Log = Callable[[str], None]

SPELLINGS = ("clean", "typos")
"""How the queries are written."""
_BASELINES = "baselines"
_NO_MODEL: frozenset[Way] = frozenset({"graph"})
_BESIDE = ("cli", "chat", "discovery", "testing")
"""Parts of the gateway that no search reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured, and how."""

    strategies: tuple[Way, ...]
    """The first one is the one that is held against the baselines."""
    cache: Path
    """Where runs are kept."""
    embedder: Embedder | None = None
    """Without one, strategies and baselines that need it are left out."""
    noise: float = 0.3
    seed: int = 7
    limit: int = 0
    """A fixed sample of so many queries a set; 0 takes all."""
    fresh: bool = False
    """Whether runs that are kept are measured again."""


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
    ways = [asked(benchmark), asked(benchmark, noise=plan.noise, seed=plan.seed)]
    key = {"data": data_hash(folder), "limit": plan.limit, "noise": plan.noise, "seed": plan.seed}
    systems = [
        system
        for strategy in plan.strategies
        for system in _ours(benchmark, ways, plan, strategy, key, log)
    ]
    systems += _baselines(benchmark, ways, plan, key, log)
    systems += [given_of(name, figures) for name, figures in given.get(benchmark.name, {}).items()]
    counts = summary(benchmark.queries, []).by_language_count
    return SetReport(
        name=benchmark.name,
        tools=len(benchmark.tools),
        languages=counts,
        systems=tuple(systems),
        versus=tuple(against(systems)),
    )


def _ours(
    benchmark: Benchmark,
    ways: Sequence[Mapping[str, str]],
    plan: Plan,
    strategy: Way,
    key: Mapping[str, object],
    log: Log,
) -> list[System]:
    def run() -> dict[str, Lines]:
        found: dict[str, Lines] = {}
        for way, texts in zip(SPELLINGS, ways, strict=True):
            log(f"{benchmark.name}: {strategy}, {way}")
            answers = asyncio.run(_rank(benchmark, texts, plan, strategy))
            for view in views_of(strategy):
                found[f"{way} {view}"] = [answer.line(view) for answer in answers]
        return found

    full = {**key, "strategy": strategy, "model": _model(plan, strategy), "code": _gateway_hash()}
    runs = cached_runs(plan.cache, full, run, fresh=plan.fresh)
    return [
        system_of(benchmark, strategy, view, "ours", runs[f"clean {view}"], runs[f"typos {view}"])
        for view in views_of(strategy)
    ]


async def _rank(
    benchmark: Benchmark, texts: Mapping[str, str], plan: Plan, strategy: Way
) -> list[Answered]:
    return await rank(
        benchmark, texts, strategy=strategy, edges="given", embedder=plan.embedder or "local"
    )


def views_of(strategy: Way) -> tuple[View, ...]:
    """Give the views that are told of a strategy: `auto` alone has supplements worth a row."""
    return ("matches", "shown") if strategy == "auto" else ("matches",)


def _model(plan: Plan, strategy: Way | None = None) -> str:
    return plan.embedder.info.model_id if plan.embedder and strategy not in _NO_MODEL else ""


@lru_cache
def _gateway_hash() -> str:
    root = Path(gateway.__file__).parent
    parts = [part for part in sorted(root.iterdir()) if part.name not in _BESIDE]
    own = [Path(module.__file__ or "") for module in (data, ranking, typos)]
    return files_hash([*parts, Path(graphs.__file__).parent, *own])


@lru_cache
def _baselines_hash() -> str:
    modules = (baselines, data, typos, analysis)
    return files_hash(Path(module.__file__ or "") for module in modules)


def _baselines(
    benchmark: Benchmark,
    ways: Sequence[Mapping[str, str]],
    plan: Plan,
    key: Mapping[str, object],
    log: Log,
) -> list[System]:
    def run() -> dict[str, Lines]:
        log(f"{benchmark.name}: {_BASELINES}")
        found = asyncio.run(baselines.run_baselines(benchmark, ways, embedder=plan.embedder))
        return {
            f"{way} {name}": lines
            for way, runs in zip(SPELLINGS, found, strict=True)
            for name, lines in runs.items()
        }

    full = {**key, "strategy": _BASELINES, "model": _model(plan), "code": _baselines_hash()}
    runs = cached_runs(plan.cache, full, run, fresh=plan.fresh)
    names = [name.removeprefix("clean ") for name in runs if name.startswith("clean ")]
    return [
        system_of(
            benchmark,
            name,
            "shown" if name.endswith(baselines.EDGES) else "matches",
            "baseline",
            runs[f"clean {name}"],
            runs[f"typos {name}"],
        )
        for name in names
    ]
