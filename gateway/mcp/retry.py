"""Trying again: when, how often and how long apart. The one home of tenacity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

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
    import tenacity  # noqa: PLC0415  (only a session needs it)

    return await _retry(
        connect,
        sleep=sleep,
        stop=tenacity.stop_after_attempt(options.connect_attempts),
        wait=tenacity.wait_random_exponential(
            multiplier=options.backoff_s, max=options.backoff_max_s
        ),
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, UpstreamError) and error.kind == "connect"
        ),
    )


async def retry_forever(
    work: Callable[[], Awaitable[None]],
    options: UpstreamOptions,
    *,
    can_retry: Callable[[], bool],
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Await *work* again whenever it ends, further and further apart, until it is cancelled.

    Args:
        work: Goes on for a while.
        options: How far apart.
        can_retry: Whether it is tried again when it failed.
        sleep: Waits.

    Raises:
        UpstreamError: What it raised while it was not to be tried again.
    """
    import tenacity  # noqa: PLC0415  (only a session needs it)

    await _retry(
        work,
        sleep=sleep,
        wait=tenacity.wait_random_exponential(
            multiplier=options.backoff_s, max=options.backoff_max_s
        ),
        retry=tenacity.retry_if_result(lambda _: True)
        | tenacity.retry_if_exception(
            lambda error: isinstance(error, UpstreamError) and can_retry()
        ),
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
    import tenacity  # noqa: PLC0415  (only a session needs it)

    return await _retry(
        call,
        stop=tenacity.stop_after_attempt(2),
        wait=tenacity.wait_none(),
        retry=tenacity.retry_if_exception(
            lambda error: (
                isinstance(error, UpstreamError)
                and error.kind == "lost"
                and (repeatable or not error.sent)
            )
        ),
    )


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


async def _retry(work: Callable[[], Awaitable[T]], **policy: Any) -> T:
    import tenacity  # noqa: PLC0415  (only a session needs it)

    # tenacity awaits only what it sees to be a coroutine function.
    async def attempt() -> T:
        return await work()

    return await tenacity.AsyncRetrying(reraise=True, **policy)(attempt)
