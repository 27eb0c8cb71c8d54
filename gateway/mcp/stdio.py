"""JSON-RPC over a child's pipes, one message a line: a transport for the SDK.

* A line beyond the limit is read past, never held: the request it answers fails, the rest lives.
* What is no message is skipped: real servers print to standard output.
* A write to a child that is gone says that nothing left: then a call may be sent again.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self, TextIO

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types import jsonrpc_message_adapter

from gateway.mcp.error_mapping import OVERSIZED
from gateway.mcp.lenient_transport import withdrawn
from gateway.mcp.sdk_logging import log
from gateway.mcp.servers import StdioServer

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


_CHUNK = 1 << 16


def _message(line: bytes) -> JSONRPCMessage:
    """Read one message.

    Raises:
        ValueError: It is none.
        RecursionError: Nobody can read it.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # The fast reader stops at some 200 levels: one deep schema would cost all tools.
        return jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False)


@asynccontextmanager
async def stdio(
    server: str, target: StdioServer, errors: TextIO, *, max_bytes: int
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start *target*, give its two streams, and end it with all that it started.

    Args:
        server: For the log.
        target: What to run.
        errors: Where its standard error goes.
        max_bytes: A longer line is not held.
    """
    process = await spawn(target, errors)
    try:
        assert process.stdin is not None  # noqa: S101  (both are pipes: for the type checker)
        assert process.stdout is not None  # noqa: S101
        asked: set[object] = set()
        yield (
            Incoming(server, process.stdout, asked, max_bytes),
            Outgoing(process.stdin, asked),
        )
    finally:
        await end(process)


class _Stream:
    async def aclose(self) -> None:
        """Leave the pipe to `stdio`, which ends the child in the right order."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        return None


class Outgoing(_Stream):
    """Writes messages."""

    def __init__(self, pipe: asyncio.StreamWriter, asked: set[object]) -> None:
        self._pipe = pipe
        self._asked = asked

    async def send(self, item: SessionMessage, /) -> None:
        """Write *item*.

        Raises:
            anyio.BrokenResourceError: The child is gone, and not one byte left.
        """
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        message = item.message
        self._asked.discard(withdrawn(message))
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode("utf-8", "replace") + b"\n")
        if self._pipe.is_closing():
            # A pipe whose reader is gone refuses the first byte, at once.
            raise anyio.BrokenResourceError
        if isinstance(message, JSONRPCRequest):
            self._asked.add(message.id)
        try:
            await self._pipe.drain()
        except ConnectionError:
            # Some of it left; that the connection is over is what the reader will tell.
            log.debug("a child ended while it was written to")


class Incoming(_Stream):
    """Reads messages until the child closes its output."""

    def __init__(
        self, server: str, pipe: asyncio.StreamReader, asked: set[object], max_bytes: int
    ) -> None:
        self._server = server
        self._pipe = pipe
        self._asked = asked
        self._max_bytes = max_bytes
        self._oversized = f"has more than {max_bytes} bytes"
        self._rest = b""

    async def receive(self) -> SessionMessage | Exception:
        """Give the next message.

        Raises:
            anyio.EndOfStream: There is none.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            line = await self._line()
            message = self._unusable(self._oversized) if line is None else self._parsed(line)
            if message is not None:
                return message

    def _parsed(self, line: bytes) -> SessionMessage | None:
        try:
            message = _message(line)
        except RecursionError:
            return self._unusable("is nested too deeply")
        except ValueError:
            log.debug("%s: a line on standard output is no message", self._server)
            return None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.discard(message.id)
        return SessionMessage(message)

    def _unusable(self, why: str) -> SessionMessage:
        """Answer the only request that the line can have answered; else end the connection."""
        log.debug("%s: a message %s", self._server, why)
        request = self._asked.pop() if len(self._asked) == 1 else None
        if not isinstance(request, str | int):
            raise StopAsyncIteration
        error = ErrorData(code=OVERSIZED, message="the answer is too long")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))

    async def _line(self) -> bytes | None:
        """Give the next line; None for one that is too long.

        Raises:
            StopAsyncIteration: The child has closed its output.
        """
        parts: list[bytes] = []
        size = 0
        chunk = self._rest
        while True:
            part, newline, after = chunk.partition(b"\n")
            size += len(part)
            if size <= self._max_bytes:
                parts.append(part)
            else:
                parts.clear()
            if newline:
                self._rest = after
                return b"".join(parts) if size <= self._max_bytes else None
            try:
                chunk = await self._pipe.read(_CHUNK)
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise StopAsyncIteration
