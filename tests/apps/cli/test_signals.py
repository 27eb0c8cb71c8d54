"""Watched files and signals, without a server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from gateway.cli.signals import watch_files

PATIENCE_S = 60


async def set_again(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()
    event.clear()


async def signalled(event: asyncio.Event) -> None:
    event.set()


async def test_watch_files_runs_the_callback_of_a_changed_replaced_or_deleted_file(
    tmp_path: Path,
) -> None:
    """Some editors write a file in place, and others replace it."""
    file, other = tmp_path / "mcp.json", tmp_path / "new"
    file.write_text("1")
    called = asyncio.Event()
    async with watch_files({file: lambda: signalled(called)}):
        file.write_text("22")
        await set_again(called)
        other.write_text("333")
        other.replace(file)
        await set_again(called)
        file.unlink()
        await set_again(called)


async def test_signals_are_handled_only_while_the_block_runs(tmp_path: Path) -> None:
    """After the block, the former signal handler is restored."""
    before = signal.getsignal(signal.SIGHUP)
    called = asyncio.Event()
    async with watch_files({tmp_path / "none": lambda: signalled(called)}):
        os.kill(os.getpid(), signal.SIGHUP)
        await set_again(called)

    assert (False, before) == (called.is_set(), signal.getsignal(signal.SIGHUP))


STUCK = """
import os, signal, sys, threading
from gateway.cli.signals import graceful_shutdown
with graceful_shutdown(limit_s=0.2) as shutdown:
    shutdown.close = threading.Event().wait
    shutdown.kill = lambda: os.write(1, b"killed")
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait()
"""


def test_shutdown_that_hangs_is_ended_at_its_time_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, timeout=PATIENCE_S, check=False
    )

    assert (128 + signal.SIGTERM, b"killed") == (done.returncode, done.stdout)
