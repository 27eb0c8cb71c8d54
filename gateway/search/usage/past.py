"""What the ledger says, read and added up."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.search.usage.compat import Access, Together
from gateway.search.usage.sequences import Habits, Learned, trusted
from gateway.search.usage.signals import Exposure, Multipliers
from gateway.usage.call_log import CallLog, Tally, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What everybody did, as it was read last."""

    outcomes: Mapping[str, Outcomes]
    tasks: Sequence[Task]
    habits: Habits
    trusted: bool
    read_at: float = -math.inf


def past_of(ledger: CallLog) -> Past:
    """Read what everybody did.

    Raises:
        StoreError: If the ledger cannot be read.
    """
    tasks = ledger.tasks()
    return Past(
        outcomes=worn(ledger.tallies()),
        tasks=tasks,
        habits=habits_of(tasks),
        trusted=trusted([each.tools for each in tasks]),
    )


def habits_of(tasks: Sequence[Task]) -> Habits:
    """Count what came behind what, older tasks counting less."""
    weights = (bounded.decayed(each.age_s) for each in tasks)
    return Habits.of((each.tools for each in tasks), weights)


def exposed(ledger: CallLog) -> Exposure:
    """Read what searches returned.

    Raises:
        StoreError: If the ledger cannot be read.
    """
    return Exposure(
        accesses={
            each: Access(count=seen.count, days=seen.days, last_s=seen.last_s)
            for each, seen in ledger.shown().items()
        },
        pairs={
            pair: Together(count=seen.count, last_s=seen.last_s)
            for pair, seen in ledger.pairs().items()
        },
        now_s=time.time(),
    )


def mark_of(liked: Multipliers, learned: Learned, exposure: Exposure | None) -> int:
    """Give a number that is equal for equal signals, in this process."""
    told = (
        frozenset(liked.items()),
        frozenset(each for edges in learned.edges.values() for each in edges),
        frozenset(learned.often.items()),
        None if exposure is None else frozenset(exposure.accesses.items()),
    )
    return hash(told)


def worn(tallies: Sequence[Tally]) -> dict[str, Outcomes]:
    """Add up how the calls of each tool ended, older ones counting less."""
    found: dict[str, Outcomes] = {}
    for each in tallies:
        weight = bounded.decayed(each.age_s)
        ended = Outcomes(succeeded=weight * each.succeeded, failed=weight * each.failed)
        found[each.tool] = found.get(each.tool, Outcomes()) + ended
    return found
