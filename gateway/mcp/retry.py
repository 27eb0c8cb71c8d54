"""When a server is tried again, and when it is left alone. The one home of tenacity."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from gateway.errors import UpstreamError
from gateway.options import UpstreamOptions
from gateway.runtime.cache import Clock

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

_JITTER = 0.2
"""By which share the waits of a breaker vary either way, so that many gateways do not come back
all at once."""
_PROBE_S = 1.0
"""How long uses that come during the probe are told to wait."""
_MAX_DOUBLINGS = 32


async def retry_connect(
    connect: Callable[[], Awaitable[T]], options: UpstreamOptions, *, sleep: Sleep = asyncio.sleep
) -> T:
    """Await *connect*, again and again while trying again may help.

    Exponential back-off with full jitter between the attempts. A missing program, a refused key
    and a limit of time that ran out are never tried again.

    Raises:
        UpstreamError: What the last attempt raised.
    """
    return await _back_off(
        connect,
        options,
        lambda error: isinstance(error, UpstreamError) and error.kind == "connect",
        max_attempts=options.connect_attempts,
        sleep=sleep,
    )


async def retry_forever(
    work: Callable[[], Awaitable[None]], options: UpstreamOptions, *, can_retry: Callable[[], bool]
) -> None:
    """Await *work* again whenever it ends, further and further apart, until it is cancelled.

    Args:
        work: Goes on for a while.
        options: How far apart.
        can_retry: Whether it is tried again when it failed.

    Raises:
        UpstreamError: What it raised while it was not to be tried again.
    """
    await _back_off(
        work,
        options,
        lambda error: error is None or (isinstance(error, UpstreamError) and can_retry()),
    )


async def retry_if_safe(call: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Await *call*; once more only if the first provably never left, or may run twice.

    Args:
        call: Sends a request.
        repeatable: The tool is declared read-only or idempotent by a trusted server: then
            a request whose connection was lost under way is sent again too.

    Raises:
        UpstreamError: What the last attempt raised.
    """
    try:
        return await call()
    except UpstreamError as error:
        if error.kind != "lost" or (error.sent and not repeatable):
            raise
    return await call()


def retry_while_locked(
    work: Callable[[], T],
    is_locked: Callable[[BaseException], bool],
    *,
    pause_s: float,
    max_s: float,
) -> T:
    """Do *work*, again and again while others lock what it needs. Blocks.

    Args:
        work: Raises if it cannot have what it needs.
        is_locked: Whether that is why.
        pause_s: Between two attempts.
        max_s: How long in all.

    Raises:
        Exception: What the last attempt raised.
    """
    import tenacity  # noqa: PLC0415  (only a locked file needs it)

    return tenacity.Retrying(
        stop=tenacity.stop_after_delay(max_s),
        wait=tenacity.wait_fixed(pause_s),
        retry=tenacity.retry_if_exception(is_locked),
        reraise=True,
    )(work)


async def _back_off(
    work: Callable[[], Awaitable[T]],
    options: UpstreamOptions,
    should_retry: Callable[[BaseException | None], bool],
    *,
    max_attempts: int | None = None,
    sleep: Sleep = asyncio.sleep,
) -> T:
    import tenacity  # noqa: PLC0415  (only a session needs it)

    # tenacity awaits only what it sees to be a coroutine function.
    async def attempt() -> T:
        return await work()

    return await tenacity.AsyncRetrying(
        sleep=sleep,
        stop=tenacity.stop_after_attempt(max_attempts) if max_attempts else tenacity.stop_never,
        wait=tenacity.wait_random_exponential(
            multiplier=options.backoff_s, max=options.backoff_max_s
        ),
        retry=lambda state: state.outcome is not None and should_retry(state.outcome.exception()),
        reraise=True,
    )(attempt)


class Breaker:
    """A circuit breaker: a server that keeps failing is left alone, then probed once.

    When its time is over an open breaker lets one use through, whose outcome decides. Not for
    several threads.

    Args:
        options: How many failures in a row open it, how long it is open the first time, and at
            most; each failed probe doubles the time.
        clock: Seconds that only grow.
    """

    def __init__(self, options: UpstreamOptions, *, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._probe: object = None

    @property
    def is_open(self) -> bool:
        """Whether the server is left alone now."""
        return self._open_until is not None and self._clock() < self._open_until

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
            # If nothing was recorded, it said nothing of the server: the next use is the probe.
            if self._probe is use:
                self._probe = None

    def record_success(self) -> None:
        """Take note that the server answered."""
        self._failures = self._openings = 0
        self._open_until = self._probe = None

    def record_failure(self) -> None:
        """Take note that the server could not be reached, died or stayed silent."""
        options = self._options
        self._failures += 1
        is_tripped = self._open_until is None and self._failures >= options.breaker_failures
        if self._probe is not None or is_tripped:
            wait_s = min(options.breaker_s * 2**self._openings, options.breaker_max_s)
            self._openings = min(self._openings + 1, _MAX_DOUBLINGS)
            jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  (no secret)
            self._open_until = self._clock() + wait_s * jitter
