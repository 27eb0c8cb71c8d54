"""Hostile child processes: memory, effect on other servers, and clean-up."""

from __future__ import annotations

import asyncio
import random
import resource
import sys
from pathlib import Path

import pytest

from gateway.errors import UpstreamError
from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import HERE, Hostile, lines, lives
from tests.fakes import ListSource, tool

_MIB = 1024 * 1024


def peak_bytes() -> int:
    """Return the peak memory of this process, in bytes."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


async def test_huge_message_of_a_server_is_not_held_in_memory(hostile: Hostile) -> None:
    """The SDK alone would read the whole message, which takes seconds."""
    source = hostile("huge", connect_attempts=1)
    await source.call("good", {}, tool_id="x")
    before = peak_bytes()

    with pytest.raises(UpstreamError, match="max_message_bytes"):
        await source.list_tools()

    assert peak_bytes() - before < 50 * _MIB
    assert "pong" == (await source.call("good", {}, tool_id="x")).text


async def test_call_returns_an_error_result_if_its_result_is_too_long(hostile: Hostile) -> None:
    """A model reads the message and can ask the tool for less."""
    answer = await hostile("long_answer", max_result_bytes=2000).call("good", {}, tool_id="x")

    assert answer.is_error
    assert "max_result_bytes" in answer.text
    assert len(answer.text) < 300


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("huge", "source_load_failed"),
        ("silent_list", "source_load_failed"),
        ("exits_at_start", "source_load_failed"),
        ("no_list", "source_load_failed"),
        ("malformed", "tool_quarantined"),
        ("dressed", "tool_suspicious"),
        ("deep", "tool_quarantined"),
        ("costly", "tool_quarantined"),
        ("many", "listing_truncated"),
        ("endless", "listing_truncated"),
        ("repeated", "listing_truncated"),
        ("garbage", ""),
    ],
)
async def test_hostile_server_does_not_affect_other_servers(
    open_gateway: OpenGateway, record: Path, mode: str, code: str
) -> None:
    """Searches find the tools of the other server and report the hostile one. Less than 50 MiB are
    used.
    """
    before = peak_bytes()
    limits = UpstreamOptions(list_timeout_s=5, connect_attempts=1, max_pages=5, max_tools=15)
    gateway = open_gateway(options=Options(upstream=limits))
    gateway.add_source(ListSource("calm", [tool("water_plants", "Water the plants.")]))
    gateway.add_server(
        "bad", command=sys.executable, args=(str(HERE / "hostile.py"), mode, str(record))
    )

    result = await gateway.search("water the plants")

    assert "calm/water_plants" == result.matches[0].id
    codes = {note.code for note in (await gateway.report()).diagnostics}
    assert {code} - {""} == codes - {"schema_simplified"}
    assert peak_bytes() - before < 50 * _MIB


async def test_thousand_cancelled_calls_leave_no_tasks_or_processes(
    hostile: Hostile, bridge: Bridge, record: Path
) -> None:
    """Calls are cancelled at random points: before, during and after sending."""
    source = hostile("pid")
    await source.list_tools()
    before = await bridge.run(_tasks)
    dice = random.Random(7)

    for _ in range(100):
        calls = [
            asyncio.create_task(source.call(dice.choice(("slow", "good")), {}, tool_id="x"))
            for _ in range(10)
        ]
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)

    assert "pong" == (await source.call("good", {}, tool_id="x")).text
    assert (0, "active") == (source.supervisor.in_flight, source.state)
    assert before >= await bridge.run(_tasks)
    await source.close()
    children = [int(line) for line in lines(record) if line.isdecimal()]
    assert 1 == len(children)
    assert not lives(children[0])


async def _tasks() -> int:
    return len(asyncio.all_tasks())
