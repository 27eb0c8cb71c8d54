"""A background event loop that any thread and any event loop can use.

* Submitted work continues if its caller goes away, but not if the caller's future is cancelled.
* `close` ends running work with `ClosedError` instead of a cancellation, because its callers did
  not cancel it. Work that raises ``SystemExit`` ends without ending the loop.
* After a fork, the bridge is closed in the child, because threads do not survive a fork.
* Work has the context variables of the submitting thread, including the trace context.
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
"""Function that returns a coroutine. It is called only if the coroutine will be awaited."""
_EXITS = (SystemExit, KeyboardInterrupt)
"""Exceptions that end the whole event loop (`run_forever`) if a task raises them."""


class Bridge:
    """Runs coroutines on its own event loop, which starts with the first work."""

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
        """True if the calling code runs on the background loop's thread."""
        return self._thread is threading.current_thread()

    def check_open(self) -> None:
        """Check that the loop can be used.

        Raises:
            ClosedError: After `close`, and in a process that was forked after the loop started.
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

        The future raises `ClosedError` if `close` comes first.

        Raises:
            ClosedError: If the bridge is closed.
        """
        # In a forked child, a thread that does not exist may hold the lock.
        self.check_open()
        # Under the lock, so that accepted work is scheduled before `close` ends the loop.
        with self._lock:
            loop = self._ensure_loop()
            return asyncio.run_coroutine_threadsafe(self._until_closed(work), loop)

    async def run(self, work: Work[T]) -> T:
        """Await *work* on the background loop. Callable from any loop, including this one."""
        if self.here:
            return await work()
        return await asyncio.wrap_future(self.submit(work))

    def call(self, work: Work[T]) -> T:
        """Run *work* on the background loop and wait for its result.

        Raises:
            RuntimeError: If called on the background loop's own thread, which would block forever.
        """
        self._check_other_thread()
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def finish(self, work: Work[None]) -> None:
        """Run *work* as the last work if the loop was started, then `close`.

        Concurrent callers wait until the first one has finished.

        Raises:
            RuntimeError: If called on the background loop's own thread.
        """
        self._check_other_thread()
        if self.is_left_behind:
            return
        with self._finishing:
            if self._loop is not None and not self._finished:
                self.call(work)
                self._finished = True
        # Work on the loop may wait for a thread that waits for the lock.
        self.close()

    def close(self) -> None:
        """Cancel running work, stop the loop and join its thread. May be called twice."""
        if self.is_left_behind:
            return
        with self._lock:
            self._closed = True
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        # One iteration later, so that all accepted work has started and can report its end.
        loop.call_soon_threadsafe(loop.call_soon, self._end, loop)
        if thread is not threading.current_thread():
            thread.join()

    @property
    def is_left_behind(self) -> bool:
        """True if this process was forked after the loop started."""
        return self._loop is not None and self._pid != os.getpid()

    def _check_other_thread(self) -> None:
        if self.here:
            raise RuntimeError("blocking call on the gateway's own loop: await the async form")

    async def _until_closed(self, work: Work[T]) -> T:
        try:
            return await work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # A task that its caller cancelled earlier still ends with a cancellation.
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
    """Run blocking code of the host in a worker thread.

    A ``StopIteration`` is raised as ``RuntimeError``, as in PEP 479, because `asyncio.to_thread`
    would wait forever.
    """

    def call_function() -> T:
        try:
            return function(*arguments, **named)
        except StopIteration as error:
            raise RuntimeError("the function raised StopIteration") from error

    return await asyncio.to_thread(call_function)


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Await *work*, which continues to its end even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    # Otherwise asyncio reports exceptions that nobody retrieved.
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
