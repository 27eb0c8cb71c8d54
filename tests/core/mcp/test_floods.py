"""Servers that exceed their limits are disconnected, then skipped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import benchmarks.flood_server as floods
from gateway.errors import UpstreamError, UpstreamFloodError, UpstreamUnavailableError
from gateway.mcp import HttpServer, StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource
from tests.core.mcp.conftest import opened
from tests.core.mcp.test_error_mapping import peak_bytes

SERVER = str(Path(floods.__file__))
FEW = UpstreamOptions(max_messages_per_s=5)
REQUESTS = ("ping", "roots", "sampling", "elicitation")
NOTES = ("logging", "progress", "list_changed", "updated", "unknown_answers", "garbage")


@asynccontextmanager
async def flooding(
    bridge: Bridge, flood: str, options: UpstreamOptions
) -> AsyncIterator[McpSource]:
    if not flood.startswith("http"):
        async with opened(bridge, StdioServer(sys.executable, (SERVER, flood)), options) as source:
            yield source
        return
    command = (sys.executable, SERVER, flood, "--http")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        target = HttpServer(f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp")
        try:
            async with opened(bridge, target, options) as source:
                yield source
        finally:
            process.kill()


@pytest.mark.parametrize("flood", [*REQUESTS, *NOTES, "blank_lines", "http_pings"])
async def test_flooding_server_is_disconnected_and_skipped(bridge: Bridge, flood: str) -> None:
    """The error contains the reason. The next call raises it again, without reaching the server.
    The test takes less than 50 MiB.
    """
    before = peak_bytes()
    async with flooding(bridge, flood, FEW) as source:
        with pytest.raises(UpstreamFloodError, match=r"was disconnected: it (sent|does not)"):
            await source.call("good", {}, tool_id="x")
        with pytest.raises(UpstreamUnavailableError, match="was disconnected: it"):
            await source.call("good", {}, tool_id="x")

        assert source.supervisor.breaker.is_open
    assert peak_bytes() - before < 50 * 1024 * 1024


async def test_server_that_sends_an_endless_line_is_disconnected(bridge: Bridge) -> None:
    async with flooding(bridge, "endless_line", UpstreamOptions(max_message_bytes=1024)) as source:
        with pytest.raises(UpstreamFloodError, match="sent a line of"):
            await source.call("good", {}, tool_id="x")


@pytest.mark.parametrize("flood", ["empty_objects", "http_empty_objects"])
async def test_answer_with_millions_of_json_values_fails_only_its_request(
    bridge: Bridge, flood: str
) -> None:
    """Parsing the eight megabytes of the answer would take hundreds of megabytes."""
    async with flooding(bridge, flood, UpstreamOptions()) as source:
        with pytest.raises(UpstreamError, match="max_message_values"):
            await source.list_tools()

        assert "active" == source.state


async def test_listing_is_cut_if_its_checks_take_too_long(bridge: Bridge) -> None:
    """The tools that were checked in time are listed."""
    async with flooding(bridge, "worst_text", UpstreamOptions(max_listing_cpu_s=0.05)) as source:
        listing = await source.list_tools()

    assert 1 <= len(listing.tools) < 20
    assert "max_listing_cpu_s" in listing.diagnostics[-1].detail
