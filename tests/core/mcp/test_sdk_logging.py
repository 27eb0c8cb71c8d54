"""What is said on the side."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.mcp import HttpServer
from gateway.runtime.background_loop import Bridge
from tests.core.mcp.conftest import opened, served
from tests.core.mcp.servers.plain import plain


async def test_no_address_no_header_and_no_argument_is_in_any_log(
    bridge: Bridge, record: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys stand in both, and the HTTP client tells every address at INFO."""
    caplog.set_level(logging.DEBUG)
    headers = {"Authorization": "Bearer s3cret"}
    async with served(bridge, plain(record).streamable_http_app()) as port:
        target = HttpServer(f"http://127.0.0.1:{port}/mcp?key=s3cret", headers)
        async with opened(bridge, target) as source:
            await source.list_tools()
            await source.call("echo", {"text": "n0te"}, tool_id="t")

    # The server is of this test, and keeps a list of visitors.
    own = [entry for entry in caplog.records if entry.name != "uvicorn.access"]
    messages = [entry.getMessage() for entry in own]
    assert [] == [text for text in messages if "s3cret" in text or "n0te" in text]
