"""Two evaluations of the same requests: what changed, and how sure that is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import InvalidRequestError
from gateway.plugins.quality.report import EvalReport, Outcome
from gateway.runtime.gains import measure_gain

JUDGED = ("recall@5", "complete@10", "false_accepts")
"""The figures that decide whether an evaluation got worse."""
_LOW_IS_GOOD = frozenset({"false_accepts", "false_rejects"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """How one figure changed over the requests that both have."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    """The middle 95 % of the resampled differences lie between *low* and *high*."""
    worse: bool
    """Whether it is judged and worse by more than is tolerated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A request whose tools stand elsewhere."""

    request: str
    tools: tuple[str, ...]
    before: tuple[int | None, ...]
    """Places, from 1; None if a tool is not found."""
    after: tuple[int | None, ...]
    difference: float
    """Of nDCG@10, -1 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changed from one evaluation to another."""

    requests: int
    """How many both have; the others are left out."""
    left_out: int
    changes: Mapping[str, FigureChange]
    wins: tuple[Moved, ...]
    """The largest first; so are the losses."""
    losses: tuple[Moved, ...]
    lost_tools: tuple[str, ...]
    """Found before by some request, and now by none."""
    gained_tools: tuple[str, ...]
    degraded: bool
    """Whether a search of one of them went without something, such as vectors."""

    @property
    def worse(self) -> tuple[str, ...]:
        """The judged figures that got worse by more than is tolerated."""
        return tuple(name for name, change in self.changes.items() if change.worse)


def compare(
    before: EvalReport, after: EvalReport, *, tolerance: float = 0.02, other_catalog: bool = False
) -> Comparison:
    """Compare two evaluations, request by request.

    Args:
        before: The one to compare with.
        after: The newer one.
        tolerance: How much worse a judged figure may get, as a share of 1.
        other_catalog: Compare also if the catalogs differ, as when descriptions were mended: the
            requests are the same, but another set of tools may be easier or harder.

    Raises:
        InvalidRequestError: The catalogs differ, or no request is in both.
    """
    if not other_catalog and (difference := _catalog_difference(before.catalog, after.catalog)):
        raise InvalidRequestError(
            f"these are evaluations of different catalogs: {difference} "
            "(to compare them all the same: --other-catalog)"
        )
    old = {outcome.request.key: outcome for outcome in before.outcomes}
    new = {outcome.request.key: outcome for outcome in after.outcomes}
    pairs = [(old[key], new[key]) for key in new if key in old]
    if not pairs:
        raise InvalidRequestError("no request is in both evaluations: run both with the same file")
    moved = sorted((_moved(*pair) for pair in pairs), key=_by_size)
    found = [{tool.id for tool in each.tools if tool.findable} for each in (before, after)]
    return Comparison(
        requests=len(pairs),
        left_out=len({*old} ^ {*new}),
        changes=_changes(pairs, tolerance),
        wins=tuple(each for each in moved if each.difference > 0),
        losses=tuple(each for each in moved if each.difference < 0),
        lost_tools=tuple(sorted(found[0] - found[1])),
        gained_tools=tuple(sorted(found[1] - found[0])),
        degraded=bool(before.degraded or after.degraded),
    )


def _catalog_difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return in words how two catalogs differ; empty if they do not."""
    counts = {
        "added": len(after.keys() - before.keys()),
        "removed": len(before.keys() - after.keys()),
        "changed": sum(after[key] != before[key] for key in before.keys() & after.keys()),
    }
    return ", ".join(f"{count} tools {word}" for word, count in counts.items() if count)


def _changes(pairs: Sequence[tuple[Outcome, Outcome]], tolerance: float) -> dict[str, FigureChange]:
    served = [pair for pair in pairs if pair[0].figures and pair[1].figures]
    unserved = [pair for pair in pairs if not pair[0].figures]
    rows = {
        name: [(one.figures[name], other.figures[name]) for one, other in served]
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


def _moved(before: Outcome, after: Outcome) -> Moved:
    return Moved(
        request=after.request.text,
        tools=after.tools,
        before=before.places,
        after=after.places,
        difference=after.figures.get("ndcg@10", 0.0) - before.figures.get("ndcg@10", 0.0),
    )


def _by_size(moved: Moved) -> tuple[float, str]:
    return -abs(moved.difference), moved.request
