"""Compares the runs of one catalog with the gateway's. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.bootstrap import Difference, paired
from benchmarks.peering.runs import Failure, Run, Task
from benchmarks.peering.systems import Peer
from gateway.plugins.quality.metrics import Figures, Gold, mean, score

FIGURES = ("recall@5", "recall@10", "ndcg@10", "hit@1")
COMPARED = "recall@5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Process CPU of all threads, without embedding."""

    build_s: float
    search_us: float
    """Median over the queries."""
    search_s: float
    """Sum over the queries."""
    embed_us: float
    """Median; 0 where vectors were given."""
    ratio: float | None
    """Median search of this system over that of ours in the same run; None if ours failed."""


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
    """Empty without gold."""
    cost: Cost | None = None
    """None if it failed."""
    difference: Difference | None = None
    """Recall@5 of ours minus that of this system, over the queries of both."""


def compare(
    task: Task, gold: Mapping[str, Gold], runs: Sequence[tuple[Peer, Run | Failure]]
) -> list[Row]:
    """Return a row per system.

    Args:
        task: What was searched.
        gold: By query id; empty if nothing is known to be right.
        runs: Ours first.
    """
    ours = runs[0][1] if runs else Failure(reason="nothing was run")
    return [_compare(task, gold, peer, run, ours) for peer, run in runs]


def _compare(
    task: Task, gold: Mapping[str, Gold], peer: Peer, run: Run | Failure, ours: Run | Failure
) -> Row:
    if isinstance(run, Failure):
        return Row(set=task.name, tools=len(task.tools), peer=peer, note=run.reason)
    theirs = _score(task, gold, run)
    own = {} if run is ours or isinstance(ours, Failure) else _score(task, gold, ours)
    shared = [key for key in theirs if key in own]
    recalls = [[figures[key][COMPARED] for key in shared] for figures in (own, theirs)]
    return Row(
        set=task.name,
        tools=len(task.tools),
        peer=peer,
        version=run.version,
        queries=len(run.ranked),
        figures=mean(list(theirs.values())),
        cost=_cost(run, ours),
        difference=paired(*recalls) if shared else None,
        note=run.note,
    )


def _score(task: Task, gold: Mapping[str, Gold], run: Run) -> dict[str, Figures]:
    return {
        key: score([task.ids[name] for name in names], gold[key])
        for key, names in run.ranked.items()
        if gold.get(key)
    }


def _cost(run: Run, ours: Run | Failure) -> Cost:
    search_us = _median(run.search_us)
    own_us = 0.0 if isinstance(ours, Failure) else _median(ours.search_us)
    return Cost(
        build_s=run.build_s,
        search_us=search_us,
        search_s=sum(run.search_us) / 1e6,
        embed_us=_median(run.embed_us),
        ratio=search_us / own_us if own_us else None,
    )


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def to_json(row: Row) -> dict[str, object]:
    """Return *row* as JSON values."""
    document: dict[str, object] = {
        "set": row.set,
        "tools": row.tools,
        "system": row.peer.name,
        "version": row.version,
        "measured": row.peer.how,
        "vectors": "ours" if row.peer.vectors else "none",
        "queries": row.queries,
        **{name: row.figures[name] for name in FIGURES if name in row.figures},
        "note": row.note,
        "failed": row.cost is None,
    }
    if row.cost:
        document["cpu"] = {
            "build_s": row.cost.build_s,
            "search_us": row.cost.search_us,
            "search_total_s": row.cost.search_s,
            "embed_us": row.cost.embed_us,
            "ratio_to_ours": row.cost.ratio,
        }
    if row.difference:
        document["ours_minus_this"] = {
            "figure": COMPARED,
            "mean": row.difference.mean,
            "low": row.difference.low,
            "high": row.difference.high,
            "verdict": row.difference.verdict,
        }
    return document
