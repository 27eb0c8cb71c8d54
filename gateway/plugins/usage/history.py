"""Recording of calls and searches, and the signals that searches use.

* A call is recorded after it ends. If the call log fails, the call still succeeds, and a metric
  counts the failure.
* Searches are counted in batches after a short delay, because many update the same rows.
* The signals of a tenant (learned next steps and score multipliers) are computed at most once in
  each refresh interval, from the tenant's calls and calls without a tenant.
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
"""Seconds for which finished searches wait to be counted together."""
_MAX_WAITING = 10_000
"""Maximum number of waiting searches while the call log hangs. The oldest are dropped."""
_GROWTH = 1.1
"""Growth of the number of tasks after which the gains of signals are measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHistory:
    """Calls from which a tenant may learn: its own, and those without a tenant."""

    outcomes: Mapping[str, Outcomes]
    tasks: Sequence[Task]
    is_predictive: bool
    """True if past tasks predict calls of other tasks. Otherwise the order may be accidental."""

    @classmethod
    def read(cls, call_log: CallLog, tenant: str = "") -> CallHistory:
        """Read the calls for *tenant*.

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
    """Signals that improve next steps, with the catalog version and number of tasks measured."""

    learn: bool = False
    rerank: bool = False
    version: int = -1
    tasks: int = 0

    def is_valid_for(self, snapshot: Snapshot, history: CallHistory) -> bool:
        """Return whether the measurement holds for this catalog and history."""
        return self.version == snapshot.version and len(history.tasks) <= _GROWTH * self.tasks


@dataclass(eq=False, repr=False)
class UsageTracker(UsageLog):
    """Call log of one gateway, and the signals from it.

    Args:
        call_log: Storage of calls and searches.
        options: Options of recording and of the signals.
        telemetry: Counts failures of the call log.
        clock: Monotonic clock in seconds.
        submit: Function that starts a coroutine in the background.
    """

    call_log: CallLog
    options: UsageOptions
    _: KW_ONLY
    telemetry: Telemetry
    clock: Clock
    submit: Submit[Any]

    def __post_init__(self) -> None:
        self._signals = Cache[tuple[float, UsageSignals]]("usage", max_items=_MAX_TENANTS)
        """Signals and the time of their computation, keyed by tenant."""
        self._gains = Cache[MeasuredGains]("gains", max_items=_MAX_TENANTS)
        self._flights = SingleFlight[object](self.submit)
        self._reads = SingleFlight[tuple[CallHistory, UsageSignals] | None](self.submit)
        self._searches = deque[SearchNote](maxlen=_MAX_WAITING)
        """Finished searches that are not in the call log yet."""
        self._will_write = False
        self._writing = threading.Lock()

    name = "usage"
    order = 200
    """Position inside the access gate, so that refused calls are not recorded."""

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Make a tool call and record its outcome."""
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
        """Record a finished call, if recording is on."""
        if self.options.record:
            await self._attempt(self._after_writing_searches, self.call_log.note, call)

    def note_search(
        self, queries: Sequence[str], result: SearchResult, *, task: str = "", tenant: str = ""
    ) -> None:
        """Count a finished search with queries, if recording is on.

        The query text is stored if ``record_queries`` is on and the search has a single query.
        Matches of several queries cannot be told apart.
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
            # If the gateway is closing, `close` writes the searches.
            with suppress(ClosedError):
                self.submit(self._write_later)

    async def _write_later(self) -> None:
        await asyncio.sleep(NOTE_SEARCHES_S)
        await in_thread(self.count_searches)

    def count_searches(self) -> None:
        """Write the waiting searches to the call log. A metric counts failures."""
        failed = attempt_call(self._write_searches)
        if isinstance(failed, Failed):
            self.telemetry.store_failed("call_log", [type(failed.error).__name__])

    def close(self) -> None:
        """Write the waiting searches and close the call log until the next call."""
        self.count_searches()
        self.call_log.close()

    def _write_searches(self) -> None:
        with self._writing:
            # Reset inside the lock, so that at most one more write waits while the call log hangs.
            self._will_write = False
            searches = [self._searches.popleft() for _ in range(len(self._searches))]
            if searches:
                self.call_log.note_searches(searches)

    def _after_writing_searches(
        self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Write the waiting searches, then return the result of *work* on the call log."""
        self.count_searches()
        return work(*arguments, **named)

    async def report(self, snapshot: Snapshot, tenant: str | None = None) -> UsageReport:
        """Return the usage of all enabled tools, as `usage_report` does.

        Raises:
            StoreError: If the call log cannot be read.
        """
        return await in_thread(
            self._after_writing_searches, usage_report, snapshot, self.call_log, tenant
        )

    async def of_tool(self, tool: str, tenant: str | None = None) -> ToolUse | None:
        """Return the usage of one tool; None if recording is off or the call log fails."""
        if not self.options.record:
            return None
        return await self._attempt(
            self._after_writing_searches, tool_use, self.call_log, tool, tenant
        )

    async def signals(self, snapshot: Snapshot, tenant: str = "") -> UsageSignals:
        """Return the signals of a tenant's past calls, at most ``refresh_s`` seconds old.

        Args:
            snapshot: Catalog on which the gains of the signals are measured.
            tenant: Tenant, as for `CallLog`. The signals of 64 tenants are cached.
        """
        if not self.options.reads:
            return NO_SIGNALS
        now = self.clock()
        read_at, cached = self._signals.peek(tenant) or (-math.inf, NO_SIGNALS)
        if now - read_at < self.options.refresh_s:
            return cached
        gains = self._gains.peek(tenant) or MeasuredGains()
        reading = await self._reads.run(tenant, lambda: self._attempt(self._read, tenant, gains))
        history, signals = reading or (None, cached)
        self._signals.put(tenant, (now, signals))
        if self.options.measures and history and not gains.is_valid_for(snapshot, history):
            self._flights.start(
                f"measure {tenant}", lambda: self._measure(snapshot, tenant, history)
            )
        return signals

    async def measured_gains(self, tenant: str = "") -> MeasuredGains:
        """Return the gains of a tenant's signals, after a running measurement."""
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
            multipliers = {
                tool: multiplier(outcomes) for tool, outcomes in history.outcomes.items()
            }
        if _is_on(self.options.learn, has_gain=gains.learn) and history.is_predictive:
            # Older tasks have less weight.
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
    """Return the outcomes of each tool's calls, weighted by age and keyed by tool id."""
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
