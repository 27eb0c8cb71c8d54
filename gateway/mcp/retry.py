"""Trying again: when, how often and how long apart. The one home of tenacity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.errors import UpstreamError
from gateway.options import UpstreamOptions

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]


async def until_connected(
    connect: Callable[[], Awaitable[T]], options: UpstreamOptions, *, sleep: Sleep = asyncio.sleep
) -> T:
    """Await *connect*, again and again while trying again may help.

    Exponential back-off with full jitter between the attempts. A missing program, a refused key
    and a limit of time that ran out are never tried again.

    Raises:
        UpstreamError: What the last attempt raised.
    """
    import tenacity  # noqa: PLC0415  (only a session needs it)

    return await tenacity.AsyncRetrying(
        sleep=sleep,
        stop=tenacity.stop_after_attempt(options.connect_attempts),
        wait=tenacity.wait_random_exponential(
            multiplier=options.backoff_s, max=options.backoff_max_s
        ),
        retry=tenacity.retry_if_exception(_unreached),
        reraise=True,
    )(_async(connect))


async def for_ever(
    work: Callable[[], Awaitable[None]],
    options: UpstreamOptions,
    *,
    worth: Callable[[], bool],
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Await *work* again whenever it ends, further and further apart, until it is cancelled.

    Args:
        work: Goes on for a while.
        options: How far apart.
        worth: Whether it is to be tried again when it failed.
        sleep: Waits.

    Raises:
        UpstreamError: What it raised while that was not worth it.
    """
    import tenacity  # noqa: PLC0415  (only a session needs it)

    await tenacity.AsyncRetrying(
        sleep=sleep,
        wait=tenacity.wait_random_exponential(
            multiplier=options.backoff_s, max=options.backoff_max_s
        ),
        retry=tenacity.retry_if_result(lambda _: True)
        | tenacity.retry_if_exception(lambda error: isinstance(error, UpstreamError) and worth()),
        reraise=True,
    )(_async(work))


def while_held(
    work: Callable[[], T], held: Callable[[BaseException], bool], *, pause_s: float, most_s: float
) -> T:
    """Do *work*, again and again while others hold what it needs. Blocks.

    Args:
        work: Raises if it cannot have what it needs.
        held: Whether that is why.
        pause_s: Between two attempts.
        most_s: How long in all.

    Raises:
        Exception: What the last attempt raised.
    """
    import tenacity  # noqa: PLC0415  (only who must wait needs it)

    return tenacity.Retrying(
        stop=tenacity.stop_after_delay(most_s),
        wait=tenacity.wait_fixed(pause_s),
        retry=tenacity.retry_if_exception(held),
        reraise=True,
    )(work)


async def at_most_once(call: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Await *call*; once more only if the first provably never left, or may run twice.

    Args:
        call: Sends a request.
        repeatable: The tool is declared read-only or idempotent by somebody who is trusted: then
            a request whose connection was lost under way is sent again too.

    Raises:
        UpstreamError: What the last attempt raised.
    """
    import tenacity  # noqa: PLC0415  (only a session needs it)

    def again(error: BaseException) -> bool:
        if not isinstance(error, UpstreamError) or error.kind != "lost":
            return False
        return repeatable or not error.sent

    return await tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(2),
        wait=tenacity.wait_none(),
        retry=tenacity.retry_if_exception(again),
        reraise=True,
    )(_async(call))


def _unreached(error: BaseException) -> bool:
    return isinstance(error, UpstreamError) and error.kind == "connect"


def _async(work: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    # tenacity awaits only what it sees to be a coroutine function.
    async def once() -> T:
        return await work()

    return once
