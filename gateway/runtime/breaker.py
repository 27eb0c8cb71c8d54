from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, TypeVar

from gateway.errors import ClosedError, Failed, GatewayError, attempt_within
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock, SingleFlight, Submit

T = TypeVar("T")

_JITTER = 0.2
"""Maximum random change of the open time, as a share of it, so that gateways do not retry at the
same moment."""
_PROBE_S = 1.0
"""Waiting time for uses that arrive while a probe of the dependency is running, in seconds."""
_MAX_DOUBLINGS = 32
_SERVICE = UpstreamOptions(breaker_failures=3, breaker_s=1.0, breaker_max_s=15.0)
"""Breaker settings of a `ServiceGuard`."""
_SLOW_S = 1.0
"""Minimum duration of a failed request that a `ServiceGuard` counts, in seconds."""
_PATIENCE_SHARE = 0.99
"""Share of `ServiceGuard.patience_s` after which a cancelled request counts as a failure."""


class Breaker:
    """A circuit breaker, which skips a failing dependency and later probes it. Not thread-safe.

    When its open time is over, the breaker admits one use as a probe. A successful probe closes the
    breaker, a failed one opens it again.

    Args:
        options: Number of consecutive failures that open the breaker (``breaker_failures``), its
            first open time (``breaker_s``) and its maximum open time (``breaker_max_s``). Open
            times vary randomly by a fifth. Each opening doubles the next open time. Two successes
            at least ``breaker_max_s`` seconds apart, without a failure between, reset the doubling.
    """

    def __init__(self, options: UpstreamOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._well_since: float | None = None
        """Time of the first success after the last failure."""
        self._open_until: float | None = None
        self._probe: object = None

    @property
    def is_open(self) -> bool:
        """True if the dependency is skipped now."""
        return self._open_until is not None and self._clock() < self._open_until

    @property
    def has_tripped(self) -> bool:
        """True if the breaker opened and no success followed."""
        return self._open_until is not None

    @contextmanager
    def admit(self) -> Iterator[float]:
        """Yield the number of seconds to wait; 0 admits the use of the dependency in the block."""
        use, wait_s = object(), 0.0
        if self._open_until is not None:
            wait_s = max(self._open_until - self._clock(), 0.0)
            if not wait_s and self._probe is not None:
                wait_s = _PROBE_S
            elif not wait_s:
                self._probe = use
        try:
            yield wait_s
        finally:
            # A probe without a recorded outcome is repeated by the next use.
            if self._probe is use:
                self._probe = None

    def end_wait(self) -> None:
        """End the open time of an open breaker, so that the next use is admitted as a probe."""
        if self._open_until is not None:
            self._open_until = self._clock()

    def record_success(self) -> None:
        """Record that the dependency answered."""
        self._failures = 0
        self._open_until = self._probe = None
        if self._well_since is None:
            self._well_since = self._clock()
        elif self._clock() - self._well_since >= self._options.breaker_max_s:
            self._openings = 0

    def record_failure(self, *, trip: bool = False) -> None:
        """Record that the dependency was unreachable, ended or did not answer.

        *trip* opens the breaker at once.
        """
        options = self._options
        self._well_since = None
        self._failures += options.breaker_failures if trip else 1
        is_tripped = self._open_until is None and self._failures >= options.breaker_failures
        if self._probe is not None or is_tripped:
            wait_s = min(options.breaker_s * 2**self._openings, options.breaker_max_s)
            self._openings = min(self._openings + 1, _MAX_DOUBLINGS)
            jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  (no secret)
            self._open_until = self._clock() + wait_s * jitter


@dataclass(eq=False, repr=False)
class ServiceGuard:
    """Skips a service after several slow failures in a row, until it answers again.

    While the service is skipped, the last failed request is repeated in the background at growing
    intervals. Any answer, even a late one, ends the skipping. Safe for any thread and event loop.

    Args:
        patience_s: Time in seconds that a search waits for an answer.
        submit: Starts work on the gateway's background loop.
        sleep: Awaited with the number of seconds between two repeated requests.
    """

    name: str
    _: KW_ONLY
    patience_s: float
    submit: Submit[Any]
    clock: Clock = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._breaker = Breaker(_SERVICE, clock=self.clock)
        self._probes = SingleFlight[None](self.submit)
        self._failed_at = -math.inf
        """Time of the last counted failure, as returned by `clock`."""

    async def run(
        self, flights: SingleFlight[T], key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Send a request. Concurrent callers with equal *key* share it.

        Successes and slow failures are recorded. Of concurrent failures, only the first counts.

        Raises:
            GatewayError: If the service is skipped. *work* may still run in the background as a
                probe.
            Exception: Any exception of *work*.
        """
        if self._breaker.has_tripped:
            self._start_probe(work)
            raise GatewayError(
                f"the {self.name} was skipped: it did not answer {_SERVICE.breaker_failures} "
                "times in a row, and is asked again in the background"
            )
        start = self.clock()
        try:
            return await flights.run(key, partial(self._await_answer, work))
        except BaseException as error:
            # A request cancelled well before the time limit does not prove that the service hangs.
            is_gone = isinstance(error, asyncio.CancelledError)
            limit_s = _PATIENCE_SHARE * self.patience_s
            if self.clock() - start >= (limit_s if is_gone else min(limit_s, _SLOW_S)):
                self._record_failure(work, start)
            raise

    async def _await_answer(self, work: Callable[[], Awaitable[T]]) -> T:
        result = await work()
        with self._lock:
            self._breaker.record_success()
        return result

    def _record_failure(self, work: Callable[[], Awaitable[object]], start: float) -> None:
        with self._lock:
            # Of concurrent requests, only the first failure counts.
            if start < self._failed_at:
                return
            self._failed_at = self.clock()
            self._breaker.record_failure()
        if self._breaker.has_tripped:
            with suppress(ClosedError):
                self._start_probe(work)

    def _start_probe(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeat *work* in the background until the service answers, unless a repetition is
        running.

        Its spans do not belong to the caller's trace.
        """
        Context().run(self._probes.start, "probe", partial(self._probe, work))

    async def _probe(self, work: Callable[[], Awaitable[object]]) -> None:
        silence = GatewayError(f"the {self.name} still does not answer")
        while self._breaker.has_tripped:
            with self._breaker.admit() as wait_s:
                if not wait_s:
                    request = self._await_answer(work)
                    answer = await attempt_within(request, self.patience_s, silence)
                    if isinstance(answer, Failed):
                        with self._lock:
                            self._breaker.record_failure()
            await self.sleep(wait_s)
