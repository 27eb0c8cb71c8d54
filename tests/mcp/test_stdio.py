"""Processes and their pipes: one message a line, none too long; ended with all they started."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from asyncio.subprocess import Process
from pathlib import Path

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.mcp.error_mapping import OVERSIZED
from gateway.mcp.sdk_logging import open_stderr_log
from gateway.mcp.servers import StdioServer
from gateway.mcp.stdio import Incoming, open_stdio, start_process, stop_process
from tests.mcp.conftest import lives, until

LIMIT = 200


def incoming(*chunks: bytes, asked: set[object] | None = None) -> Incoming:
    pipe = asyncio.StreamReader()
    for chunk in chunks:
        pipe.feed_data(chunk)
    pipe.feed_eof()
    return Incoming("s", pipe, set() if asked is None else asked, LIMIT)


def answer(number: int, text: str = "") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": text}}).encode() + b"\n"


async def read(stream: Incoming) -> list[object]:
    found: list[object] = []
    async for item in stream:
        assert isinstance(item, SessionMessage)
        message = item.message
        assert isinstance(message, JSONRPCResponse | JSONRPCError)
        found.append((message.id, getattr(getattr(message, "error", None), "code", None)))
    return found


async def test_messages_are_found_however_the_bytes_come() -> None:
    """A pipe knows no messages."""
    whole = answer(1) + b"Starting up\n{}\n" + answer(2)
    cut = [whole[at : at + 7] for at in range(0, len(whole), 7)]

    assert [(1, None), (2, None)] == await read(incoming(*cut))
    assert [(1, None), (2, None)] == await read(incoming(whole, b'{"half'))


async def test_an_answer_that_is_too_long_fails_its_request_and_nothing_else() -> None:
    """Fifty megabytes are read past, not held."""
    asked: set[object] = {7}
    long = [answer(7, "x" * 500)[:100], *[b"x" * 100] * 50, b"\n"]

    assert [(7, OVERSIZED), (8, None)] == await read(incoming(*long, answer(8), asked=asked))
    assert set() == asked


@pytest.mark.parametrize("asked", [set(), {1, 2}])
async def test_a_long_message_that_answers_nobody_knows_whom_ends_the_connection(
    asked: set[object],
) -> None:
    """Better than a request that waits until its limit."""
    assert [] == await read(incoming(b"x" * 500 + b"\n", answer(1), asked=asked))


async def test_the_end_is_told_in_both_ways_of_reading() -> None:
    """The SDK's stream protocol has two."""
    with pytest.raises(anyio.EndOfStream):
        await incoming().receive()
    assert isinstance(await incoming(answer(1)).receive(), SessionMessage)


async def test_a_write_to_a_child_that_is_gone_says_that_nothing_left(tmp_path: Path) -> None:
    """Then the call may be sent again."""
    request = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call"))
    target = StdioServer(sys.executable, ("-c", "import os; os.close(0); print(1, flush=True)"))
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        async with open_stdio("s", target, errors, max_bytes=LIMIT) as (read_from, write_to):
            assert [] == await read(read_from)
            for _ in range(2):
                with pytest.raises(anyio.BrokenResourceError):
                    await write_to.send(request)


def test_what_a_child_says_on_the_side_is_logged_without_its_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Programs print their environment when they fail."""
    caplog.set_level(logging.DEBUG, "gateway.upstream")
    with open_stderr_log("srv", ["s3cret-key", "s3cret-key-2", "on"]) as errors:
        errors.write("KEY=s3cret-key-2 s3cret-key on\nlast\n")
    relay = next((t for t in threading.enumerate() if t.name == "srv stderr"), None)
    if relay is not None:
        relay.join(20)

    assert ["srv: KEY=*** *** on", "srv: last"] == caplog.messages


async def test_a_request_that_was_withdrawn_is_no_longer_asked(tmp_path: Path) -> None:
    """A thousand cancelled calls leave nothing behind."""
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call")
    withdrawal = JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}
    )
    target = StdioServer(sys.executable, ("-c", "print(); print('x' * 500); input(); input()"))
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        async with open_stdio("s", target, errors, max_bytes=LIMIT) as (read_from, write_to):
            await write_to.send(SessionMessage(request))
            await write_to.send(SessionMessage(withdrawal))

            assert [] == await read(read_from)


def deep(number: int, levels: int) -> bytes:
    nest = b'{"a":' * levels + b"1" + b"}" * levels
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, nest)


async def test_a_deep_message_is_read_and_one_without_end_fails_its_request() -> None:
    """A fast reader stops at two hundred levels: one deep schema would cost all tools."""
    pipe = asyncio.StreamReader()
    pipe.feed_data(deep(1, 300) + deep(2, 100_000) + answer(3))
    pipe.feed_eof()
    asked: set[object] = {1}
    found = []
    stream = Incoming("s", pipe, asked, 10_000_000)
    for number in (2, 3):
        found.append(await stream.receive())
        asked.add(number)
    found.append(await stream.receive())

    messages = [each.message for each in found if isinstance(each, SessionMessage)]
    first, second, third = messages
    assert isinstance(first, JSONRPCResponse)
    assert isinstance(second, JSONRPCError)
    assert isinstance(third, JSONRPCResponse)
    assert (1, 2, OVERSIZED, 3) == (first.id, second.id, second.error.code, third.id)


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
SEEN = "import json, os; print(json.dumps(dict(os.environ)))"


async def started(script: str, tmp_path: Path, env: dict[str, str] | None = None) -> Process:
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        return await start_process(StdioServer(sys.executable, ("-c", script), env or {}), errors)


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("script", [STUBBORN, POLITE])
async def test_nothing_of_a_group_outlives_its_end(tmp_path: Path, script: str) -> None:
    """Wrappers such as npx start the real server as a child of their own."""
    process = await started(script, tmp_path)
    inner = int(await line(process))

    await stop_process(process, grace_s=0.1 if script == STUBBORN else 20)

    assert process.returncode is not None
    assert not lives(process.pid)
    await until(lambda: not lives(inner))


async def test_ending_what_ended_is_harmless(tmp_path: Path) -> None:
    """Children die at any moment."""
    process = await started("", tmp_path)
    await process.wait()

    await stop_process(process)

    assert 0 == process.returncode


async def test_a_child_inherits_few_variables_and_gets_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server must not find the keys of the others in its environment."""
    monkeypatch.setenv("OTHER_API_KEY", "s3cret")
    process = await started(SEEN, tmp_path, {"OWN": "1"})

    seen = await line(process)
    await stop_process(process)

    assert "OTHER_API_KEY" not in seen
    assert '"OWN": "1"' in seen
    assert '"PATH"' in seen
