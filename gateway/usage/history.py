"""The calls of a gateway, noted and read again.

* A call is noted when it has ended, while its caller gets the answer: a call log that fails costs
  no call, and a metric counts it.
* What was noted is read again after a while, all at once; until then no search reads it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from gateway.errors import Failed, attempt
from gateway.index.snapshot import Snapshot
from gateway.options import UsageOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Cache, Clock, SingleFlight, Submit
from gateway.runtime.telemetry import Telemetry
from gateway.usage.call_log import Call, CallLog, Tally, Task
from gateway.usage.evaluation import UsageEvaluation
from gateway.usage.rerank import Outcomes, decay, multiplier
from gateway.usage.transitions import LearnedSteps, TransitionCounts, is_predictive

P = ParamSpec("P")
T = TypeVar("T")
Evaluate = Callable[[Snapshot, Sequence[Task], Mapping[str, Outcomes]], UsageEvaluation]
"""Measures on a catalog what each signal would have gained."""
_MAX_TENANTS = 64
_GROWTH = 1.1
"""A history is evaluated again when its tasks have grown by this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSignals:
    """What the call log said for one tenant when it was read last."""

    multipliers: Mapping[str, float] = field(default_factory=dict)
    """Of tools by canonical id, 0.85 to 1.15; see `gateway.usage.rerank`."""
    learned: LearnedSteps = field(default_factory=LearnedSteps)
    """Next steps that calls have shown."""
    fingerprint: int = 0
    """Equal for equal signals, in this process."""
    read_at: float = -math.inf


NO_SIGNALS = UsageSignals()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """What all tenants called, as it was read last."""

    outcomes: Mapping[str, Outcomes]
    tasks: Sequence[Task]
    transitions: TransitionCounts
    is_predictive: bool
    """Whether its tasks predict each other; else the order of calls may be chance."""
    read_at: float = -math.inf

    @classmethod
    def read(cls, call_log: CallLog) -> CallHistory:
        """Read what all tenants called.

        Raises:
            StoreError: If the call log cannot be read.
        """
        tasks = call_log.tasks()
        return cls(
            outcomes=sum_outcomes(call_log.tallies()),
            tasks=tasks,
            transitions=_count_transitions(tasks),
            is_predictive=is_predictive([task.tools for task in tasks]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGains:
    """Which signals showed a gain when they were measured, and what they were measured on."""

    learn: bool = False
    rerank: bool = False
    version: int = -1
    tasks: int = 0

    def holds(self, snapshot: Snapshot, history: CallHistory) -> bool:
        """Return whether it was measured on about the same catalog and history."""
        return self.version == snapshot.version and len(history.tasks) <= _GROWTH * self.tasks


class UsageTracker:
    """The call log of one gateway, read now and then.

    Args:
        call_log: Where calls are noted.
        options: What they may change.
        evaluate: Measures a gain, where the options want one.
        telemetry: Counts failures of the call log.
        clock: Seconds that only grow.
        submit: Starts work in the background.
    """

    def __init__(
        self,
        call_log: CallLog,
        options: UsageOptions,
        evaluate: Evaluate,
        *,
        telemetry: Telemetry,
        clock: Clock,
        submit: Submit[object],
    ) -> None:
        self.options = options
        self.call_log = call_log
        self._telemetry = telemetry
        self._clock = clock
        self._evaluate = evaluate
        self._signals = Cache[UsageSignals](
            "usage", max_items=_MAX_TENANTS, ttl_s=math.inf, clock=clock
        )
        self._flights = SingleFlight[object](submit)
        self._lock = threading.Lock()
        self._history: CallHistory | None = None
        self._gains = MeasuredGains()

    async def note(self, call: Call) -> None:
        """Note a call that has ended, if calls are noted."""
        if self.options.record:
            await self._attempt(self.call_log.note, call)

    async def signals(self, snapshot: Snapshot, tenant: str = "") -> UsageSignals:
        """Return what the call log says, as it was read within the last minute.

        Args:
            snapshot: The catalog on which a gain is measured.
            tenant: Whose own calls count more; the last 64 are remembered.
        """
        if not self.options.reads:
            return NO_SIGNALS
        now = self._clock()
        cached = self._signals.peek(tenant) or NO_SIGNALS
        if now - cached.read_at < self.options.refresh_s:
            return cached
        read = await self._attempt(self._read, tenant, now)
        signals = replace(read or cached, read_at=now)
        self._signals.put(tenant, signals)
        history = self._history
        if self.options.measures and history and not self._gains.holds(snapshot, history):
            self._flights.start("measure", lambda: self._measure(snapshot, history))
        return signals

    async def measured_gains(self) -> MeasuredGains:
        """Wait until nothing is measured any more, and return what was."""
        await self._flights.run("measure", _nothing)
        return self._gains

    async def _attempt(
        self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T | None:
        result = await attempt(in_thread(work, *arguments, **named))
        if isinstance(result, Failed):
            self._telemetry.store_failed("call_log", [type(result.error).__name__])
            return None
        return result

    def _read(self, tenant: str, now: float) -> UsageSignals:
        multipliers, learned = dict[str, float](), LearnedSteps()
        history = self._read_history(now)
        if _is_on(self.options.rerank, has_gain=self._gains.rerank):
            own = sum_outcomes(self.call_log.tallies(tenant)) if tenant else {}
            multipliers = {
                tool: multiplier(own.get(tool, Outcomes()), outcomes)
                for tool, outcomes in history.outcomes.items()
            }
        if _is_on(self.options.learn, has_gain=self._gains.learn) and history.is_predictive:
            own_transitions = _count_transitions(self.call_log.tasks(tenant))
            learned = history.transitions.learned_steps(own_transitions)
        return UsageSignals(
            multipliers=multipliers, learned=learned, fingerprint=_fingerprint(multipliers, learned)
        )

    def _read_history(self, now: float) -> CallHistory:
        with self._lock:
            history = self._history
            if history is None or now - history.read_at >= self.options.refresh_s:
                history = replace(CallHistory.read(self.call_log), read_at=now)
                self._history = history
            return history

    async def _measure(self, snapshot: Snapshot, history: CallHistory) -> None:
        work = self._evaluate
        evaluation = await self._attempt(work, snapshot, history.tasks, history.outcomes)
        if evaluation is not None:
            self._gains = MeasuredGains(
                learn=history.is_predictive and evaluation.learn.measured,
                rerank=evaluation.rerank.measured,
                version=snapshot.version,
                tasks=len(history.tasks),
            )


def sum_outcomes(tallies: Sequence[Tally]) -> dict[str, Outcomes]:
    """Add up how the calls of each tool ended, older ones counting less."""
    outcomes: dict[str, Outcomes] = {}
    for tally in tallies:
        weight = decay(tally.age_s)
        ended = Outcomes(succeeded=weight * tally.succeeded, failed=weight * tally.failed)
        outcomes[tally.tool] = outcomes.get(tally.tool, Outcomes()) + ended
    return outcomes


def _count_transitions(tasks: Sequence[Task]) -> TransitionCounts:
    """Count what came behind what, older tasks counting less."""
    weights = (decay(task.age_s) for task in tasks)
    return TransitionCounts.of((task.tools for task in tasks), weights)


def _is_on(chosen: str, *, has_gain: bool) -> bool:
    return chosen in {"on", "bounded"} or (chosen == "auto" and has_gain)


def _fingerprint(multipliers: Mapping[str, float], learned: LearnedSteps) -> int:
    edges = (edge for following in learned.edges.values() for edge in following)
    return hash(
        (frozenset(multipliers.items()), frozenset(edges), frozenset(learned.often.items()))
    )


async def _nothing() -> None:
    return
