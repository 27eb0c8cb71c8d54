"""The MCP Inspector lists and calls tools over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options
from tests.apps.serve.conftest import FIXTURE, NODE, PATIENT, ROOT, Script, node_env


def run_inspector(inspector: Script, home: Path, *arguments: str) -> Any:
    """Run the MCP Inspector and return its output.

    Its timeout is longer than its default of 15 s.
    """
    ran = subprocess.run(
        [str(NODE / "node"), str(inspector), "--cli", *arguments, "--connect-timeout", "0"],
        env={**node_env(), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert 0 == ran.returncode, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a configuration, and with cached tools of its server."""
    table = {"command": sys.executable, "args": list(FIXTURE), "cwd": str(ROOT)}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"fixture": table}}), encoding="utf-8")

    async def listed() -> int:
        gateway = Gateway(
            strategy="graph", vector_store=MemoryVectorStore(), options=Options(upstream=PATIENT)
        )
        async with gateway:
            gateway.add_config(path)
            return len(await gateway.list_tools())

    assert asyncio.run(listed()) > 20
    return tmp_path


def test_inspector_lists_and_calls_the_meta_tools(inspector: Script, folder: Path) -> None:
    """The upstream server need not be started, because its tools are cached."""
    environment = [f"PYTHONPATH={ROOT}", f"GATEWAY_CACHE_DIR={os.environ['GATEWAY_CACHE_DIR']}"]
    start = [tool for value in environment for tool in ("-e", value)]
    serve = [sys.executable, "-m", "gateway", "serve", "--strategy", "graph"]
    where = [*start, "--cwd", str(folder), "--transport", "stdio", *serve]
    listed = run_inspector(inspector, folder, *where, "--method", "tools/list")
    call = ["tools/call", "--tool-name", "search_tools", "--tool-arg", "query=simple text"]
    called = run_inspector(inspector, folder, *where, "--method", *call)

    assert ["search_tools", "call_tool"] == [tool["name"] for tool in listed["tools"]]
    assert "fixture/test_simple_text" in [
        tool["id"] for tool in called["structuredContent"]["tools"]
    ]
