"""Signals and file changes of a running server.

At SIGTERM, the server stops its child processes, because one that ignores its closed pipe would
stay alive.
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
"""Maximum duration of a shutdown in seconds, after running calls have ended. Service managers wait
some 10 s after SIGTERM."""


@asynccontextmanager
async def watch_files(files: Mapping[Path, OnChange]) -> AsyncIterator[None]:
    """Run a file's callback when the file changes, during the block.

    SIGHUP runs all callbacks. A file may be replaced, or deleted and created again.
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
    hangup = getattr(signal, "SIGHUP", None)  # missing on Windows
    if hangup is not None:
        loop.add_signal_handler(hangup, hung_up.set)
    try:
        yield
    finally:
        if hangup is not None:
            loop.remove_signal_handler(hangup)
        watching.cancel()


def _stamp(file: Path) -> tuple[int, ...]:
    """Return a value that changes with the file; empty if the file is missing."""
    with suppress(OSError):
        stat = file.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
    return ()


class Shutdown:
    """State of a shutdown: its callbacks, and whether it has begun."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._was_signalled = False
        self.close: Callable[[], None] = lambda: None
        """Closes the started processes within seconds."""
        self.kill: Callable[[], None] = lambda: None
        """Kills the started processes if the shutdown takes too long."""
        self.has_begun = False

    def note_signal(self, number: int) -> None:
        """Start the time limit of the shutdown. A second signal ends the process at once."""
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
    """Run the shutdown's callback and exit when SIGTERM arrives during the block.

    A shutdown that the server itself began continues. After *limit_s*, or at a second signal, the
    process is ended.
    """
    shutdown = Shutdown(limit_s)

    # A thread, because the main thread may wait for a pipe forever.
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
