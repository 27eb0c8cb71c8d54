"""The API on a port, beside the protocol: real servers on loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client

from gateway.gateway import Gateway
from gateway.serve.api.app import api_app, beside
from gateway.serve.http import HttpOptions, serve_http
from gateway.serve.mcp_server import mcp_server
from tests.serve.api.conftest import ENTRIES, Mixed

PROGRAM = Path(sys.executable).with_name("st")


@asynccontextmanager
async def served(gateway: Gateway) -> AsyncIterator[str]:
    """Serve *gateway* on a free port, and give the address of the protocol."""
    where: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    http = HttpOptions(port=0)
    task = asyncio.create_task(
        serve_http(
            mcp_server(gateway),
            http,
            beside=beside(api_app(gateway, http)),
            on_listening=where.set_result,
        )
    )
    try:
        yield await where
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_both_are_served_on_one_port(mixed: Mixed) -> None:
    """Each under its own paths."""
    async with (
        served(mixed()) as url,
        httpx2.AsyncClient(trust_env=False) as http,
        Client(url) as client,
    ):
        tools = [each.name for each in (await client.list_tools()).tools]
        body = {"query": "send an e-mail"}
        answer = await http.post(url.replace("/mcp", "/api/search/semantic"), json=body)
        head = await http.head(url.replace("/mcp", "/api/health"))
        doors = [await http.get(url.replace("/mcp", path)) for path in ("/", "/api")]

    assert ["search_tools", "call_tool"] == tools
    assert "mail/send_email" == answer.json()["results"][0]["id"]
    assert (200, b"") == (head.status_code, head.content)
    for door in doors:
        assert (404, True) == (door.status_code, "/openapi.json" in door.json()["detail"])


async def test_schemathesis_finds_no_fault(mixed: Mixed, tmp_path: Path) -> None:
    """Examples that are drawn from the document, the same at every run: answers are as it says,
    nothing that fits is refused, nothing that does not is let in, and nobody sees an error of the
    server's."""
    gateway = mixed()
    await gateway.catalog.put(*ENTRIES)
    await gateway.snapshot(vectors=True)
    async with served(gateway) as url:
        command = [
            str(PROGRAM), "run", url.replace("/mcp", "/openapi.json"),
            "--phases", "examples,fuzzing", "--max-examples", "5", "--seed", "7",
            "--generation-deterministic", "--no-color",
            "--request-timeout", "120", "--suppress-health-check", "all", "--workers", "1",
        ]  # fmt: skip
        running = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path
        )
        told, _ = await running.communicate()

    assert 0 == running.returncode, told.decode()
