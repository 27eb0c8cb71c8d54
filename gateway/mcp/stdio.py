"""JSON-RPC over a child's pipes, one message a line: a transport for the SDK.

* The child runs without a shell in a process group of its own, and ends with all that it started.
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
from gateway.mcp.lenient_transport import cancelled_request
from gateway.mcp.sdk_logging import log
from gateway.mcp.servers import StdioServer

_GRACE_S = 2.0
"""How long a server may take to end once its standard input is closed, as the protocol asks, and
its group to end after SIGTERM; then comes SIGKILL."""
_KILL_S = 2.0
"""How long the loop may take to see that it is gone."""
_POLL_S = 0.01
_CHUNK = 1 << 16


@asynccontextmanager
async def open_stdio(
    server: str, target: StdioServer, stderr: TextIO, *, max_bytes: int
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start *target*, yield its two streams, and end it with all that it started.

    Args:
        server: For the log.
        target: What to run.
        stderr: Where its standard error goes.
        max_bytes: A longer line is not held.
    """
    process = await start_process(target, stderr)
    try:
        assert process.stdin is not None  # noqa: S101  (both are pipes: for the type checker)
        assert process.stdout is not None  # noqa: S101
        pending: set[object] = set()
        yield (
            Incoming(server, process.stdout, pending, max_bytes),
            Outgoing(process.stdin, pending),
        )
    finally:
        await stop_process(process)


async def start_process(target: StdioServer, stderr: TextIO) -> Process:
    """Start the program of *target*, without a shell, in a process group of its own.

    It inherits a few harmless variables (PATH, HOME and their like) and those of *target*.

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
            stderr=stderr,
            env={**get_default_environment(), **target.env},
            cwd=target.cwd,
            limit=_CHUNK,
            start_new_session=True,
        )
    raise AssertionError


async def stop_process(process: Process, *, grace_s: float = _GRACE_S) -> None:
    """Close its input, wait, then end its whole group; it is gone and reaped afterwards.

    Args:
        process: What `start_process` returned.
        grace_s: How long it may take to end by itself, and as long again after SIGTERM.
    """
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not await _wait_until_gone(process, grace_s):
                _send_signal(process, force=False)
                await _wait_until_gone(process, grace_s)
        finally:
            # Also if it ended by itself: what it started may still live in its group.
            _send_signal(process, force=True)
        await _wait_until_gone(process, _KILL_S)
        # A grandchild outside of the group may hold the pipe open: then its reader would never
        # end, and asyncio offers no public way to close it.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            with suppress(PermissionError, ProcessLookupError):
                transport.close()


async def _wait_until_gone(process: Process, limit_s: float) -> bool:
    # Not `process.wait()`: that waits until the pipes close too, and a child of the child may
    # hold them.
    with anyio.move_on_after(limit_s):
        while process.returncode is None:  # noqa: ASYNC110  (there is no such event)
            await asyncio.sleep(_POLL_S)
    return process.returncode is not None


def _send_signal(process: Process, *, force: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if force else signal.SIGTERM)


class _Stream:
    async def aclose(self) -> None:
        """Leave the pipe to `open_stdio`, which ends the child in the right order."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool | None:
        return None


class Outgoing(_Stream):
    """Writes messages."""

    def __init__(self, pipe: asyncio.StreamWriter, pending: set[object]) -> None:
        self._pipe = pipe
        self._pending = pending

    async def send(self, item: SessionMessage, /) -> None:
        """Write *item*.

        Raises:
            anyio.BrokenResourceError: The child is gone, and not one byte left.
        """
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        message = item.message
        self._pending.discard(cancelled_request(message))
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode("utf-8", "replace") + b"\n")
        if self._pipe.is_closing():
            # A pipe whose reader is gone refuses the first byte, at once.
            raise anyio.BrokenResourceError
        if isinstance(message, JSONRPCRequest):
            self._pending.add(message.id)
        try:
            await self._pipe.drain()
        except ConnectionError:
            # Some of it left; the reader will notice that the connection is over.
            log.debug("a child ended while it was written to")


class Incoming(_Stream):
    """Reads messages until the child closes its output."""

    def __init__(
        self, server: str, pipe: asyncio.StreamReader, pending: set[object], max_bytes: int
    ) -> None:
        self._server = server
        self._pipe = pipe
        self._pending = pending
        self._max_bytes = max_bytes
        self._rest = b""

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

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
            line = await self._read_line()
            if line is None:
                return self._fail_request(f"has more than {self._max_bytes} bytes")
            message = self._parse(line)
            if message is not None:
                return message

    def _parse(self, line: bytes) -> SessionMessage | None:
        try:
            message = _parse_message(line)
        except RecursionError:
            return self._fail_request("is nested too deeply")
        except ValueError:
            log.debug("%s: a line on standard output is no message", self._server)
            return None
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._pending.discard(message.id)
        return SessionMessage(message)

    def _fail_request(self, why: str) -> SessionMessage:
        """Answer the only request that the line can have answered; else end the connection."""
        log.debug("%s: a message %s", self._server, why)
        request = self._pending.pop() if len(self._pending) == 1 else None
        if not isinstance(request, str | int):
            raise StopAsyncIteration
        error = ErrorData(code=OVERSIZED, message="the answer is too long")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))

    async def _read_line(self) -> bytes | None:
        """Return the next line; None for one that is too long.

        Raises:
            StopAsyncIteration: The child has closed its output.
        """
        parts: list[bytes] = []
        size = 0
        chunk = self._rest
        while True:
            part, newline, self._rest = chunk.partition(b"\n")
            size += len(part)
            if size <= self._max_bytes:
                parts.append(part)
            else:
                parts.clear()
            if newline:
                return b"".join(parts) if size <= self._max_bytes else None
            try:
                chunk = await self._pipe.read(_CHUNK)
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise StopAsyncIteration


def _parse_message(line: bytes) -> JSONRPCMessage:
    """Return the message in *line*.

    Raises:
        ValueError: It is none.
        RecursionError: It is nested too deeply for any reader.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # The fast reader stops at some 200 levels: one deep schema would cost all tools.
        return jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False)
