"""The calls of a gateway, noted and read again.

* A call is noted when it has ended, while its caller gets the answer: a call log that fails costs
  no call, and a metric counts it.
* Searches are counted together, a moment later: they are many, and all count in the same rows.
* What was noted is read again after a while, all at once; until then no search reads it.
* What a tenant is shown rests on its own calls and on those without a tenant, never on another's.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, ParamSpec, TypeVar

from gateway.call.hooks import Call, Proceed
from gateway.errors import ClosedError, Failed, GatewayError, attempt, attempt_call
from gateway.index.snapshot import Snapshot
from gateway.options import UsageOptions
from gateway.plugins.usage.analytics import ToolUse, UsageReport, tool_use, usage_report
from gateway.plugins.usage.call_log import (
    MAX_QUERY_CHARS,
    CallLog,
    CallNote,
    Outcome,
    SearchNote,
    Tally,
    Task,
    shape_of,
)
from gateway.plugins.usage.step_evaluation import Outcomes, decay, evaluate_usage, multiplier
from gateway.plugins.usage.transitions import TransitionCounts, is_predictive
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Cache, Clock, SingleFlight, Submit
from gateway.runtime.secret_scanner import redact
from gateway.runtime.telemetry import Telemetry
from gateway.search.learned import NO_SIGNALS, LearnedSteps, UsageLog, UsageSignals
from gateway.types import InvokeResult, SearchResult

P = ParamSpec("P")
T = TypeVar("T")
_MAX_TENANTS = 64
NOTE_SEARCHES_S = 0.25
"""How long a search waits for others that are counted in the same transaction."""
_MOST_WAITING = 10_000
"""How many searches wait while the call log hangs; of more, the oldest are not counted."""
_GROWTH = 1.1
"""A history is evaluated again when its tasks have grown by this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """What one tenant called, and what was called without a tenant."""

    outcomes: Mapping[str, Outcomes]
    tasks: Sequence[Task]
    is_predictive: bool
    """Whether its tasks predict each other; else the order of calls may be chance."""

    @classmethod
    def read(cls, call_log: CallLog, tenant: str = "") -> CallHistory:
        """Read what *tenant* may learn from.

        Raises:
            StoreError: If the call log cannot be read.
        """
        tasks = call_log.tasks(tenant)
        return cls(
            outcomes=sum_outcomes(call_log.tallies(tenant)),
            tasks=tasks,
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


@dataclass(eq=False, repr=False)
class UsageTracker(UsageLog):
    """The call log of one gateway, read now and then.

    Args:
        call_log: Where calls are noted.
        options: What they may change.
        telemetry: Counts failures of the call log.
        clock: Seconds that only grow.
        submit: Starts work in the background.
    """

    call_log: CallLog
    options: UsageOptions
    _: KW_ONLY
    telemetry: Telemetry
    clock: Clock
    submit: Submit[Any]

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self._signals = Cache[tuple[float, UsageSignals]]("usage", max_items=_MAX_TENANTS)
        """When they were read, and what they are."""
        self._gains = Cache[MeasuredGains]("gains", max_items=_MAX_TENANTS)
        self._flights = SingleFlight[object](self.submit)
        self._reads = SingleFlight[tuple[CallHistory, UsageSignals] | None](self.submit)
        self._searches = deque[SearchNote](maxlen=_MOST_WAITING)
        """Not in the call log yet."""
        self._will_write = False
        self._writing = threading.Lock()

    name = "usage"
    order = 200
    """It stands inside the gate: a call that the gate refuses is not noted."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Note how a call of a tool ends; a hook around each call."""
        if call.action != "call":
            return await proceed(call)
        began = time.perf_counter()

        def ended(outcome: Outcome) -> CallNote:
            return CallNote(
                tool=call.entity.id,
                shape=shape_of(call.entity, call.arguments),
                outcome=outcome,
                seconds=time.perf_counter() - began,
                task=call.task,
                tenant=call.caller.tenant,
            )

        try:
            result = await proceed(call)
        except GatewayError:
            await self.note(ended("failed"))
            raise
        await self.note(ended("tool_error" if result.is_error else "ok"))
        return result

    async def note(self, call: CallNote) -> None:
        """Note a call that has ended, if calls are noted."""
        if self.options.record:
            await self._attempt(self._written, self.call_log.note, call)

    def note_search(
        self, queries: Sequence[str], result: SearchResult, *, task: str = "", tenant: str = ""
    ) -> None:
        """Count a search that has ended, if calls are noted; not one that only browses.

        Its text is kept where that is wanted. One of several queries has no matches of its own, so
        these are not kept.
        """
        if not self.options.record or not queries:
            return
        is_kept = self.options.record_queries and len(queries) == 1
        search = SearchNote(
            found=tuple(match.id for match in result.matches),
            low_confidence=any(
                note.code == "low_confidence_results" for note in result.diagnostics
            ),
            query=redact(queries[0])[:MAX_QUERY_CHARS] if is_kept else "",
            task=task,
            tenant=tenant,
        )
        self._searches.append(search)
        if not self._will_write:
            self._will_write = True
            # A gateway that is being closed writes them itself.
            with suppress(ClosedError):
                self.submit(self._write_later)

    async def _write_later(self) -> None:
        await asyncio.sleep(NOTE_SEARCHES_S)
        await in_thread(self.count_searches)

    def count_searches(self) -> None:
        """Count the searches that wait in the call log; if that fails, a metric says so."""
        failed = attempt_call(self._write_searches)
        if isinstance(failed, Failed):
            self.telemetry.store_failed("call_log", [type(failed.error).__name__])

    def close(self) -> None:
        """Write all that waits, and close the call log; the next note opens it again."""
        self.count_searches()
        self.call_log.close()

    def _write_searches(self) -> None:
        with self._writing:
            # Not before: while the call log hangs, no more than one other write may wait for it.
            self._will_write = False
            searches = [self._searches.popleft() for _ in range(len(self._searches))]
            if searches:
                self.call_log.note_searches(searches)

    def _written(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Do *work* with a call log in which all searches are counted."""
        self.count_searches()
        return work(*arguments, **named)

    async def report(self, snapshot: Snapshot, tenant: str | None = None) -> UsageReport:
        """Return what searches and calls say of the catalog; see `usage_report`.

        Raises:
            StoreError: If the call log cannot be read.
        """
        return await in_thread(self._written, usage_report, snapshot, self.call_log, tenant)

    async def of_tool(self, tool: str, tenant: str | None = None) -> ToolUse | None:
        """Return how often a tool was found and called; None if nothing is noted, or can be read.

        See `tool_use`.
        """
        if not self.options.record:
            return None
        return await self._attempt(self._written, tool_use, self.call_log, tool, tenant)

    async def signals(self, snapshot: Snapshot, tenant: str = "") -> UsageSignals:
        """Return what the call log says, as it was read within the last minute.

        Args:
            snapshot: The catalog on which a gain is measured.
            tenant: Whose calls count, beside those without a tenant; the last 64 are remembered.
        """
        if not self.options.reads:
            return NO_SIGNALS
        now = self.clock()
        read_at, cached = self._signals.peek(tenant) or (-math.inf, NO_SIGNALS)
        if now - read_at < self.options.refresh_s:
            return cached
        gains = self._gains.peek(tenant) or MeasuredGains()
        read = await self._reads.run(tenant, lambda: self._attempt(self._read, tenant, gains))
        history, signals = read or (None, cached)
        self._signals.put(tenant, (now, signals))
        if self.options.measures and history and not gains.holds(snapshot, history):
            self._flights.start(
                f"measure {tenant}", lambda: self._measure(snapshot, tenant, history)
            )
        return signals

    async def measured_gains(self, tenant: str = "") -> MeasuredGains:
        """Wait until nothing is measured for *tenant* any more, and return what was."""
        await self._flights.run(f"measure {tenant}", _nothing)
        return self._gains.peek(tenant) or MeasuredGains()

    async def _attempt(
        self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T | None:
        result = await attempt(in_thread(work, *arguments, **named))
        if isinstance(result, Failed):
            self.telemetry.store_failed("call_log", [type(result.error).__name__])
            return None
        return result

    def _read(self, tenant: str, gains: MeasuredGains) -> tuple[CallHistory, UsageSignals]:
        multipliers, learned = dict[str, float](), LearnedSteps()
        history = CallHistory.read(self.call_log, tenant)
        if _is_on(self.options.rerank, has_gain=gains.rerank):
            multipliers = {tool: multiplier(each) for tool, each in history.outcomes.items()}
        if _is_on(self.options.learn, has_gain=gains.learn) and history.is_predictive:
            # Older tasks count less.
            weights = (decay(task.age_s) for task in history.tasks)
            counts = TransitionCounts.of((task.tools for task in history.tasks), weights)
            learned = counts.learned_steps()
        return history, UsageSignals(
            multipliers=multipliers, learned=learned, fingerprint=_fingerprint(multipliers, learned)
        )

    async def _measure(self, snapshot: Snapshot, tenant: str, history: CallHistory) -> None:
        evaluation = await self._attempt(evaluate_usage, snapshot, history.tasks, history.outcomes)
        if evaluation is not None:
            gains = MeasuredGains(
                learn=history.is_predictive and evaluation.learn.measured,
                rerank=evaluation.rerank.measured,
                version=snapshot.version,
                tasks=len(history.tasks),
            )
            self._gains.put(tenant, gains)


def sum_outcomes(tallies: Sequence[Tally]) -> dict[str, Outcomes]:
    """Add up how the calls of each tool ended, older ones counting less."""
    outcomes: dict[str, Outcomes] = {}
    for tally in tallies:
        weight = decay(tally.age_s)
        ended = Outcomes(succeeded=weight * tally.succeeded, failed=weight * tally.failed)
        outcomes[tally.tool] = outcomes.get(tally.tool, Outcomes()) + ended
    return outcomes


def _is_on(chosen: str, *, has_gain: bool) -> bool:
    return chosen in {"on", "bounded"} or (chosen == "auto" and has_gain)


def _fingerprint(multipliers: Mapping[str, float], learned: LearnedSteps) -> int:
    edges = (edge for following in learned.edges.values() for edge in following)
    return hash(
        (frozenset(multipliers.items()), frozenset(edges), frozenset(learned.often.items()))
    )


async def _nothing() -> None:
    return
