"""What a running server notices: signals, and files that change.

* SIGHUP, or a changed file, has its configuration read again; watchfiles (extra ``watch``) sees
  changes. This is its one home.
* SIGTERM stops the processes that this one started before it ends. A client closes the pipe of a
  server that it started, waits some 2 s, and sends SIGTERM. A child process that ignores its
  closed pipe would live on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

_POLL_MS = 1000
"""Some file systems report no changes: files are polled this often as well."""

Stamps = dict[Path, tuple[int, int, int]]


@asynccontextmanager
async def watch_files(
    files: Sequence[Path], on_change: Callable[[], Awaitable[None]], *, package: str = "watchfiles"
) -> AsyncIterator[None]:
    """Call *on_change* whenever *files* change or SIGHUP arrives, while the block runs.

    Args:
        files: They may be replaced, vanish and come back.
        on_change: One call ends before the next begins.
        package: Watches files; without it only the signal counts.
    """
    changed = asyncio.Event()
    tasks = [asyncio.create_task(_call_on_change(changed, on_change))]
    if find_spec(package) is not None and files:
        tasks.append(asyncio.create_task(_watch(files, file_stamps(files), changed)))
    loop = asyncio.get_running_loop()
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None:
        # Windows has no such signal, and only a main thread can handle one.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(hangup, changed.set)
    try:
        yield
    finally:
        if hangup is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(hangup)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _call_on_change(changed: asyncio.Event, on_change: Callable[[], Awaitable[None]]) -> None:
    while True:
        await changed.wait()
        changed.clear()
        await on_change()


async def _watch(files: Sequence[Path], before: Stamps, changed: asyncio.Event) -> None:
    from watchfiles import awatch  # noqa: PLC0415  (an optional extra)

    names = {str(file) for file in files}
    changes = awatch(
        *{file.parent for file in files},
        watch_filter=lambda _change, path: path in names,
        recursive=False,
        rust_timeout=_POLL_MS,
        yield_on_timeout=True,
    )
    async for _ in changes:
        now = file_stamps(files)
        if now != before:
            before = now
            changed.set()


def file_stamps(files: Sequence[Path]) -> Stamps:
    """Return a stamp of each file that changes with its content; missing files have none."""
    stamps: Stamps = {}
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            stamps[file] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return stamps


class Shutdown:
    """What a shutdown must close, and whether it has begun."""

    def __init__(self) -> None:
        self.close: Callable[[], None] = lambda: None
        """Stops what was started, within seconds."""
        self.has_begun = False


@contextmanager
def graceful_shutdown() -> Iterator[Shutdown]:
    """Close what the block registers, and exit, when SIGTERM arrives within it.

    A shutdown that has begun by itself continues.
    """
    shutdown = Shutdown()

    # A thread: the main one may wait for a pipe for ever.
    def on_signal(number: int, _frame: FrameType | None) -> None:
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
