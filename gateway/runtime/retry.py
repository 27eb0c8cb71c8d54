"""When a server is tried again. The one home of tenacity."""

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
