"""Comparison of two evaluations of the same requests, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import InvalidRequestError
from gateway.plugins.quality.report import EvalReport, Outcome
from gateway.runtime.gains import measure_gain
from gateway.runtime.text import counted

JUDGED = ("recall@5", "complete@10", "false_accepts")
"""Figures that decide whether an evaluation got worse."""
_LOW_IS_GOOD = frozenset({"false_accepts", "false_rejects"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """Change of one figure over the requests in both evaluations."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    """95 % bootstrap interval of the difference, from `low` to `high`."""
    worse: bool
    """True if the figure is in `JUDGED` and lost more than the tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChange:
    """A request whose wanted tools rank differently in two evaluations."""

    request: str
    tools: tuple[str, ...]
    before: tuple[int | None, ...]
    """Rank of each of `tools` in the earlier evaluation, from 1; None if not found."""
    after: tuple[int | None, ...]
    difference: float
    """Change of nDCG@10, -1 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Changes from one evaluation to another."""

    requests: int
    """Number of requests in both evaluations; `left_out` are in only one."""
    left_out: int
    changes: Mapping[str, FigureChange]
    wins: tuple[RankChange, ...]
    """Improved requests, largest gain first. `losses` start with the largest loss."""
    losses: tuple[RankChange, ...]
    lost_tools: tuple[str, ...]
    """Tools that some request found in the earlier evaluation, but none in the newer one."""
    gained_tools: tuple[str, ...]
    degraded: bool
    """True if a search of either evaluation lacked an optional stage, such as vectors."""

    @property
    def worse(self) -> tuple[str, ...]:
        """Names of the figures in `JUDGED` that got worse."""
        return tuple(name for name, change in self.changes.items() if change.worse)


def compare(
    before: EvalReport, after: EvalReport, *, tolerance: float = 0.02, other_catalog: bool = False
) -> Comparison:
    """Compare two evaluations, request by request.

    Args:
        before: Earlier evaluation.
        after: Newer evaluation.
        tolerance: Maximum accepted loss of a judged figure, as a share of 1.
        other_catalog: True also compares different catalogs, for example with improved
            descriptions.

    Raises:
        InvalidRequestError: If the catalogs differ, or no request is in both evaluations.
    """
    if not other_catalog and (difference := _catalog_difference(before.catalog, after.catalog)):
        raise InvalidRequestError(
            f"the evaluations are of different catalogs: {difference} "
            "(to compare them anyway, add --other-catalog)"
        )
    old = {outcome.request.key: outcome for outcome in before.outcomes}
    new = {outcome.request.key: outcome for outcome in after.outcomes}
    pairs = [(old[key], new[key]) for key in new if key in old]
    if not pairs:
        raise InvalidRequestError("no request is in both evaluations; run both with the same file")
    rank_changes = sorted((_rank_change(*pair) for pair in pairs), key=_rank_change_key)
    findable = [{tool.id for tool in report.tools if tool.findable} for report in (before, after)]
    return Comparison(
        requests=len(pairs),
        left_out=len({*old} ^ {*new}),
        changes=_changes(pairs, tolerance),
        wins=tuple(change for change in rank_changes if change.difference > 0),
        losses=tuple(change for change in rank_changes if change.difference < 0),
        lost_tools=tuple(sorted(findable[0] - findable[1])),
        gained_tools=tuple(sorted(findable[1] - findable[0])),
        degraded=bool(before.degraded or after.degraded),
    )


def _catalog_difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Describe how two catalogs differ, as digests keyed by tool id; "" if they are equal."""
    counts = {
        "added": len(after.keys() - before.keys()),
        "removed": len(before.keys() - after.keys()),
        "changed": sum(after[key] != before[key] for key in before.keys() & after.keys()),
    }
    return ", ".join(f"{counted(count, 'tool')} {word}" for word, count in counts.items() if count)


def _changes(pairs: Sequence[tuple[Outcome, Outcome]], tolerance: float) -> dict[str, FigureChange]:
    served = [pair for pair in pairs if pair[0].figures and pair[1].figures]
    unserved = [pair for pair in pairs if not pair[0].figures]
    rows = {
        name: [(first.figures[name], other.figures[name]) for first, other in served]
        for name in (served[0][0].figures if served else ())
    }
    rows["false_rejects"] = [(float(not a.accepted), float(not b.accepted)) for a, b in served]
    rows["false_accepts"] = [(float(a.accepted), float(b.accepted)) for a, b in unserved]
    return {name: _change(name, values, tolerance) for name, values in rows.items() if values}


def _change(name: str, values: Sequence[tuple[float, float]], tolerance: float) -> FigureChange:
    before, after = zip(*values, strict=True)
    gain = measure_gain([(new - old,) for old, new in values])
    loss = gain.mean if name in _LOW_IS_GOOD else -gain.mean
    return FigureChange(
        before=sum(before) / len(before),
        after=sum(after) / len(after),
        difference=gain.mean,
        low=gain.low,
        high=gain.high,
        worse=name in JUDGED and loss > tolerance,
    )


def _rank_change(before: Outcome, after: Outcome) -> RankChange:
    return RankChange(
        request=after.request.text,
        tools=after.tools,
        before=before.places,
        after=after.places,
        difference=after.figures.get("ndcg@10", 0.0) - before.figures.get("ndcg@10", 0.0),
    )


def _rank_change_key(change: RankChange) -> tuple[float, str]:
    return -abs(change.difference), change.request
