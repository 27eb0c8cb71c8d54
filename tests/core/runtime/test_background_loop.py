"""One background loop for callers on any thread and loop."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from gateway.errors import ClosedError
from gateway.runtime.background_loop import Bridge


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


async def _thread() -> str:
    return threading.current_thread().name


def test_blocking_callers_get_answers_from_the_background_loop(bridge: Bridge) -> None:
    """Code without a loop needs none."""
    assert "tests" == bridge.call(_thread)


async def test_async_callers_of_any_loop_share_it(bridge: Bridge) -> None:
    """A session lives on one loop, whoever asks."""
    here = await bridge.run(_thread)
    elsewhere = await asyncio.to_thread(asyncio.run, bridge.run(_thread))

    assert ("tests", "tests") == (here, elsewhere)


async def test_work_on_the_loop_itself_is_awaited_directly(bridge: Bridge) -> None:
    """From there, waiting for oneself would never end."""

    async def nested() -> str:
        return await bridge.run(_thread)

    assert "tests" == await bridge.run(nested)


def test_context_variables_travel_with_the_work(bridge: Bridge) -> None:
    """Spans of the work stand under the caller's span."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("caller")

    async def ask() -> str:
        return who.get()

    assert "caller" == bridge.call(ask)


async def test_cancelling_an_awaiter_cancels_its_work(bridge: Bridge) -> None:
    """A user who stops waiting must not leave work behind."""
    started, ended = threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(bridge.run(work))
    await asyncio.to_thread(started.wait, 10)
    waiting.cancel()

    assert await asyncio.to_thread(ended.wait, 10)
    assert waiting.cancelled() or waiting.cancelling()


def test_closing_cancels_what_runs_and_joins_the_thread() -> None:
    """Nothing outlives its gateway."""
    bridge = Bridge("to be closed")
    started = threading.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    running = bridge.submit(work)
    started.wait(10)
    bridge.close()
    bridge.close()

    assert isinstance(running.exception(10), ClosedError)
    assert "to be closed" not in [thread.name for thread in threading.enumerate()]


async def test_whoever_waits_while_it_closes_is_told_so() -> None:
    """Nobody cancelled them: what follows an `except ClosedError` must run."""
    bridge = Bridge()
    started = threading.Barrier(3)

    async def work() -> None:
        await asyncio.to_thread(started.wait, 30)
        await asyncio.Event().wait()

    waiting = asyncio.ensure_future(bridge.run(work))
    blocking = asyncio.ensure_future(asyncio.to_thread(bridge.call, work))
    await asyncio.to_thread(started.wait, 30)
    await asyncio.to_thread(bridge.close)

    for each in (waiting, blocking):
        with pytest.raises(ClosedError):
            await each


def test_what_is_let_in_just_before_the_end_ends_too() -> None:
    """However busy the loop is, nobody waits for what will never run."""
    bridge = Bridge()
    busy, free = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        free.wait(30)

    async def work() -> None:
        await asyncio.Event().wait()

    bridge.submit(block)
    busy.wait(30)
    late = bridge.submit(work)
    closing = threading.Thread(target=bridge.close)
    closing.start()
    free.set()
    closing.join(30)

    assert isinstance(late.exception(30), ClosedError)


def test_what_its_caller_cancelled_stays_cancelled_when_the_bridge_closes() -> None:
    """Whoever went away is told of nothing, in no log either."""
    bridge = Bridge()
    started, told = threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
            await asyncio.Event().wait()

    running = bridge.submit(work)
    started.wait(30)
    running.cancel()
    told.wait(30)
    bridge.close()

    assert running.cancelled()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_work_that_would_end_the_program_ends_alone(error: BaseException, bridge: Bridge) -> None:
    """Its caller hears of it; the loop goes on for the others."""
    door = asyncio.Event()

    async def leave() -> None:
        raise error

    async def opened() -> None:
        door.set()

    other = bridge.submit(door.wait)
    left = bridge.submit(leave).exception(30)
    bridge.submit(opened).result(30)

    assert error is left
    assert other.result(30)


def test_what_exits_while_the_bridge_closes_keeps_nobody_waiting() -> None:
    """All others still end, and the thread too."""
    bridge = Bridge("exits at the end")

    async def leave() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            sys.exit(3)

    async def work() -> None:
        await asyncio.Event().wait()

    leaving, waiting = bridge.submit(leave), bridge.submit(work)
    bridge.call(_thread)
    bridge.close()

    assert isinstance(leaving.exception(30), SystemExit)
    assert isinstance(waiting.exception(30), ClosedError)
    assert "exits at the end" not in [thread.name for thread in threading.enumerate()]


def test_a_closed_bridge_refuses_work() -> None:
    """The message says what to do."""
    bridge = Bridge()
    bridge.check_open()
    bridge.close()

    with pytest.raises(ClosedError, match="make a new one"):
        bridge.submit(_thread)
    with pytest.raises(ClosedError, match="make a new one"):
        bridge.check_open()


def test_the_last_work_runs_only_if_the_loop_ever_started() -> None:
    """Nothing was opened, so there is nothing to close."""
    done: list[str] = []

    async def last() -> None:
        done.append("closed")

    unused, used = Bridge(), Bridge()
    used.call(_thread)
    unused.finish(last)
    used.finish(last)

    assert ["closed"] == done


def test_a_bridge_may_be_closed_from_its_own_loop() -> None:
    """A thread cannot join itself; it ends all the same."""
    bridge = Bridge("tests-own")
    threads: list[threading.Thread] = []

    async def work() -> None:
        threads.append(threading.current_thread())
        bridge.close()

    bridge.submit(work).result(10)
    threads[0].join(10)

    assert not threads[0].is_alive()


# A child that hangs ends by its own alarm.
FORK = """
import os, signal, sys
from gateway.errors import ClosedError
from gateway.gateway import Gateway
from gateway.sync import SyncGateway

used, unused = SyncGateway(Gateway()), SyncGateway(Gateway())
used.list_tools()
child = os.fork()
if not child:
    signal.alarm(300)
    unused.list_tools()
    unused.close()
    try:
        used.list_tools()
    except ClosedError as error:
        print(error)
    used.close()
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, used.list_tools())
used.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_a_forked_child_is_told_instead_of_waiting_for_ever() -> None:
    """Its parent's loop has no thread there; what was not used before the fork works in both."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        check=False,
    )

    told = done.stdout.splitlines()
    assert ("", "7 ()") == (done.stderr, told[-1])
    assert "make a new one here" in told[0]
