"""The API on the same port as MCP, on real HTTP servers on loopback."""

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
    """Serve *gateway* with the API on a free port."""
    options = HttpOptions(port=0)
    return served(gateway, options, api_routes(gateway, options))


async def test_api_and_mcp_share_a_port(create_mail_gateway: Mixed) -> None:
    async with (
        with_api(create_mail_gateway()) as url,
        httpx2.AsyncClient(trust_env=False) as http,
        Client(url) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        body = {"query": "send an e-mail"}
        answer = await http.post(url.replace("/mcp", "/api/search/semantic"), json=body)
        head = await http.head(url.replace("/mcp", "/api/health"))
        doors = [await http.get(url.replace("/mcp", path)) for path in ("/", "/api")]

    assert ["search_tools", "call_tool"] == tools
    assert "mail/send_email" == answer.json()["results"][0]["id"]
    assert (200, b"") == (head.status_code, head.content)
    for door in doors:
        assert (404, True) == (door.status_code, "/openapi.json" in door.json()["detail"])


async def test_schemathesis_finds_no_fault_in_the_api(
    create_mail_gateway: Mixed, tmp_path: Path
) -> None:
    """Requests are generated from the OpenAPI document, with a fixed seed.

    Responses must follow the document, and no request may cause a server error.
    """
    gateway = create_mail_gateway()
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
