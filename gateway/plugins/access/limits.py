"""Limits of rate and cost over a period that slides, counted in steps of a sixtieth of it.

No more than the limit is ever admitted within any one period. What is not admitted counts nothing.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gateway.catalog.visibility import Party
from gateway.errors import Failed, LimitExceededError, attempt
from gateway.options import AccessPolicy
from gateway.plugins.access.policies import server_of
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Clock
from gateway.types import Diagnostic, Entity

STEPS = 60
PERIODS_S: Mapping[str, float] = {"minute": 60.0, "hour": 3600.0, "day": 24 * 3600.0}
_TINY = 1e-9
"""Sums of costs are rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call takes of one counter."""

    key: str
    """Which counter: the rule, what it counts, and for whom."""
    amount: float
    limit: float
    """The most of all amounts in a period."""
    period_s: float
    rule: str

    def step(self, now: float) -> int:
        """Return the number of the step that *now* falls into."""
        return math.floor(now * STEPS / self.period_s)

    def retry_after_s(self, spent: Mapping[int, float], now: float) -> float:
        """Return in how many seconds it is within its limit; 0 if it is now.

        Args:
            spent: The amounts of each step.
            now: Seconds since the epoch.
        """
        current = self.step(now)
        recent = {step: amount for step, amount in spent.items() if step >= current - STEPS}
        left = sum(recent.values()) + self.amount - self.limit
        if left <= _TINY:
            return 0.0
        for step, amount in sorted(recent.items()):
            left -= amount
            if left <= _TINY:
                return max((step + STEPS + 1) * self.period_s / STEPS - now, 0.001)
        return self.period_s


class Counters(Protocol):
    """Where amounts are counted, by all processes that share it."""

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """Count all of *charges*, or none if one is beyond its limit.

        Returns:
            In how many seconds to try again, and the rule that is exhausted; 0 if all are counted.

        Raises:
            StoreError: They cannot be counted.
        """


class MemoryCounters:
    """`Counters` of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: defaultdict[str, dict[int, float]] = defaultdict(dict)

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """See `Counters.charge`."""
        with self._lock:
            wait, rule = first_refusal(charges, self._spent, now)
            for charge in charges if not rule else ():
                steps, step = self._spent[charge.key], charge.step(now)
                steps[step] = steps.get(step, 0.0) + charge.amount
                for old in [each for each in steps if each < step - STEPS]:
                    del steps[old]
            return wait, rule


def first_refusal(
    charges: Sequence[Charge], spent: Mapping[str, Mapping[int, float]], now: float
) -> tuple[float, str]:
    """Return what `Counters.charge` does, for amounts by key and step."""
    # Two rules of one name may both match a call: together they must fit.
    amounts: defaultdict[str, float] = defaultdict(float)
    for each in charges:
        amounts[each.key] += each.amount
    whole = [replace(each, amount=amounts[each.key]) for each in charges]
    waits = [(each.retry_after_s(spent.get(each.key, {}), now), each.rule) for each in whole]
    return max(waits, default=(0.0, "")) if any(wait for wait, _ in waits) else (0.0, "")


def charges_of(
    rules: Sequence[tuple[str, AccessPolicy]], entity: Entity, party: Party
) -> Iterator[Charge]:
    """Yield what one call of *entity* for *party* takes of each of *rules*."""
    # Users of one name in two tenants are two.
    common = {"user": (party.tenant, party.user), "tenant": party.tenant}
    # An alias takes of what it stands for too: else each alias would add to the limit.
    ids = (entity.id, *entity.originals[-1:])
    servers = (entity.server, *map(server_of, ids[1:]))
    parts = [
        {**common, "server": server, "tool": tool}
        for server, tool in zip(servers, ids, strict=True)
    ]
    for name, rule in rules:
        for what, limit in (("calls", rule.calls), ("cost", rule.cost)):
            counted = [[(each, part[each]) for each in rule.by] for part in parts]
            for key in dict.fromkeys(repr((name, what, rule.per, each)) for each in counted):
                if limit is not None:
                    yield Charge(
                        key=key,
                        amount=1.0 if what == "calls" else rule.call_cost,
                        limit=limit,
                        period_s=PERIODS_S[rule.per],
                        rule=name,
                    )


@dataclass(eq=False, repr=False)
class Limiter:
    """Counts calls in a store, and in this process while that cannot be used.

    Args:
        shared: The counters of the store; None if it has none.
        wall: Seconds since the epoch.
    """

    shared: Counters | None
    wall: Clock = time.time
    _own: MemoryCounters = field(default_factory=MemoryCounters, init=False)

    async def charge(self, charges: Sequence[Charge]) -> tuple[Diagnostic, ...]:
        """Count a call.

        Returns:
            A note if only this process counted it.

        Raises:
            LimitExceededError: One of the limits is reached.
        """
        if not charges:
            return ()
        notes: tuple[Diagnostic, ...] = ()
        counters = self._own if self.shared is None else self.shared
        counted = await attempt(in_thread(counters.charge, charges, self.wall()))
        if isinstance(counted, Failed):
            detail = f"counted by this process alone: {counted.reason}"
            notes = (Diagnostic(stage="store", code="limits_not_shared", detail=detail),)
            counted = self._own.charge(charges, self.wall())
        wait, rule = counted
        if rule:
            raise LimitExceededError(rule, retry_after_s=wait)
        return notes
