"""A server's process: started in a group of its own, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import TextIO

import anyio
from mcp.client.stdio import get_default_environment

from gateway.upstream.servers import StdioServer

_GRACE_S = 2.0
"""How long a server may take to end once its standard input is closed, as the protocol asks, and
its group to end after SIGTERM; then comes SIGKILL."""
_KILL_S = 2.0
"""How long the loop may take to see that it is gone."""
_POLL_S = 0.01
_CHUNK = 1 << 16


async def spawn(target: StdioServer, errors: TextIO) -> Process:
    """Start the program of *target*, without a shell, in a process group of its own.

    It inherits a few harmless variables (PATH, HOME and their like) and what *target* gives it.

    Raises:
        OSError: It cannot be started.
        ValueError: An argument holds a NUL.
    """
    # Shielded: a process that started while its caller was cancelled would have no owner.
    with anyio.CancelScope(shield=True):
        return await asyncio.create_subprocess_exec(
            target.command,
            *target.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env={**get_default_environment(), **target.env},
            cwd=target.cwd,
            limit=_CHUNK,
            start_new_session=True,
        )
    raise AssertionError


async def end(process: Process, *, grace_s: float = _GRACE_S) -> None:
    """Close its input, wait, then end its whole group; it is gone and reaped afterwards.

    Args:
        process: What `spawn` gave.
        grace_s: How long it may take to end by itself, and as long again after SIGTERM.
    """
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not await _gone(process, grace_s):
                _signal(process, force=False)
                await _gone(process, grace_s)
        finally:
            # Also if it ended by itself: what it started may still live in its group.
            _signal(process, force=True)
        await _gone(process, _KILL_S)
        _close_pipes(process)


async def _gone(process: Process, limit_s: float) -> bool:
    # Not `process.wait()`: that waits until the pipes close too, and a child of the child may
    # hold them.
    with anyio.move_on_after(limit_s):
        while process.returncode is None:  # noqa: ASYNC110  (there is no such event)
            await asyncio.sleep(_POLL_S)
    return process.returncode is not None


def _signal(process: Process, *, force: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)


def _close_pipes(process: Process) -> None:
    # A grandchild outside of the group may hold the pipe open: then its reader would never end,
    # and asyncio offers no public way to close it.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with suppress(PermissionError, ProcessLookupError):
            transport.close()
