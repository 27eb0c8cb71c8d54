"""Limits on the number and cost of calls within a sliding period.

A period is divided into 60 steps. The sum of the amounts counted within one period never exceeds
the limit. A refused call is not counted.
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
_TOLERANCE = 1e-9
"""Excess over a limit that is ignored, because sums of costs have rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Amount that one call adds to one counter."""

    key: str
    """Key of the counter: rule, unit (calls or cost), period and subject, such as a user."""
    amount: float
    limit: float
    """Maximum sum of the amounts that the counter may reach in one period."""
    period_s: float
    rule: str

    def step(self, now: float) -> int:
        """Return the number of the step of the period that contains *now*, in seconds since the
        epoch.
        """
        return math.floor(now * STEPS / self.period_s)

    def retry_after_s(self, spent: Mapping[int, float], now: float) -> float:
        """Return the number of seconds until this charge fits its limit; 0 if it fits now.

        Args:
            spent: Amounts that the counter already contains, keyed by step.
            now: Seconds since the epoch.
        """
        current = self.step(now)
        recent = {step: amount for step, amount in spent.items() if step >= current - STEPS}
        excess = sum(recent.values()) + self.amount - self.limit
        if excess <= _TOLERANCE:
            return 0.0
        for step, amount in sorted(recent.items()):
            excess -= amount
            if excess <= _TOLERANCE:
                return max((step + STEPS + 1) * self.period_s / STEPS - now, 0.001)
        return self.period_s


class Counters(Protocol):
    """Counters of calls and costs, shared by all processes on one store."""

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """Count all of *charges*, or none of them if one would exceed its limit.

        Returns:
            Seconds to wait and the name of the exceeded rule; ``(0, "")`` if all charges were
            counted.

        Raises:
            StoreError: If the counters cannot be read or written.
        """


class MemoryCounters:
    """`Counters` in the memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: defaultdict[str, dict[int, float]] = defaultdict(dict)

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """Count all of *charges*, or none of them if one would exceed its limit."""
        with self._lock:
            wait, rule = first_refusal(charges, self._spent, now)
            for charge in charges if not rule else ():
                steps, step = self._spent[charge.key], charge.step(now)
                steps[step] = steps.get(step, 0.0) + charge.amount
                for old in [number for number in steps if number < step - STEPS]:
                    del steps[old]
            return wait, rule


def first_refusal(
    charges: Sequence[Charge], spent: Mapping[str, Mapping[int, float]], now: float
) -> tuple[float, str]:
    """Return the longest wait in seconds and the name of its rule; ``(0, "")`` if all charges fit.

    Args:
        charges: Charges of one call.
        spent: Amounts that the counters already contain, keyed by counter and step.
        now: Seconds since the epoch.
    """
    # Rules with the same name share a counter, so their amounts are added up.
    amounts: defaultdict[str, float] = defaultdict(float)
    for charge in charges:
        amounts[charge.key] += charge.amount
    totals = [replace(charge, amount=amounts[charge.key]) for charge in charges]
    waits = [
        (charge.retry_after_s(spent.get(charge.key, {}), now), charge.rule) for charge in totals
    ]
    return max(waits, default=(0.0, "")) if any(wait for wait, _ in waits) else (0.0, "")


def charges_of(
    rules: Sequence[tuple[str, AccessPolicy]], entity: Entity, party: Party
) -> Iterator[Charge]:
    """Yield the charges of one call of *entity* by *party*, as *rules* require."""
    # Users with the same name in different tenants have separate counters.
    common = {"user": (party.tenant, party.user), "tenant": party.tenant}
    # A call of an alias also counts as a call of its original, so aliases do not raise the limit.
    ids = (entity.id, *entity.originals[-1:])
    servers = (entity.server, *map(server_of, ids[1:]))
    parts = [
        {**common, "server": server, "tool": tool}
        for server, tool in zip(servers, ids, strict=True)
    ]
    for name, rule in rules:
        for what, limit in (("calls", rule.calls), ("cost", rule.cost)):
            counted = [[(subject, part[subject]) for subject in rule.by] for part in parts]
            for key in dict.fromkeys(repr((name, what, rule.per, values)) for values in counted):
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
    """Counter of calls that counts in the memory of this process if the store fails.

    Args:
        shared: Counters in the store, or None if the store does not support them.
        wall: Clock in seconds since the epoch.
    """

    shared: Counters | None
    wall: Clock = time.time
    _local: MemoryCounters = field(default_factory=MemoryCounters, init=False)

    async def charge(self, charges: Sequence[Charge]) -> tuple[Diagnostic, ...]:
        """Count one call.

        Returns:
            A diagnostic if the store failed and only this process counted the call, else ().

        Raises:
            LimitExceededError: If a limit would be exceeded. The call is not counted.
        """
        if not charges:
            return ()
        notes: tuple[Diagnostic, ...] = ()
        counters = self._local if self.shared is None else self.shared
        counted = await attempt(in_thread(counters.charge, charges, self.wall()))
        if isinstance(counted, Failed):
            detail = f"counted by this process alone: {counted.reason}"
            notes = (Diagnostic(stage="store", code="limits_not_shared", detail=detail),)
            counted = self._local.charge(charges, self.wall())
        wait, rule = counted
        if rule:
            raise LimitExceededError(rule, retry_after_s=wait)
        return notes
