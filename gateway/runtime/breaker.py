"""What keeps failing is left alone for a while: a server, or the service of a model.

A `Breaker` counts. A `ServiceGuard` keeps searches from waiting for a service that hangs.
"""

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
"""By which share the waits of a breaker vary either way, so that many gateways do not come back
all at once."""
_PROBE_S = 1.0
"""How long uses that come during the probe are told to wait."""
_MAX_DOUBLINGS = 32
_SERVICE = UpstreamOptions(breaker_failures=3, breaker_s=1.0, breaker_max_s=15.0)
"""When a service is skipped, and how long its probes are apart."""
_SLOW_S = 1.0
"""A failure that took less cost nobody anything: the next request tries again."""
_PATIENCE_SHARE = 0.99
"""Who is cancelled after this share of its patience has waited for all of it."""


class Breaker:
    """A circuit breaker: what keeps failing is left alone, then probed once.

    When its time is over an open breaker lets one use through, whose outcome decides. Not for
    several threads.

    Args:
        options: How many failures in a row open it, how long it is open the first time, and at
            most. Each opening doubles the time, until it went well for as long as that most.
        clock: Seconds that only grow.
    """

    def __init__(self, options: UpstreamOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._well_since: float | None = None
        """When it first answered after it failed last."""
        self._open_until: float | None = None
        self._probe: object = None

    @property
    def is_open(self) -> bool:
        """Whether it is left alone now."""
        return self._open_until is not None and self._clock() < self._open_until

    @property
    def has_tripped(self) -> bool:
        """Whether it failed so often, and has not answered since."""
        return self._open_until is not None

    @contextmanager
    def admit(self) -> Iterator[float]:
        """Yield how many seconds to stay away; 0 lets a use through, which lasts for the block."""
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
            # If nothing was recorded, it said nothing: the next use is the probe.
            if self._probe is use:
                self._probe = None

    def end_wait(self) -> None:
        """Let the next use through, as if the time were over."""
        if self._open_until is not None:
            self._open_until = self._clock()

    def record_success(self) -> None:
        """Take note that it answered."""
        self._failures = 0
        self._open_until = self._probe = None
        if self._well_since is None:
            self._well_since = self._clock()
        elif self._clock() - self._well_since >= self._options.breaker_max_s:
            self._openings = 0

    def record_failure(self, *, trip: bool = False) -> None:
        """Take note that it could not be reached, died or stayed silent.

        Args:
            trip: Whether once is often enough.
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
    """Skips a service that did not answer a few times in a row, until it does.

    The request that it answered last too late is then sent again in the background, further and
    further apart. Any answer, also a late one, ends that. For any thread and loop.

    Args:
        name: What the service is, for messages.
        patience_s: Seconds for which a search waits for an answer.
        submit: Starts work on the gateway's own loop.
        clock: Seconds that only grow.
        sleep: Waits until the next probe.
    """

    name: str
    _: KW_ONLY
    patience_s: float
    submit: Submit[Any]
    clock: Clock = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        """Begin with a service that answers."""
        self._lock = threading.Lock()
        self._breaker = Breaker(_SERVICE, clock=self.clock)
        self._probes = SingleFlight[None](self.submit)
        self._failed_at = -math.inf
        """When a request was last counted as failed."""

    async def run(
        self, flights: SingleFlight[T], key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        """Await the flight of *key*, a request, and note how it ended for this caller.

        Raises:
            GatewayError: The service is skipped now; nothing was sent.
            Exception: Whatever *work* raises.
        """
        if self._breaker.has_tripped:
            self._start_probe(work)
            raise GatewayError(
                f"the {self.name} was skipped: it did not answer {_SERVICE.breaker_failures} "
                "times in a row, and is asked again in the background"
            )
        began = self.clock()
        try:
            return await flights.run(key, partial(self._answered, work))
        except BaseException as error:
            # Who goes away earlier says nothing of the service.
            is_gone = isinstance(error, asyncio.CancelledError)
            limit_s = _PATIENCE_SHARE * self.patience_s
            if self.clock() - began >= (limit_s if is_gone else min(limit_s, _SLOW_S)):
                self._note_failure(work, began)
            raise

    async def _answered(self, work: Callable[[], Awaitable[T]]) -> T:
        result = await work()
        with self._lock:
            self._breaker.record_success()
        return result

    def _note_failure(self, work: Callable[[], Awaitable[object]], began: float) -> None:
        with self._lock:
            # Requests side by side fail once.
            if began < self._failed_at:
                return
            self._failed_at = self.clock()
            self._breaker.record_failure()
        if self._breaker.has_tripped:
            with suppress(ClosedError):
                self._start_probe(work)

    def _start_probe(self, work: Callable[[], Awaitable[object]]) -> None:
        """Start the probe, unless it is under way. It belongs to no caller's trace."""
        Context().run(self._probes.start, "probe", partial(self._probe, work))

    async def _probe(self, work: Callable[[], Awaitable[object]]) -> None:
        silence = GatewayError(f"the {self.name} is still silent")
        while self._breaker.has_tripped:
            with self._breaker.admit() as wait_s:
                if not wait_s:
                    request = self._answered(work)
                    answer = await attempt_within(request, self.patience_s, silence)
                    if isinstance(answer, Failed):
                        with self._lock:
                            self._breaker.record_failure()
            await self.sleep(wait_s)
