"""Following files, without a server around it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from gateway.cli.signals import watch_file

PATIENCE_S = 60


class Heard:
    """Counts calls; can be waited for."""

    def __init__(self) -> None:
        self.calls = 0
        self.called = asyncio.Event()

    async def __call__(self) -> None:
        self.calls += 1
        self.called.set()

    async def again(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.called.wait()
        self.called.clear()


async def test_a_file_that_is_written_replaced_or_gone_is_reported(tmp_path: Path) -> None:
    """Editors write in place, or put another file there."""
    file, other = tmp_path / "mcp.json", tmp_path / "new"
    file.write_text("1")
    listener = Heard()
    async with watch_file(file, listener):
        file.write_text("22")
        await listener.again()
        other.write_text("333")
        other.replace(file)
        await listener.again()
        file.unlink()
        await listener.again()


async def test_a_signal_is_heard_until_the_block_is_left(tmp_path: Path) -> None:
    """The process's own way of taking it is back then."""
    before = signal.getsignal(signal.SIGHUP)
    listener = Heard()
    async with watch_file(tmp_path / "none", listener):
        os.kill(os.getpid(), signal.SIGHUP)
        await listener.again()

    assert (1, before) == (listener.calls, signal.getsignal(signal.SIGHUP))
