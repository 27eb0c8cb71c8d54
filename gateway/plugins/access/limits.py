"""Limits on the number and cost of calls within a sliding period of 60 steps.

The amounts counted within one period never exceed the limit. Refused calls are not counted.
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
"""Excess over a limit that may be a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Amount that a call adds to a counter."""

    key: str
    """Counter, identified by rule, unit (calls or cost), period and subject, such as a user."""
    amount: float
    limit: float
    """Maximum sum of the amounts in one period."""
    period_s: float
    rule: str

    def step(self, now: float) -> int:
        """Return the number of the step that contains *now*, in seconds since the epoch."""
        return math.floor(now * STEPS / self.period_s)

    def retry_after_s(self, spent: Mapping[int, float], now: float) -> float:
        """Return the number of seconds until this charge fits its limit; 0 if it fits now.

        If the charge alone exceeds the limit, return the length of one period.

        Args:
            spent: Amounts in the counter, keyed by the number of the step (a 60th of the period).
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
        """Count all of *charges*, or none if one would exceed its limit.

        Returns:
            Seconds to wait and the exceeded rule; ``(0, "")`` if all charges were counted.

        Raises:
            StoreError: If the counters cannot be read or written.
        """


class MemoryCounters:
    """`Counters` in the memory of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: defaultdict[str, dict[int, float]] = defaultdict(dict)

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """Count all of *charges* or none, as `Counters.charge` does."""
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
    """Return the longest wait in seconds and its rule; ``(0, "")`` if all charges fit.

    Args:
        charges: Charges of one call.
        spent: Amounts in the counters, keyed by counter and step.
        now: Seconds since the epoch.
    """
    # Rules with the same name, unit, period and subject share a counter.
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
    # The same user name in another tenant has another counter.
    common = {"user": (party.tenant, party.user), "tenant": party.tenant}
    # A call of an alias also counts for its original, so aliases do not raise the limit.
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
    """Counter of calls, in the memory of this process if the store fails.

    Args:
        shared: Counters in the store; None if it has none.
        wall: Clock in seconds since the epoch.
    """

    shared: Counters | None
    wall: Clock = time.time
    _local: MemoryCounters = field(default_factory=MemoryCounters, init=False)

    async def charge(self, charges: Sequence[Charge]) -> tuple[Diagnostic, ...]:
        """Count one call.

        Returns:
            A diagnostic if the store failed and only this process counted, else ().

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
