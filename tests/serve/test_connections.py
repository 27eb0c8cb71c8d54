"""Clients that open much and send little."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from gateway.cli.commands.serve import limit_log
from gateway.serve.http import HttpOptions
from tests.conftest import OpenGateway
from tests.serve.test_http import served

HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
BODY = b"\r\n{"
START = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "0"},
    },
}
PATIENCE_S = 60


@asynccontextmanager
async def half_sent(url: str, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Send *data* over a new connection, and give what is to be read of it."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(data)
        yield reader
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(PATIENCE_S):
        with suppress(ConnectionError):
            await reader.read()


@pytest.mark.parametrize("data", [b"", HALF, HALF + BODY])
async def test_a_request_that_does_not_come_whole_ends_its_connection(
    open_gateway: OpenGateway, data: bytes
) -> None:
    """It would hold it for ever."""
    options = HttpOptions(port=0, request_timeout_s=0.05)
    async with served(open_gateway(), options) as url, half_sent(url, data) as reader:
        await ended(reader)


async def test_half_sent_requests_do_not_keep_others_out(open_gateway: OpenGateway) -> None:
    """A new connection takes the place of the one that has waited longest."""
    options = HttpOptions(port=0, max_connections=5, request_timeout_s=600)
    async with served(open_gateway(), options) as url, AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(half_sent(url, HALF)) for _ in range(20)]
        for _ in range(8):
            client = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
            assert 400 == (await client.post(url, json={})).status_code
        await asyncio.gather(*map(ended, readers))


async def test_one_session_too_many_is_refused_until_one_has_ended(
    open_gateway: OpenGateway,
) -> None:
    """Each holds memory. An idle one ends by itself."""
    headers = {"accept": "application/json, text/event-stream"}
    options = HttpOptions(port=0, max_sessions=3, session_idle_s=0.5)
    async with (
        served(open_gateway(), options) as url,
        httpx2.AsyncClient(trust_env=False, headers=headers) as client,
    ):
        started = [(await client.post(url, json=START)).status_code for _ in range(4)]
        async with asyncio.timeout(PATIENCE_S):
            while (await client.post(url, json=START)).status_code != 200:
                pass

    assert [200, 200, 200, 503] == started


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(record)


def test_few_records_of_a_flood_are_logged() -> None:
    """A client that causes a line with each request must not fill the disk."""
    handler = Collector()
    limit_log(handler)
    record = logging.makeLogRecord({"msg": "Invalid HTTP request received."})
    for _ in range(10_000):
        handler.handle(record)

    assert 100 <= len(handler.written) < 1000
