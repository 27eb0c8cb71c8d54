"""The API on a port, beside the protocol: real servers on loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
from mcp import Client

from gateway.gateway import Gateway
from gateway.serve.api.app import api_routes
from gateway.serve.http_options import HttpOptions
from tests.apps.serve.api.conftest import ENTRIES, Mixed
from tests.apps.serve.test_http import served

PROGRAM = Path(sys.executable).with_name("st")


def with_api(gateway: Gateway) -> AbstractAsyncContextManager[str]:
    """Serve *gateway* on a free port, with the API."""
    options = HttpOptions(port=0)
    return served(gateway, options, api_routes(gateway, options))


async def test_both_are_served_on_one_port(mixed: Mixed) -> None:
    """Each under its own paths."""
    async with (
        with_api(mixed()) as url,
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
    async with with_api(gateway) as url:
        command = [
            str(PROGRAM), "run", url.replace("/mcp", "/openapi.json"),
            "--phases", "examples,fuzzing", "--max-examples", "5", "--seed", "7",
            "--generation-deterministic", "--no-color",
            "--request-timeout", "120", "--suppress-health-check", "all", "--workers", "1",
        ]  # fmt: skip
        running = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path
        )
        output, _ = await running.communicate()

    assert 0 == running.returncode, output.decode()
