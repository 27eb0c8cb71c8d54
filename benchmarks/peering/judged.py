"""What the runs of one catalog are worth beside ours. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.bootstrap import Difference, paired
from benchmarks.metrics import Figures, Gold, mean, score
from benchmarks.peering.runs import Failure, Run, Task
from benchmarks.peering.table import CHEAPER, Peer

FIGURES = ("recall@5", "recall@10", "ndcg@10", "hit@1")
COMPARED = "recall@5"
SYNTHETIC = "synthetic"
"""How the names of invented catalogs begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Process CPU, of all threads; embedding is told apart."""

    build_s: float
    search_us: float
    """Median over the queries."""
    search_s: float
    """All queries together."""
    embed_us: float
    """Median; 0 where vectors were handed over."""
    ratio: float | None
    """Median of theirs, over that of ours in the same run; None if ours failed."""
    cheaper: float | None
    """How high the ratio is to be, if that is a goal."""

    @property
    def met(self) -> bool | None:
        """Whether that goal is reached; None if there is none."""
        if self.cheaper is None or self.ratio is None:
            return None
        return self.ratio >= self.cheaper


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system over one catalog."""

    set: str
    tools: int
    peer: Peer
    note: str
    """What it refused, or why it failed."""
    version: str = ""
    queries: int = 0
    figures: Figures = field(default_factory=dict)
    """Empty where nothing is known to be right."""
    cost: Cost | None = None
    """None if it failed."""
    difference: Difference | None = None
    """Recall@5 of ours minus that of this one, over the queries that both were asked."""
    kept: bool = False
    """Whether its run is an older one."""


def judge(
    task: Task, gold: Mapping[str, Gold], runs: Sequence[tuple[Peer, Run | Failure]]
) -> list[Row]:
    """Give a row a system.

    Args:
        task: What was asked.
        gold: By query id; empty if nothing is known to be right.
        runs: Ours first.
    """
    ours = runs[0][1] if runs else Failure(reason="nothing was run")
    return [_row(task, gold, peer, run, ours) for peer, run in runs]


def _row(
    task: Task, gold: Mapping[str, Gold], peer: Peer, run: Run | Failure, ours: Run | Failure
) -> Row:
    if isinstance(run, Failure):
        return Row(set=task.name, tools=len(task.tools), peer=peer, note=run.reason)
    figures = _scored(task, gold, run)
    own = {} if run is ours or isinstance(ours, Failure) else _scored(task, gold, ours)
    both = [key for key in figures if key in own]
    mine, this = [own[key][COMPARED] for key in both], [figures[key][COMPARED] for key in both]
    return Row(
        set=task.name,
        tools=len(task.tools),
        peer=peer,
        version=run.version,
        queries=len(run.ranked),
        figures=mean(list(figures.values())),
        cost=_cost(peer, run, ours, task.name),
        difference=paired(mine, this) if both else None,
        note=run.note,
        kept=run.kept,
    )


def _scored(task: Task, gold: Mapping[str, Gold], run: Run) -> dict[str, Figures]:
    return {
        key: score([task.ids[name] for name in names], gold[key])
        for key, names in run.ranked.items()
        if gold.get(key)
    }


def _cost(peer: Peer, run: Run, ours: Run | Failure, name: str) -> Cost:
    spent = _median(run.search_us)
    own = 0.0 if isinstance(ours, Failure) else _median(ours.search_us)
    return Cost(
        build_s=run.build_s,
        search_us=spent,
        search_s=sum(run.search_us) / 1e6,
        embed_us=_median(run.embed_us),
        ratio=spent / own if own else None,
        cheaper=CHEAPER.get(peer.name) if name.startswith(SYNTHETIC) else None,
    )


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def to_json(row: Row) -> dict[str, object]:
    """Write *row* as JSON values."""
    told: dict[str, object] = {
        "set": row.set,
        "tools": row.tools,
        "system": row.peer.name,
        "version": row.version,
        "measured": row.peer.how,
        "vectors": "ours" if row.peer.vectors else "none",
        "queries": row.queries,
        **{name: row.figures[name] for name in FIGURES if name in row.figures},
        "note": row.note,
        "kept": row.kept,
        "failed": row.cost is None,
    }
    if row.cost:
        cost = row.cost
        told["cpu"] = {
            "build_s": cost.build_s,
            "search_us": cost.search_us,
            "search_total_s": cost.search_s,
            "embed_us": cost.embed_us,
            "ratio_to_ours": cost.ratio,
        }
        if cost.cheaper is not None:
            told["goal"] = {"ratio": cost.cheaper, "met": cost.met}
    if row.difference:
        found = row.difference
        told["ours_minus_this"] = {
            "figure": COMPARED,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "verdict": found.verdict,
        }
    return told
