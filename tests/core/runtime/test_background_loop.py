"""The background loop, for callers on any thread and event loop."""

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


def test_blocking_callers_get_results_of_the_background_loop(bridge: Bridge) -> None:
    assert "tests" == bridge.call(_thread)


async def test_async_callers_of_several_loops_share_one_loop(bridge: Bridge) -> None:
    thread = await bridge.run(_thread)
    elsewhere = await asyncio.to_thread(asyncio.run, bridge.run(_thread))

    assert ("tests", "tests") == (thread, elsewhere)


async def test_work_on_the_loop_itself_is_awaited_directly(bridge: Bridge) -> None:
    """Work that waits for its own loop would never end."""

    async def nested() -> str:
        return await bridge.run(_thread)

    assert "tests" == await bridge.run(nested)


def test_work_has_the_callers_context_variables(bridge: Bridge) -> None:
    """Spans of the work need the caller's span as parent."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("caller")

    async def ask() -> str:
        return who.get()

    assert "caller" == bridge.call(ask)


async def test_cancelled_caller_cancels_its_work(bridge: Bridge) -> None:
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


def test_close_cancels_running_work_and_joins_the_thread() -> None:
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


async def test_waiting_callers_get_closed_error_on_close() -> None:
    """The callers did not cancel the work, so a cancellation would be wrong."""
    bridge = Bridge()
    started = threading.Barrier(3)

    async def work() -> None:
        await asyncio.to_thread(started.wait, 30)
        await asyncio.Event().wait()

    waiting = asyncio.ensure_future(bridge.run(work))
    blocking = asyncio.ensure_future(asyncio.to_thread(bridge.call, work))
    await asyncio.to_thread(started.wait, 30)
    await asyncio.to_thread(bridge.close)

    for caller in (waiting, blocking):
        with pytest.raises(ClosedError):
            await caller


def test_close_ends_work_that_was_accepted_just_before() -> None:
    """Otherwise its caller would wait forever."""
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


def test_close_does_not_report_work_cancelled_by_its_caller() -> None:
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
def test_system_exit_in_work_does_not_end_the_loop(error: BaseException, bridge: Bridge) -> None:
    door = asyncio.Event()

    async def leave() -> None:
        raise error

    async def opened() -> None:
        door.set()

    other = bridge.submit(door.wait)
    raised = bridge.submit(leave).exception(30)
    bridge.submit(opened).result(30)

    assert error is raised
    assert other.result(30)


def test_system_exit_in_work_during_close_does_not_block_others() -> None:
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


def test_closed_bridge_refuses_work() -> None:
    bridge = Bridge()
    bridge.check_open()
    bridge.close()

    with pytest.raises(ClosedError, match="make a new one"):
        bridge.submit(_thread)
    with pytest.raises(ClosedError, match="make a new one"):
        bridge.check_open()


def test_finish_runs_its_work_only_if_the_loop_was_started() -> None:
    """Without a started loop, nothing needs to be closed."""
    done: list[str] = []

    async def last() -> None:
        done.append("closed")

    unused, used = Bridge(), Bridge()
    used.call(_thread)
    unused.finish(last)
    used.finish(last)

    assert ["closed"] == done


def test_bridge_can_be_closed_on_its_own_loop() -> None:
    """A thread cannot join itself."""
    bridge = Bridge("tests-own")
    threads: list[threading.Thread] = []

    async def work() -> None:
        threads.append(threading.current_thread())
        bridge.close()

    bridge.submit(work).result(10)
    threads[0].join(10)

    assert not threads[0].is_alive()


# Program that forks. An alarm ends a child that hangs.
FORK = """
import os, signal, sys
from gateway.errors import ClosedError
from gateway.gateway import Gateway
from gateway.sync import SyncGateway

used, unused = (SyncGateway(Gateway(strategy="graph")) for _ in range(2))
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
def test_forked_child_gets_an_error_instead_of_waiting() -> None:
    """The thread of a started loop does not exist in the child. A gateway that was unused before
    the fork works in both processes.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        check=False,
    )

    told = done.stdout.splitlines()
    assert ("", "7 ()") == (done.stderr, told[-1])
    assert "make a new one here" in told[0]
