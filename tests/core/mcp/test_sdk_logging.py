"""Logs of the SDK and of the HTTP client."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.mcp import HttpServer
from gateway.runtime.background_loop import Bridge
from tests.core.mcp.conftest import opened, served
from tests.core.mcp.servers.plain import plain


async def test_logs_contain_no_urls_headers_or_arguments(
    bridge: Bridge, record: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """URLs and headers may contain keys, and the HTTP client logs every URL at INFO."""
    caplog.set_level(logging.DEBUG)
    headers = {"Authorization": "Bearer s3cret"}
    async with served(bridge, plain(record).streamable_http_app()) as port:
        target = HttpServer(f"http://127.0.0.1:{port}/mcp?key=s3cret", headers)
        async with opened(bridge, target) as source:
            await source.list_tools()
            await source.call("echo", {"text": "n0te"}, tool_id="t")

    # The access log belongs to the test's own HTTP server.
    entries = [entry for entry in caplog.records if entry.name != "uvicorn.access"]
    messages = [entry.getMessage() for entry in entries]
    assert [] == [text for text in messages if "s3cret" in text or "n0te" in text]
