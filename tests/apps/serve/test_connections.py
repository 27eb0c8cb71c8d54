"""Limits for clients that open many connections or sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.types import Message, Receive, Scope, Send

from gateway.cli.server import limit_log
from gateway.gateway import Gateway
from gateway.serve.auth import BearerToken
from gateway.serve.connections import SessionShares
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller
from tests.apps.serve.test_http import HELLO, served
from tests.conftest import OpenGateway

HALF = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
BODY = b"\r\n{"
PATIENCE_S = 60


@asynccontextmanager
async def send_incomplete(url: str, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Send an incomplete request over a new connection, and yield the connection's reader."""
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
async def test_incomplete_request_closes_its_connection(
    open_gateway: OpenGateway, data: bytes
) -> None:
    options = HttpOptions(port=0, request_timeout_s=0.05)
    async with served(open_gateway(), options) as url, send_incomplete(url, data) as reader:
        await ended(reader)


async def test_incomplete_requests_do_not_block_other_clients(open_gateway: OpenGateway) -> None:
    options = HttpOptions(port=0, max_connections=5, request_timeout_s=600)
    async with served(open_gateway(), options) as url, AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(send_incomplete(url, HALF)) for _ in range(20)]
        for _ in range(8):
            client = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
            assert 400 == (await client.post(url, json={})).status_code
        await asyncio.gather(*map(ended, readers))


PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
TOKENS = tuple(
    BearerToken.from_secret(name, f"secret of {name}", Caller(user=name)) for name in "abc"
)


@dataclass(frozen=True)
class Party:
    """A caller with its HTTP client."""

    url: str
    client: httpx2.AsyncClient

    async def begin(self) -> dict[str, str]:
        """Start an MCP session, and return the header that identifies it."""
        started = await self.client.post(self.url, json=HELLO)
        assert 200 == started.status_code
        return {"mcp-session-id": started.headers["mcp-session-id"]}

    async def statuses(self, *sessions: dict[str, str]) -> list[int]:
        """Send a ping in each session, and return the HTTP statuses."""
        return [
            (await self.client.post(self.url, json=PING, headers=response)).status_code
            for response in sessions
        ]


@asynccontextmanager
async def parties(
    gateway: Gateway, max_sessions: int, session_idle_s: float = 900
) -> AsyncIterator[tuple[Party, Party, Party]]:
    """Serve *gateway*, and yield three callers of the server."""
    options = HttpOptions(
        port=0, max_sessions=max_sessions, session_idle_s=session_idle_s, tokens=TOKENS
    )
    async with served(gateway, options) as url, AsyncExitStack() as stack:
        clients = [
            httpx2.AsyncClient(
                trust_env=False,
                headers={
                    "accept": "application/json, text/event-stream",
                    "authorization": f"Bearer secret of {token.name}",
                },
            )
            for token in TOKENS
        ]
        a, b, c = [Party(url, await stack.enter_async_context(client)) for client in clients]
        yield a, b, c


async def test_session_beyond_the_maximum_is_refused_until_another_ends(
    open_gateway: OpenGateway,
) -> None:
    async with parties(open_gateway(), 2, session_idle_s=0.5) as (first_party, two, three):
        started = [
            (await response.client.post(response.url, json=HELLO)).status_code
            for response in (first_party, two, three)
        ]
        async with asyncio.timeout(PATIENCE_S):
            while (await three.client.post(three.url, json=HELLO)).status_code != 200:
                pass

    assert [200, 200, 503] == started


async def test_one_caller_cannot_use_all_sessions(open_gateway: OpenGateway) -> None:
    async with parties(open_gateway(), 6) as (greedy, modest, _):
        other = await modest.begin()
        first, second, third = [await greedy.begin() for _ in range(3)]
        await greedy.statuses(first)
        later = [await greedy.begin() for _ in range(2)]
        alive = await greedy.statuses(first, second, third, *later)
        others = await modest.statuses(other)

    assert [200, 404, 404, 200, 200] == alive
    assert [200] == others


async def test_new_session_ends_an_idle_session_of_the_same_caller(
    open_gateway: OpenGateway,
) -> None:
    async with parties(open_gateway(), 4) as (caller, _, _):
        listening, idle = await caller.begin(), await caller.begin()
        async with caller.client.stream("GET", caller.url, headers=listening):
            newest = await caller.begin()
            alive = await caller.statuses(listening, idle, newest)
        await caller.client.delete(caller.url, headers=newest)
        await caller.begin()
        after = await caller.statuses(listening)

    assert [200, 404, 200] == alive
    assert [200] == after


class Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(record)


def test_flood_of_requests_causes_few_log_records() -> None:
    """A client that causes a log line with each request must not fill the disk."""
    handler = Collector()
    limit_log(handler)
    record = logging.makeLogRecord({"msg": "Invalid HTTP request received."})
    for _ in range(10_000):
        handler.handle(record)

    assert 100 <= len(handler.written) < 1000


async def test_number_of_recorded_sessions_is_limited() -> None:
    """Most sessions end by themselves, and their callers never return."""
    names = count()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(MCP_SESSION_ID_HEADER.encode(), str(next(names)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def ignore(_message: Message) -> None: ...

    async def nothing() -> Message:
        return {"type": "http.request"}

    shares = SessionShares(app, max_sessions=4)
    for number in range(50):
        user = BearerToken(name=f"user{number}", caller=Caller()).to_user()
        await shares({"type": "http", "method": "POST", "user": user}, nothing, ignore)

    assert [(f"user{number}", str(number)) for number in range(46, 50)] == [
        *shares.running_requests
    ]
