"""Transport over pipes: message lines, limits, logs, and the end of child processes."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.gateway import Gateway
from gateway.mcp import StdioServer, Traffic
from gateway.mcp.dispatcher import LenientDispatcher
from gateway.mcp.error_mapping import OVERSIZED
from gateway.mcp.stdio import (
    Incoming,
    kill_all,
    open_stderr_log,
    open_stdio,
    start_process,
    stop_process,
)
from gateway.mcp.transports import ConnectionCallbacks
from gateway.options import Options, UpstreamOptions
from tests.core.mcp.conftest import lives, until

LIMIT = 1024


def incoming(*chunks: bytes, max_bytes: int = LIMIT) -> Incoming:
    pipe = asyncio.StreamReader()
    for chunk in chunks:
        pipe.feed_data(chunk)
    pipe.feed_eof()
    return Incoming("s", pipe, Traffic(UpstreamOptions(max_message_bytes=max_bytes)))


def answer(number: int, text: str = "", *, last: bool = False) -> bytes:
    """Return a JSON-RPC answer to the request *number*. *last* writes the id at the end of the
    line.
    """
    result = {"text": text, "id": 99}
    if last:
        return json.dumps({"result": result, "jsonrpc": "2.0", "id": number}).encode() + b"\n"
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


async def read(stream: Incoming) -> list[object]:
    answers: list[object] = []
    async for item in stream:
        message = item.message
        assert isinstance(message, JSONRPCResponse | JSONRPCError)
        answers.append((message.id, getattr(getattr(message, "error", None), "code", None)))
    return answers


async def test_messages_are_read_however_their_bytes_are_split() -> None:
    whole = answer(1) + b"Starting up\n{}\n" + answer(2)
    cut = [whole[start : start + 7] for start in range(0, len(whole), 7)]

    assert [(1, None), (2, None)] == await read(incoming(*cut))
    assert [(1, None), (2, None)] == await read(incoming(whole, b'{"half'))


@pytest.mark.parametrize("last", [False, True])
async def test_too_long_answer_over_stdio_fails_only_its_request(*, last: bool) -> None:
    """The id is found at the beginning or at the end of the line."""
    long = answer(7, "x" * 5000, last=last)
    cut = [long[start : start + 70] for start in range(0, len(long), 70)]

    assert [(7, OVERSIZED), (8, None)] == await read(incoming(*cut, answer(8)))


@pytest.mark.parametrize(
    "line",
    [
        b"x" * 5000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "' + b"x" * 5000 + b'"}}',
        b'{"method": "ping", "params": {"a": "' + b"x" * 5000 + b'"}, "id": 1}',
        b'{"result": {"id": 1, "a": "' + b"x" * 5000 + b'", "b": {"id": 1}}}',
    ],
)
async def test_too_long_message_without_an_id_ends_the_connection(line: bytes) -> None:
    """If the connection stayed open, the unknown request would wait until its time limit."""
    assert [] == await read(incoming(line + b"\n", answer(1)))


async def test_request_to_an_ended_child_raises_broken_pipe() -> None:
    """This error means that no byte was sent, so the call may be sent again."""
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call")
    notification = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled")
    target = StdioServer(sys.executable, ("-c", "import os; os.close(0); print(1, flush=True)"))
    async with open_stdio("s", target, Traffic(UpstreamOptions())) as (read_from, write_to):
        assert [] == await read(read_from)
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                await write_to.send(SessionMessage(request))
        with pytest.raises(anyio.BrokenResourceError):
            await write_to.send(SessionMessage(notification))


async def test_request_after_the_end_of_the_connection_raises_broken_pipe() -> None:
    """The session notices the end slightly later. This error means that a call may be sent
    again.
    """

    async def never(*_: Any, message: object = None) -> Any:
        raise AssertionError

    ended = asyncio.Event()
    callbacks = ConnectionCallbacks(on_end=ended.set, on_message=never, answer=never)
    send, receive = anyio.create_memory_object_stream[SessionMessage](1)
    dispatcher = LenientDispatcher(incoming(), send, callbacks)
    await dispatcher.run(never, never)
    assert ended.is_set()

    with pytest.raises(BrokenPipeError):
        await dispatcher.send_raw_request("tools/call", {"name": "good"})
    receive.close()


def test_standard_error_of_a_child_is_logged_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Programs print their environment when they fail."""
    caplog.set_level(logging.DEBUG, "gateway.upstream")
    with open_stderr_log("srv", ["s3cret-key", "s3cret-key-2", "on", "---BEGIN\nMIIEvQ"]) as errors:
        errors.write("KEY=s3cret-key-2 s3cret-key on\nPEM=---BEGIN\nMIIEvQ\n")
    relay = next((t for t in threading.enumerate() if t.name == "srv stderr"), None)
    if relay is not None:
        relay.join(20)

    assert ["srv: KEY=*** *** on", "srv: PEM=***", "srv: ***"] == caplog.messages


def deep(number: int, levels: int) -> bytes:
    nest = b'{"a":' * levels + b"1" + b"}" * levels
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, nest)


async def test_deeply_nested_message_is_read_and_a_deeper_one_fails_its_request() -> None:
    """The fast parser fails at two hundred levels, so one deep schema would make all tools fail."""
    lines = (deep(1, 300), deep(2, 100_000), answer(3))
    stream = incoming(*lines, max_bytes=10_000_000)

    assert [(1, None), (2, OVERSIZED), (3, None)] == await read(stream)


STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
inner = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(inner.pid, flush=True)
signal.pause()
"""
POLITE = """
import subprocess, sys
inner = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(inner.pid, flush=True)
sys.stdin.read()
"""
DETACHED = """
import subprocess, sys
inner = '''
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{leave}
print(os.getpid(), flush=True)
signal.pause()
'''
subprocess.Popen([sys.executable, "-c", inner])
"""
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


async def started(script: str, tmp_path: Path, env: dict[str, str] | None = None) -> Process:
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        return await start_process(StdioServer(sys.executable, ("-c", script), env or {}), errors)


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("script", [STUBBORN, POLITE])
async def test_stopped_process_ends_with_its_whole_group(tmp_path: Path, script: str) -> None:
    """Wrappers such as npx start the real server as their child."""
    process = await started(script, tmp_path)
    inner = int(await line(process))

    await stop_process(process, grace_s=0.1 if script == STUBBORN else 20)

    assert process.returncode is not None
    assert not lives(process.pid)
    await until(lambda: not lives(inner))


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells")
@pytest.mark.parametrize(
    "leave", ["os.setpgid(0, 0)", "os.setsid()", "os.setsid(); os.fork() and os._exit(0)"]
)
@pytest.mark.parametrize("end", ["sys.stdin.read()", "sys.exit()"])
async def test_descendant_that_left_the_process_group_ends_with_the_child(
    tmp_path: Path, leave: str, end: str
) -> None:
    """The descendant ignores SIGTERM, and its parent may have ended."""
    process = await started(DETACHED.format(leave=leave) + end, tmp_path)
    inner = int(await line(process))

    await stop_process(process, grace_s=20)

    await until(lambda: not lives(inner))


async def test_kill_all_ends_all_running_children(tmp_path: Path) -> None:
    process = await started(STUBBORN, tmp_path)
    inner = int(await line(process))

    kill_all()

    await until(lambda: not lives(inner))
    await stop_process(process)


async def test_child_inherits_only_a_few_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server must not get the keys of other servers."""
    monkeypatch.setenv("OTHER_API_KEY", "s3cret")
    process = await started(PRINT_ENVIRONMENT, tmp_path, {"OWN": "1"})

    environment = await line(process)
    await stop_process(process)

    assert "OTHER_API_KEY" not in environment
    assert '"OWN": "1"' in environment
    assert '"PATH"' in environment


async def test_last_lines_of_a_program_are_reported_without_secrets(tmp_path: Path) -> None:
    """Secrets of the environment, of the command line and of well-known formats are removed. Models
    do not get the lines, because a stranger wrote them.
    """
    program = (
        "import os, sys\n"
        "print('old\\n' * 50, file=sys.stderr)\n"
        "print('cannot \\x1b[31mopen\\u202e ' + 'x' * 3000, file=sys.stderr)\n"
        "print('key', os.environ['KEY'], sys.argv[2], 'ghp_' + 'a' * 30, file=sys.stderr)\n"
    )
    args = ("-c", program, "--token", "of-the-command-line")
    options = UpstreamOptions(connect_timeout_s=60, connect_attempts=1)
    gateway = Gateway(
        strategy="graph",
        options=Options(upstream=options, catalog_store_path=tmp_path / "c.sqlite3"),
    )
    gateway.add_server("srv", command=sys.executable, args=args, env={"KEY": "of-the-environment"})

    (note,) = (await gateway.report()).diagnostics
    await gateway.aclose()

    _, wrote = note.detail.split("; it wrote: ")
    lines = wrote.split(" | ")
    assert "source_load_failed" == note.code
    assert (5, "key *** *** ***") == (len(lines), lines[-1])
    assert lines[-2].startswith("cannot [31mopen xxx")
    assert 200 == len(lines[-2])
