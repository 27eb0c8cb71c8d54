"""What a running server notices: signals, and a file that changes.

* SIGHUP, or a changed file, has its configuration read again.
* SIGTERM stops the processes that this one started before it ends. A client closes the pipe of a
  server that it started, waits some 2 s, and sends SIGTERM. A child process that ignores its
  closed pipe would live on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import FrameType

OnChange = Callable[[], Awaitable[None]]
_POLL_S = 1.0
LIMIT_S = 9.0
"""How long the end may take, calls under way aside: supervisors of services wait some 10 s after
SIGTERM."""


@asynccontextmanager
async def watch_files(files: Mapping[Path, OnChange]) -> AsyncIterator[None]:
    """Call what is beside a file whenever that changes, while the block runs; at SIGHUP, all.

    A file may be replaced, vanish and come back. One call ends before the next begins.
    """
    hung_up, before = asyncio.Event(), {file: _stamp(file) for file in files}

    async def watch() -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(hung_up.wait(), _POLL_S)
            is_all = hung_up.is_set()
            hung_up.clear()
            for file, on_change in files.items():
                now = _stamp(file)
                if is_all or now != before[file]:
                    before[file] = now
                    await on_change()

    watching = asyncio.create_task(watch())
    loop = asyncio.get_running_loop()
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None:
        loop.add_signal_handler(hangup, hung_up.set)
    try:
        yield
    finally:
        if hangup is not None:
            loop.remove_signal_handler(hangup)
        watching.cancel()


def _stamp(file: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file; empty if it is missing."""
    with suppress(OSError):
        stat = file.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
    return ()


class Shutdown:
    """What a shutdown must close, and whether it has begun."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._was_signalled = False
        self.close: Callable[[], None] = lambda: None
        """Stops what was started, within seconds."""
        self.kill: Callable[[], None] = lambda: None
        """Kills what was started, if that takes too long."""
        self.has_begun = False

    def note_signal(self, number: int) -> None:
        """Limit the time from now, when the signal *number* came; then the process is ended.

        At a second signal it is ended at once.
        """
        limit_s = 0 if self._was_signalled else self._limit_s
        self._was_signalled = True
        timer = threading.Timer(limit_s, self._exit_at_once, (number,))
        timer.daemon = True
        timer.start()

    def _exit_at_once(self, number: int) -> None:
        try:
            self.kill()
        finally:
            os._exit(128 + number)


@contextmanager
def graceful_shutdown(limit_s: float = LIMIT_S) -> Iterator[Shutdown]:
    """Close what the block registers, and exit, when SIGTERM arrives within it.

    A shutdown that has begun by itself continues. After *limit_s*, or at a second signal, it is cut
    short.
    """
    shutdown = Shutdown(limit_s)

    # A thread: the main one may wait for a pipe for ever.
    def on_signal(number: int, _frame: FrameType | None) -> None:
        shutdown.note_signal(number)
        if not shutdown.has_begun:
            shutdown.has_begun = True
            threading.Thread(target=leave, args=(number,)).start()

    def leave(number: int) -> None:
        try:
            shutdown.close()
        finally:
            os._exit(128 + number)

    previous = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield shutdown
    finally:
        signal.signal(signal.SIGTERM, previous)
