"""Configuration files that change while a server serves: told by SIGHUP, or by watchfiles (extra
``watch``), whose one home this is.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

_LOOK_MS = 1000
"""Some file systems tell nobody of a change: the files are looked at this often as well."""

Stamps = dict[Path, tuple[int, int, int]]


@asynccontextmanager
async def followed(
    files: Sequence[Path], act: Callable[[], Awaitable[None]], *, package: str = "watchfiles"
) -> AsyncIterator[None]:
    """Call *act*, while the block runs, whenever *files* change or the process is told to.

    Args:
        files: They may be replaced, vanish and come back.
        act: One call ends before the next begins.
        package: Watches files; without it only the signal counts.
    """
    wanted = asyncio.Event()
    tasks = [asyncio.create_task(_acting(wanted, act))]
    if find_spec(package) is not None and files:
        tasks.append(asyncio.create_task(_watching(files, stamps(files), wanted.set)))
    loop = asyncio.get_running_loop()
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None:
        # Windows has no such signal, and only a main thread may listen to one.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(hangup, wanted.set)
    try:
        yield
    finally:
        if hangup is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(hangup)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _acting(wanted: asyncio.Event, act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await wanted.wait()
        wanted.clear()
        await act()


async def _watching(files: Sequence[Path], before: Stamps, tell: Callable[[], None]) -> None:
    from watchfiles import awatch  # noqa: PLC0415  (an optional extra)

    folders = {file.parent for file in files}
    names = {str(file) for file in files}
    looks = awatch(
        *folders,
        watch_filter=lambda _change, path: path in names,
        recursive=False,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
    )
    async for _ in looks:
        now = stamps(files)
        if now != before:
            before = now
            tell()


def stamps(files: Sequence[Path]) -> Stamps:
    """Give what tells one state of each file from another; those that are not there are absent."""
    found: Stamps = {}
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found[file] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return found
