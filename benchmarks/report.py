"""Every strategy and every baseline over every set, clean and misspelt, held against each other.

* Ours goes through the public API; the baselines are computed here, in the same run.
* Figures that somebody else measured may be given; they are marked, and cannot be resampled.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rich.console import Console

import gateway
import graphs
from benchmarks import baselines, data, ranking, typos
from benchmarks.data import Benchmark, Row, read, rows
from benchmarks.kept import Lines, data_hash, files_hash, kept
from benchmarks.metrics import Figures, summary
from benchmarks.pages import page, placed
from benchmarks.ranking import Answered, View, Way, asked, rank
from benchmarks.systems import SetReport, System, against, given_of, system_of
from gateway import Embedder
from gateway.errors import ConfigError
from graphs.lexical import analysis

Given = Mapping[str, Mapping[str, Figures]]
"""Figures measured elsewhere: by set and system, shares of 1."""
Say = Callable[[str], None]

WAYS = ("clean", "typos")
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
    runs: Path | None = None
    """A folder of runs that were written before; see `written`."""


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


def write_report(
    folders: Sequence[Path],
    out: Path,
    plan: Plan,
    *,
    given: Given,
    pictures: Path | None = None,
    png: bool = False,
) -> None:
    """Measure *folders* and write the report into *out*, between its marks.

    Args:
        folders: In the common format.
        out: A Markdown document, made if it is not there.
        plan: What is measured.
        given: Figures of other systems.
        pictures: A folder for plots; None draws none.
        png: Whether plots are also written as PNG.
    """
    console = Console(stderr=True)
    sets = [measured(folder, plan, given=given, say=console.print) for folder in folders]
    drawn: list[tuple[str, str]] = []
    if pictures:
        from benchmarks import plots  # noqa: PLC0415  (heavy, and only wanted with pictures)

        drawn = [
            (text, Path(os.path.relpath(path, out.parent)).as_posix())
            for text, path in plots.draw(sets, pictures, png=png)
        ]
    before = out.read_text(encoding="utf-8") if out.exists() else "# Measured\n"
    out.write_text(placed(before, page(sets, told=_told(plan), pictures=drawn)), encoding="utf-8")


def _told(plan: Plan) -> str:
    sample = f" A sample of {plan.limit:,} queries a set." if plan.limit else ""
    before = " Runs that were written before were taken as they are." if plan.runs else ""
    model = f" Embedder: `{plan.embedder.info.model_id}`." if plan.embedder else " No embedder."
    return (
        f"Percentages; typing errors in {100 * plan.noise:.0f} % of the words (seed {plan.seed})."
        f"{model}{sample}{before} Ours (bold) goes through the public API; the baselines were "
        "computed in the same run, over one text a tool. A difference is ours less the floor, the "
        "best baseline, in points of recall@5, with the interval that holds 95 % of a paired "
        "bootstrap over queries: `wins` or `loses` where 0 lies outside it. Rows that are `given` "
        "were measured elsewhere."
    )


def measured(folder: Path, plan: Plan, *, given: Given, say: Say) -> SetReport:
    """Measure one folder.

    Args:
        folder: In the common format.
        plan: What is measured.
        given: Figures of other systems, for any set.
        say: Told what is measured next.
    """
    benchmark = read(folder, limit=plan.limit)
    ways = [asked(benchmark), asked(benchmark, noise=plan.noise, seed=plan.seed)]
    key = {"data": data_hash(folder), "limit": plan.limit, "noise": plan.noise, "seed": plan.seed}
    systems = [
        system
        for strategy in plan.strategies
        for system in _ours(benchmark, ways, plan, strategy, key, say)
    ]
    systems += _baselines(benchmark, ways, plan, key, say)
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
    say: Say,
) -> list[System]:
    def measure() -> dict[str, Lines]:
        found: dict[str, Lines] = {}
        for way, texts in zip(WAYS, ways, strict=True):
            say(f"{benchmark.name}: {strategy}, {way}")
            answers = asyncio.run(_rank(benchmark, texts, plan, strategy))
            for view in views_of(strategy):
                found[f"{way} {view}"] = [answer.line(view) for answer in answers]
        return found

    full = {**key, "strategy": strategy, "model": _model(plan, strategy), "code": _gateway_hash()}
    runs = written(plan.runs, benchmark, strategy)
    runs = runs or kept(plan.cache, full, measure, fresh=plan.fresh)
    return [
        system_of(benchmark, strategy, view, "ours", runs[f"clean {view}"], runs[f"typos {view}"])
        for view in views_of(strategy)
        if f"clean {view}" in runs
    ]


def written(
    folder: Path | None, benchmark: Benchmark, strategy: Way
) -> Mapping[str, Iterable[Row]]:
    """Read the runs of one set and strategy that ``run`` wrote before.

    Args:
        folder: Holds a pair ``SET-STRATEGY-clean-VIEW.jsonl`` and ``…-typos-VIEW.jsonl`` a view.
        benchmark: The set.
        strategy: How it was searched.

    Returns:
        The pairs that are whole, by way and view; empty without any.

    Raises:
        ConfigError: If a run lacks queries of the set.
    """
    found: dict[str, Lines] = {}
    for view in views_of(strategy) if folder else ():
        names = {way: f"{benchmark.name}-{strategy}-{way}-{view}.jsonl" for way in WAYS}
        paths = {way: Path(folder or "") / name for way, name in names.items()}
        if all(path.is_file() for path in paths.values()):
            found |= {f"{way} {view}": _whole(path, benchmark) for way, path in paths.items()}
    return found


def _whole(path: Path, benchmark: Benchmark) -> Lines:
    lines = [dict(line) for line in rows(path)]
    lacking = {str(query["id"]) for query in benchmark.queries} - {
        str(each["id"]) for each in lines
    }
    if lacking:
        raise ConfigError(f"{path.name} lacks {len(lacking):,} queries; write it with `run` again")
    return lines


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
    say: Say,
) -> list[System]:
    def measure() -> dict[str, Lines]:
        say(f"{benchmark.name}: {_BASELINES}")
        found = asyncio.run(baselines.run_baselines(benchmark, ways, embedder=plan.embedder))
        return {
            f"{way} {name}": lines
            for way, runs in zip(WAYS, found, strict=True)
            for name, lines in runs.items()
        }

    full = {**key, "strategy": _BASELINES, "model": _model(plan), "code": _baselines_hash()}
    runs = kept(plan.cache, full, measure, fresh=plan.fresh)
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
