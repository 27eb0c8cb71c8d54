"""Transport for the SDK: JSON-RPC over the pipes of a child process, one message a line.

* A line beyond the limit is skipped, not stored. Only the request that it answers fails.
* Lines that are not messages are skipped, because real servers print to standard output.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TextIO
from uuid import uuid4
from weakref import WeakKeyDictionary

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCRequest

from gateway.mcp.error_mapping import OVERSIZED
from gateway.mcp.servers import StdioServer
from gateway.mcp.traffic import Bucket, LastLines, Traffic, has_too_many_values
from gateway.mcp.validation import ANSWER, read_message
from gateway.options.environment import variables
from gateway.runtime.library_logs import log
from gateway.runtime.secret_scanner import find_in_arguments, find_secret
from gateway.runtime.text import clean

_GRACE_S = 2.0
"""Maximum time in seconds until the server ends after its input is closed (as MCP requires), and
until its group ends after SIGTERM. SIGKILL follows."""
_KILL_TIMEOUT_S = 2.0
"""Maximum time until the event loop notices that a killed child has ended, in seconds."""
_POLL_S = 0.01
_CHUNK_BYTES = 1 << 16
_MAX_SKIPPED_FACTOR = 16
"""Maximum length of a skipped line, as a multiple of the maximum message length. A longer line ends
the connection."""
_END_BYTES = 200
"""Number of bytes kept from each end of a line that is too long."""
_MAX_LOG_CHARS = 4096
_LOG_LINES_PER_S = 500
_LOG_BURST_LINES = 5000
"""Number of standard error lines that a child may write at once before it has to wait."""
_MIN_SECRET_CHARS = 6
_REDACTED = "***"
_MAX_LAST_LINE_CHARS = 200
"""Maximum length of each line in `LastLines`, in characters."""
_LAST_LINES_TIMEOUT_S = 0.5
"""Maximum time to read the last lines of standard error, in seconds. Another process may hold the
pipe."""
_MARK_VARIABLE = "TOOL_GATEWAY_CHILD"
"""Environment variable that identifies all descendants of a child. It contains the marks of all
outer children, followed by the mark of the child."""
_RUNNING: WeakKeyDictionary[Process, bytes] = WeakKeyDictionary()
"""Marks of the children that still run, keyed by process."""


@asynccontextmanager
async def open_stdio(
    server: str, target: StdioServer, traffic: Traffic
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start *target*, yield its two streams, and end it with its descendants."""
    spans = find_in_arguments(target.args)
    secrets = (
        *target.env.values(),
        *(target.args[index][slice(*span)] for index, _, span in spans),
    )
    stderr = open_stderr_log(server, secrets, traffic.stderr)
    try:
        process = await start_process(target, stderr)
        try:
            assert process.stdin is not None  # noqa: S101  (both are pipes: for the type checker)
            assert process.stdout is not None  # noqa: S101
            yield Incoming(server, process.stdout, traffic), Outgoing(process.stdin)
        finally:
            await stop_process(process)
    finally:
        stderr.close()
        with anyio.CancelScope(shield=True):
            await asyncio.to_thread(traffic.stderr.ended.wait, _LAST_LINES_TIMEOUT_S)


def open_stderr_log(
    server: str, secrets: Iterable[str] = (), last: LastLines | None = None
) -> TextIO:
    """Return a writable file for a child's standard error. Its lines go to the log.

    The caller closes the file.

    Args:
        server: Name of the server, written before each line.
        secrets: Texts that are never logged, unless very short.
        last: Receives the last lines, shortened, and an event at the end of the output.
    """
    read, write = os.pipe()
    lines = {line for text in secrets for line in text.splitlines()}
    hidden = sorted((line for line in lines if len(line) >= _MIN_SECRET_CHARS), key=len)

    def copy_lines() -> None:
        with os.fdopen(read, encoding="utf-8", errors="replace") as stderr:
            lines_left = Bucket(_LOG_LINES_PER_S, _LOG_BURST_LINES)
            while line := stderr.readline(_MAX_LOG_CHARS):
                time.sleep(lines_left.take(1))
                for secret in reversed(hidden):
                    line = line.replace(secret, _REDACTED)
                log.debug("%s: %s", server, line.rstrip())
                if last and (redacted := _redact(clean(line, limit=_MAX_LAST_LINE_CHARS))):
                    last.lines.append(redacted)
        if last:
            last.ended.set()

    threading.Thread(target=copy_lines, name=f"{server} stderr", daemon=True).start()
    return os.fdopen(write, "w", encoding="utf-8")


def _redact(line: str) -> str:
    for _ in range(_MAX_LAST_LINE_CHARS):
        span = find_secret("", line)
        if span is None or line[slice(*span)] == _REDACTED:
            break
        line = f"{line[: span[0]]}{_REDACTED}{line[span[1] :]}"
    return line


async def start_process(target: StdioServer, stderr: TextIO, *, umask: int = -1) -> Process:
    """Start the program of *target*, without a shell, in its own process group.

    It inherits a few harmless variables (such as PATH and HOME), and the umask if *umask* is -1.

    Raises:
        OSError: If the program cannot be started.
        ValueError: If an argument contains a NUL character.
    """
    # Shielded, because a process that starts while its caller is cancelled would never stop.
    with anyio.CancelScope(shield=True):
        inherited = variables(frozenset({_MARK_VARIABLE})).get(_MARK_VARIABLE, "")
        mark = uuid4().hex
        process = await asyncio.create_subprocess_exec(
            target.command,
            *target.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            env={**get_default_environment(), **target.env, _MARK_VARIABLE: inherited + mark},
            cwd=target.cwd,
            limit=_CHUNK_BYTES,
            start_new_session=True,
            umask=umask,
        )
        _RUNNING[process] = mark.encode()
        return process
    raise AssertionError


async def stop_process(process: Process, *, grace_s: float = _GRACE_S) -> None:
    """Close the input of *process*, end its whole group, and wait for the end.

    *grace_s* is the maximum time to end by itself, and again after SIGTERM.
    """
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            process.stdin.close()
        try:
            if not await _wait_until_gone(process, grace_s):
                _send_signal(process, force=False)
                await _wait_until_gone(process, grace_s)
        finally:
            # Descendants may still run, even if the process ended by itself.
            kill_all(process)
        await _wait_until_gone(process, _KILL_TIMEOUT_S)
        # A descendant outside the group may hold the pipe open forever, and asyncio has no public
        # way to close it.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            with suppress(PermissionError, ProcessLookupError):
                transport.close()


def kill_all(*processes: Process) -> None:
    """Kill *processes* and their descendants; without arguments, all running children.

    On systems with /proc (Linux), descendants that left the process group are also killed.
    """
    chosen = processes or tuple(_RUNNING)
    for process in chosen:
        _send_signal(process, force=True)
    marks = [mark for process in chosen if (mark := _RUNNING.get(process))]
    for environment in Path("/proc").glob("[0-9]*/environ") if marks else ():
        with suppress(OSError):
            variables = environment.read_bytes()
            if any(mark in variables for mark in marks):
                os.kill(int(environment.parent.name), signal.SIGKILL)
    # Last, because another thread that ends this program must still find the children.
    for process in chosen:
        _RUNNING.pop(process, None)


async def _wait_until_gone(process: Process, limit_s: float) -> bool:
    # `process.wait()` would also wait for the pipes, which a descendant may hold open.
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


class Outgoing(ObjectSendStream[SessionMessage]):
    """Stream of messages to a child's standard input."""

    def __init__(self, pipe: asyncio.StreamWriter) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage) -> None:
        """Write *item*.

        Raises:
            BrokenPipeError: If the child has ended and no byte of a request was sent.
            anyio.BrokenResourceError: The same for a message that is not a request.
        """
        message = item.message
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        if not self._pipe.is_closing():
            self._pipe.write(text.encode("utf-8", "replace") + b"\n")
        # If the child no longer reads, the pipe refuses the first byte immediately.
        if self._pipe.is_closing():
            raise (
                BrokenPipeError
                if isinstance(message, JSONRPCRequest)
                else anyio.BrokenResourceError
            )
        try:
            await self._pipe.drain()
        except ConnectionError:
            # Some bytes were sent, so the reader reports the end of the connection.
            log.debug("a child ended while it was written to")

    async def aclose(self) -> None:
        """Do nothing, because `open_stdio` closes the pipe and ends the child in the right
        order.
        """


class Incoming(ObjectReceiveStream[SessionMessage]):
    """Stream of messages from a child, until its output ends or exceeds the limits."""

    def __init__(self, server: str, pipe: asyncio.StreamReader, traffic: Traffic) -> None:
        self._server = server
        self._pipe = pipe
        self._traffic = traffic
        self._max_bytes = traffic.options.max_message_bytes
        self._rest = b""

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: If the connection has ended.
        """
        while True:
            line, is_whole = await self._read_line()
            if not await self._traffic.admit():
                raise anyio.EndOfStream
            if not is_whole:
                return self._fail_request(line, f"has more than {self._max_bytes} bytes")
            max_values = self._traffic.options.max_message_values
            if await has_too_many_values(line, max_values):
                return self._fail_request(line, f"has more than {max_values} values")
            try:
                return SessionMessage(read_message(line))
            except RecursionError:
                return self._fail_request(line, "is nested too deeply")
            except ValueError:
                log.debug("%s: a line on standard output is not a message", self._server)

    async def aclose(self) -> None:
        """Do nothing. `open_stdio` closes the pipe."""

    def _fail_request(self, line: bytes, why: str) -> SessionMessage:
        """Return an error answer to the request that *line* answers. If unknown, end the stream."""
        log.debug("%s: a message %s", self._server, why)
        answer = ANSWER.match(line)
        request = answer and (answer["first"] or answer["last"])
        if not request:
            raise anyio.EndOfStream
        error = ErrorData(code=OVERSIZED, message="the answer is too long")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(request), error=error))

    async def _read_line(self) -> tuple[bytes, bool]:
        """Return the next line, and False if it is too long and lacks its middle.

        Raises:
            anyio.EndOfStream: If the child has closed its output or exceeds its limits.
        """
        line = bytearray()
        size = 0
        chunk = self._rest
        while True:
            part, newline, self._rest = chunk.partition(b"\n")
            line += part
            size += len(part)
            if size > self._max_bytes:
                del line[_END_BYTES:-_END_BYTES]
            if newline:
                return bytes(line), size <= self._max_bytes
            try:
                chunk = await self._pipe.read(_CHUNK_BYTES)
            except ConnectionError:
                chunk = b""
            if size > _MAX_SKIPPED_FACTOR * self._max_bytes:
                self._traffic.end(f"sent a line of {size} bytes")
            if not chunk or self._traffic.flood:
                raise anyio.EndOfStream
            await self._traffic.pace(len(chunk))
