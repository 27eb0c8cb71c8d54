"""JSON-RPC over a child's pipes, one message a line: a transport for the SDK.

* The child runs without a shell in a process group of its own, and ends with all that it started.
* A line beyond the limit is read past, never held: the request it answers fails, the rest lives.
* What is no message is skipped: real servers print to standard output.
* A write to a child that is gone says that nothing left: then a call may be sent again.
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
"""How long a server may take to end once its standard input is closed, as the protocol asks, and
its group to end after SIGTERM; then comes SIGKILL."""
_KILL_S = 2.0
"""How long the loop may take to see that it is gone."""
_POLL_S = 0.01
_CHUNK = 1 << 16
_MAX_SKIPPED = 16
"""How many times as long as the longest message a line may be to be read past."""
_END_BYTES = 200
"""What is held of the beginning and of the end of a line that is too long."""
_MAX_LOG_CHARS = 4096
_LOG_LINES_PER_S = 500
_LOG_BURST_LINES = 5000
"""A child that writes more to standard error waits."""
_MIN_SECRET_CHARS = 6
_HIDDEN = "***"
_LAST_CHARS = 200
"""What is kept of one of the last lines."""
_READ_S = 0.5
"""How long the last lines may take to be read, if a program outside of the group holds the pipe."""
_MARKS = "TOOL_GATEWAY_CHILD"
"""The variable by which all that a child started is known: its mark, after those around it."""
_RUNNING: WeakKeyDictionary[Process, bytes] = WeakKeyDictionary()
"""The children that were not ended yet, each with its mark."""


@asynccontextmanager
async def open_stdio(
    server: str, target: StdioServer, traffic: Traffic
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Start *target*, yield its two streams, and end it with all that it started.

    Args:
        server: For the log.
        target: What to run.
        traffic: Counts what it sends, and has the limits of size.
    """
    spans = find_in_arguments(target.args)
    secrets = (*target.env.values(), *(target.args[at][slice(*span)] for at, _, span in spans))
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
            await asyncio.to_thread(traffic.stderr.ended.wait, _READ_S)


def open_stderr_log(
    server: str, secrets: Iterable[str] = (), last: LastLines | None = None
) -> TextIO:
    """Return a file for a child's standard error; its lines go to our log. The caller closes it.

    Args:
        server: Stands before each line.
        secrets: What is never written; short ones would hide half of every line and are ignored.
        last: Gets the last lines, each short, and is told when there is no more.
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
                    line = line.replace(secret, _HIDDEN)
                log.debug("%s: %s", server, line.rstrip())
                if last and (shown := _redact(clean(line, limit=_LAST_CHARS))):
                    last.lines.append(shown)
        if last:
            last.ended.set()

    threading.Thread(target=copy_lines, name=f"{server} stderr", daemon=True).start()
    return os.fdopen(write, "w", encoding="utf-8")


def _redact(line: str) -> str:
    """Return *line* without what has the form of a secret."""
    for _ in range(_LAST_CHARS):
        span = find_secret("", line)
        if span is None or line[slice(*span)] == _HIDDEN:
            break
        line = f"{line[: span[0]]}{_HIDDEN}{line[span[1] :]}"
    return line


async def start_process(target: StdioServer, stderr: TextIO, *, umask: int = -1) -> Process:
    """Start the program of *target*, without a shell, in a process group of its own.

    It inherits a few harmless variables (PATH, HOME and their like) and those of *target*, and this
    process's umask, if no other is given.

    Raises:
        OSError: It cannot be started.
        ValueError: An argument holds a NUL.
    """
    # Shielded: a process that started while its caller was cancelled would have no owner.
    with anyio.CancelScope(shield=True):
        inherited = variables(frozenset({_MARKS})).get(_MARKS, "")
        mark = uuid4().hex
        process = await asyncio.create_subprocess_exec(
            target.command,
            *target.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            env={**get_default_environment(), **target.env, _MARKS: inherited + mark},
            cwd=target.cwd,
            limit=_CHUNK,
            start_new_session=True,
            umask=umask,
        )
        _RUNNING[process] = mark.encode()
        return process
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
            # Also if it ended by itself: what it started may still live.
            kill_all(process)
        await _wait_until_gone(process, _KILL_S)
        # A grandchild outside of the group may hold the pipe open: then its reader would never
        # end, and asyncio offers no public way to close it.
        transport = getattr(process, "_transport", None)
        if transport is not None:
            with suppress(PermissionError, ProcessLookupError):
                transport.close()


def kill_all(*processes: Process) -> None:
    """Kill what *processes* are and started, at once; without any, all that still run.

    Where /proc tells (Linux), that holds for what has left the group too.
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
    # Only now: a second thread that ends this process must not find that nothing runs.
    for process in chosen:
        _RUNNING.pop(process, None)


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


class Outgoing(ObjectSendStream[SessionMessage]):
    """Writes messages."""

    def __init__(self, pipe: asyncio.StreamWriter) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage) -> None:
        """Write *item*.

        Raises:
            BrokenPipeError: The child is gone, and not one byte of a request left.
            anyio.BrokenResourceError: The same of another message.
        """
        message = item.message
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
        if not self._pipe.is_closing():
            self._pipe.write(text.encode("utf-8", "replace") + b"\n")
        # A pipe whose reader is gone refuses the first byte, at once.
        if self._pipe.is_closing():
            raise (
                BrokenPipeError
                if isinstance(message, JSONRPCRequest)
                else anyio.BrokenResourceError
            )
        try:
            await self._pipe.drain()
        except ConnectionError:
            # Some of it left; the reader will notice that the connection is over.
            log.debug("a child ended while it was written to")

    async def aclose(self) -> None:
        """Leave the pipe to `open_stdio`, which ends the child in the right order."""


class Incoming(ObjectReceiveStream[SessionMessage]):
    """Reads messages until the child closes its output, or sends more than it may."""

    def __init__(self, server: str, pipe: asyncio.StreamReader, traffic: Traffic) -> None:
        self._server = server
        self._pipe = pipe
        self._traffic = traffic
        self._max_bytes = traffic.options.max_message_bytes
        self._rest = b""

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: There is none.
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
                log.debug("%s: a line on standard output is no message", self._server)

    async def aclose(self) -> None:
        """See `Outgoing.aclose`."""

    def _fail_request(self, line: bytes, why: str) -> SessionMessage:
        """Fail the request that *line* answers; if it does not say which, end the connection."""
        log.debug("%s: a message %s", self._server, why)
        answer = ANSWER.match(line)
        request = answer and (answer["first"] or answer["last"])
        if not request:
            raise anyio.EndOfStream
        error = ErrorData(code=OVERSIZED, message="the answer is too long")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(request), error=error))

    async def _read_line(self) -> tuple[bytes, bool]:
        """Return the next line, and whether it is whole: of a long one, only the ends are held.

        Raises:
            anyio.EndOfStream: The child has closed its output.
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
                chunk = await self._pipe.read(_CHUNK)
            except ConnectionError:
                chunk = b""
            if size > _MAX_SKIPPED * self._max_bytes:
                self._traffic.end(f"sent a line of {size} bytes")
            if not chunk or self._traffic.flood:
                raise anyio.EndOfStream
            await self._traffic.pace(len(chunk))
