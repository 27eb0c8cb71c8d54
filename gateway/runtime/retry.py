from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.errors import UpstreamError
from gateway.options import UpstreamOptions

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def retry_connect(
    connect: Callable[[], Awaitable[T]], options: UpstreamOptions, *, sleep: Sleep = asyncio.sleep
) -> T:
    """Await *connect*, and repeat it after errors that may be temporary. Return its result.

    The pauses grow exponentially with full jitter. A missing program, refused credentials and a
    timeout are not retried.

    Raises:
        UpstreamError: Error of the last attempt.
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
    """Await *work* again whenever it ends, with growing pauses, until the caller is cancelled.

    Raises:
        UpstreamError: Error of *work* after which *can_retry* returned False.
    """
    await _back_off(
        work,
        options,
        lambda error: error is None or (isinstance(error, UpstreamError) and can_retry()),
    )


async def retry_if_safe(call: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Await *call*. Repeat it once if the request was certainly not sent, or may run twice.

    *repeatable* is True if a trusted server declares the tool read-only or idempotent.

    Raises:
        UpstreamError: Error of the last attempt.
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
    """Call *work* and repeat it while another process holds a lock. Blocks at most *max_s*.

    *is_locked* returns whether an exception of *work* was caused by the lock.

    Raises:
        Exception: Exception of the last attempt.
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

    # tenacity awaits only coroutine functions.
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
