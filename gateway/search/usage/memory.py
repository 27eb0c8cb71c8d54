"""What a gateway remembers of calls, and what searches make of it.

* A call is noted when it has ended, while its caller gets the answer: a ledger that fails costs no
  call, and a metric counts it.
* What was noted is read again after a while, all at once; until then no search reads it.
* What searches returned is noted in the background, and only for a memory of associations.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from gateway.errors import Failed, attempt
from gateway.index.snapshot import Snapshot
from gateway.options import UsageOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Cache, Clock, SingleFlight, Submit
from gateway.runtime.telemetry import Telemetry
from gateway.search.usage import bounded
from gateway.search.usage.bounded import Outcomes
from gateway.search.usage.exposures import Exposures
from gateway.search.usage.past import Past, exposed, habits_of, mark_of, past_of, worn
from gateway.search.usage.sequences import Learned
from gateway.search.usage.signals import NOTHING, Multipliers, Signals
from gateway.types import SearchResult
from gateway.usage.call_log import Call, CallLog

P = ParamSpec("P")
T = TypeVar("T")
_TENANTS = 64
_GROWN = 1.1
"""A history is judged again when its tasks have grown by this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Which signals showed a gain when they were measured, and what they were measured on."""

    learn: bool = False
    rerank: bool = False
    version: int = -1
    tasks: int = 0

    def holds(self, snapshot: Snapshot, past: Past) -> bool:
        """Whether it was measured on about the same catalog and history."""
        return self.version == snapshot.version and len(past.tasks) <= _GROWN * self.tasks


class Usage:
    """The ledger of one gateway, read now and then.

    Args:
        ledger: Where calls are noted.
        options: What that may change.
        telemetry: Told of a ledger that fails.
        clock: Seconds that only grow.
        submit: Starts work in the background.
    """

    def __init__(
        self,
        ledger: CallLog,
        options: UsageOptions,
        *,
        telemetry: Telemetry,
        clock: Clock,
        submit: Submit[object],
    ) -> None:
        self.options = options
        self.ledger = ledger
        self._telemetry = telemetry
        self._clock = clock
        self._signals = Cache[Signals]("usage", max_items=_TENANTS, ttl_s=math.inf, clock=clock)
        self._exposures = Exposures(self._show, submit)
        self._flights = SingleFlight[object](submit)
        self._lock = threading.Lock()
        self._past: Past | None = None
        self._judged = Judged()

    async def note(self, call: Call) -> None:
        """Note a call that has ended, if calls are noted."""
        if self.options.record:
            await self._asked(self.ledger.note, call)

    def showed(self, result: SearchResult) -> None:
        """Note later what a search returned, if rankings are those of a memory of associations."""
        if self.options.rerank == "compat":
            self._exposures.add([match.id for match in result.matches])

    async def signals(self, snapshot: Snapshot, tenant: str = "") -> Signals:
        """Give what the ledger says, as it was read within the last minute.

        Args:
            snapshot: The catalog on which a gain is measured.
            tenant: Whose own calls are to be known; the last 64 are.
        """
        if not self.options.reads:
            return NOTHING
        now = self._clock()
        known = self._signals.peek(tenant) or NOTHING
        if now - known.read_at < self.options.refresh_s:
            return known
        read = await self._asked(self._read, tenant, now)
        signals = replace(read or known, read_at=now)
        self._signals.put(tenant, signals)
        past = self._past
        if self.options.measures and past and not self._judged.holds(snapshot, past):
            self._flights.start("judge", lambda: self._judge(snapshot, past))
        return signals

    async def finish(self) -> None:
        """Wait until what searches returned is noted."""
        await self._exposures.settle()

    async def judged(self) -> Judged:
        """Wait until nothing is measured any more, and say what was."""
        await self._flights.run("judge", _nothing)
        return self._judged

    async def _show(self, *lists: Sequence[str]) -> None:
        await self._asked(self.ledger.show, *lists)

    async def _asked(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        answer = await attempt(in_thread(work, *arguments, **named))
        if isinstance(answer, Failed):
            error_type = type(answer.error).__name__
            self._telemetry.add("gateway.usage.failures", attributes={"error.type": error_type})
            return None
        return answer

    def _read(self, tenant: str, now: float) -> Signals:
        exposure = exposed(self.ledger) if self.options.rerank == "compat" else None
        past = self._read_past(now)
        liked = self._liked(past, tenant) if self._reranks else {}
        learned = self._learned(past, tenant) if self._learns and past.trusted else Learned()
        return Signals(
            liked=liked,
            learned=learned,
            exposure=exposure,
            mark=mark_of(liked, learned, exposure),
        )

    def _read_past(self, now: float) -> Past:
        with self._lock:
            past = self._past
            if past is None or now - past.read_at >= self.options.refresh_s:
                past = self._past = replace(past_of(self.ledger), read_at=now)
            return past

    @property
    def _reranks(self) -> bool:
        chosen = self.options.rerank
        return chosen == "bounded" or (chosen == "auto" and self._judged.rerank)

    @property
    def _learns(self) -> bool:
        chosen = self.options.learn
        return chosen == "on" or (chosen == "auto" and self._judged.learn)

    def _liked(self, past: Past, tenant: str) -> Multipliers:
        own = worn(self.ledger.tallies(tenant)) if tenant else {}
        return {
            tool: bounded.multiplier(own.get(tool, Outcomes()), found)
            for tool, found in past.outcomes.items()
        }

    def _learned(self, past: Past, tenant: str) -> Learned:
        return past.habits.learned(habits_of(self.ledger.tasks(tenant)))

    async def _judge(self, snapshot: Snapshot, past: Past) -> None:
        from gateway.search.replay import replay  # noqa: PLC0415  (only where a gain is measured)

        found = await self._asked(replay, snapshot, past.tasks, past.outcomes)
        if found is not None:
            self._judged = Judged(
                learn=past.trusted and found.learn.measured,
                rerank=found.rerank.measured,
                version=snapshot.version,
                tasks=len(past.tasks),
            )


async def _nothing() -> None:
    return
