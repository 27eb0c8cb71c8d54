"""One background event loop that any thread and any loop may use.

* The loop starts with the first piece of work and ends with `close`.
* What is submitted runs to its end even if the caller who asked first goes away, unless that
  caller's own future is cancelled: shared work is shielded by its owner, not here.
* All that is submitted ends. What `close` cuts short ends with `ClosedError` instead of a
  cancellation, since none of those who wait has cancelled it. Work that would end the process ends
  alone, and the loop goes on.
* Threads do not survive a fork: in a forked child the bridge is closed.
* Context variables (and so trace context) of the submitting thread travel with the work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from gateway.errors import ClosedError

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]
"""Makes the coroutine; called only when it is certain to be awaited."""
_EXITS = (SystemExit, KeyboardInterrupt)
"""Errors that a loop raises in its own thread too."""


class Bridge:
    """Runs coroutines on a loop of its own, for callers on any thread or loop."""

    def __init__(self, name: str = "gateway") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._finishing = threading.Lock()
        self._finished = False
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._pid = os.getpid()

    @property
    def here(self) -> bool:
        """Whether the calling code already runs on the background loop's thread."""
        return self._thread is threading.current_thread()

    def check_open(self) -> None:
        """Refuse what comes after `close`, or in a process forked after the loop has started.

        Raises:
            ClosedError: After `close`, and in such a child.
        """
        if self.is_left_behind:
            raise ClosedError(
                "this gateway was in use before this process was forked: make a new one here, "
                "or let the first use come after the fork (gunicorn: no --preload, or post_fork)"
            )
        if self._closed:
            raise ClosedError("this gateway is closed; make a new one")

    def submit(self, work: Work[T]) -> concurrent.futures.Future[T]:
        """Start *work* on the background loop and return at once.

        Returns:
            What holds its answer, or what it raised; `ClosedError` if `close` came before.

        Raises:
            ClosedError: After `close`.
        """
        # In a forked child the lock may be held by a thread that is not there.
        self.check_open()
        # Under the lock: what is let in comes before the end of the loop.
        with self._lock:
            loop = self._ensure_loop()
            return asyncio.run_coroutine_threadsafe(self._until_closed(work), loop)

    async def run(self, work: Work[T]) -> T:
        """Await *work*, which runs on the background loop; from there, await it directly."""
        if self.here:
            return await work()
        return await asyncio.wrap_future(self.submit(work))

    def call(self, work: Work[T]) -> T:
        """Block until *work* is done.

        Raises:
            RuntimeError: On the background loop's own thread, where blocking would never end.
        """
        self._check_elsewhere()
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def finish(self, work: Work[None]) -> None:
        """Run *work* as the last thing, if the loop ever started, then `close`.

        A caller that comes while another does so waits until that is done.

        Raises:
            RuntimeError: On the background loop's own thread, as for `call`.
        """
        self._check_elsewhere()
        if self.is_left_behind:
            return
        with self._finishing:
            if self._loop is not None and not self._finished:
                self.call(work)
                self._finished = True
        # Not under the lock: the loop may wait for somebody who waits for the lock.
        self.close()

    def close(self) -> None:
        """Cancel what still runs, stop the loop and join its thread. Twice is harmless."""
        if self.is_left_behind:
            return
        with self._lock:
            self._closed = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        # One round later, so that what came before has begun and can tell how it ended.
        loop.call_soon_threadsafe(loop.call_soon, self._end, loop)
        if thread is not threading.current_thread():
            thread.join()

    @property
    def is_left_behind(self) -> bool:
        """Whether this process was forked after the loop had started."""
        return self._loop is not None and self._pid != os.getpid()

    def _check_elsewhere(self) -> None:
        if self.here:
            raise RuntimeError("blocking call on the gateway's own loop: await the async form")

    async def _until_closed(self, work: Work[T]) -> T:
        try:
            return await work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # Whoever cancelled it before waits for nothing any more.
            if self._ended and task is not None and task.cancelling() == 1:
                raise ClosedError(
                    "this gateway was closed before the work was done; make a new one"
                ) from None
            raise

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        self.check_open()
        if self._loop is None:
            self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
            self._thread = threading.Thread(
                target=self._serve, args=(self._loop,), name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ended = True
        loop.stop()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            while not self._ended:
                with suppress(*_EXITS):
                    loop.run_forever()
            _drain(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def in_thread(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run blocking code of the host's in a worker thread.

    As `asyncio.to_thread`, but for ``StopIteration``: no future can hold that, so that the caller
    would wait for ever. It is raised as ``RuntimeError``, as a coroutine does (PEP 479).
    """

    def held() -> T:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError("the function raised StopIteration") from error

    return await asyncio.to_thread(held)


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Await *work*, which goes on to its end even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    # The caller may have gone: asyncio would complain that the outcome was never read.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def _drain(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    _complete(loop, asyncio.gather(*tasks, return_exceptions=True))
    _complete(loop, loop.shutdown_asyncgens())
    _complete(loop, loop.shutdown_default_executor())


def _complete(loop: asyncio.AbstractEventLoop, work: Awaitable[object]) -> None:
    ending = asyncio.ensure_future(work, loop=loop)
    while not ending.done():
        with suppress(*_EXITS):
            loop.run_until_complete(ending)
