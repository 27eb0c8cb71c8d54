"""What a gateway remembers of calls, and what searches make of it.

* A call is noted when it has ended, beside the caller's answer: a ledger that fails costs a
  metric, never a call.
* What was noted is read again after a while, in one go; until then a search asks nobody.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from gateway.cache import Cache, Clock
from gateway.catalog.ledger import Call, Ledger, Tally
from gateway.errors import Failed, attempt
from gateway.limits import UsageOptions
from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.telemetry import Telemetry

P = ParamSpec("P")
T = TypeVar("T")
Multipliers = Mapping[str, float]
"""Of tools by canonical id, 0.85 to 1.15; see `gateway.search.usage.bounded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the ledger said for one tenant when it was read last."""

    liked: Multipliers
    mark: int = 0
    """Equal for equal signals."""
    read_at: float = -math.inf


NOTHING = Signals(liked={})
_TENANTS = 64


class Usage:
    """The ledger of one gateway, read now and then.

    Args:
        ledger: Where calls are noted.
        options: What that may change.
        telemetry: Told of a ledger that fails.
        clock: Seconds that only grow.
    """

    def __init__(
        self, ledger: Ledger, options: UsageOptions, *, telemetry: Telemetry, clock: Clock
    ) -> None:
        self.options = options
        self.ledger = ledger
        self._telemetry = telemetry
        self._clock = clock
        self._signals = Cache[Signals]("usage", max_items=_TENANTS, ttl_s=math.inf, clock=clock)

    async def note(self, call: Call) -> None:
        """Note a call that has ended, if calls are noted."""
        if self.options.record:
            await self._asked(self.ledger.note, call)

    async def signals(self, tenant: str = "") -> Signals:
        """Give what the ledger says, as it was read within the last minute.

        Args:
            tenant: Whose own calls are to be known; the last 64 are.
        """
        if not self.options.rerank:
            return NOTHING
        now = self._clock()
        known = self._signals.peek(tenant) or NOTHING
        if now - known.read_at < self.options.refresh_s:
            return known
        liked = await self._asked(self._read, tenant)
        if liked is None:
            read = replace(known, read_at=now)
        else:
            read = Signals(liked=liked, mark=hash(frozenset(liked.items())), read_at=now)
        self._signals.put(tenant, read)
        return read

    async def _asked(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        answer = await attempt(asyncio.to_thread(work, *arguments, **named))
        if isinstance(answer, Failed):
            error_type = type(answer.error).__name__
            self._telemetry.add("gateway.usage.failures", attributes={"error.type": error_type})
            return None
        return answer

    def _read(self, tenant: str) -> Multipliers:
        everybody = worn(self.ledger.tallies())
        own = worn(self.ledger.tallies(tenant)) if tenant else {}
        return {
            tool: bounded.multiplier(own.get(tool, Outcomes()), found)
            for tool, found in everybody.items()
        }


def worn(tallies: Sequence[Tally]) -> dict[str, Outcomes]:
    """Add up how the calls of each tool ended, older ones counting less."""
    found: dict[str, Outcomes] = {}
    for each in tallies:
        weight = bounded.decayed(each.age_s)
        ended = Outcomes(succeeded=weight * each.succeeded, failed=weight * each.failed)
        found[each.tool] = found.get(each.tool, Outcomes()) + ended
    return found
