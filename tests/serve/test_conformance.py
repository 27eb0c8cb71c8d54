"""The protocol's own conformance suite against `gateway serve --http --expose all`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest

from gateway.bridge import Bridge
from gateway.config import Options
from gateway.embed.cached import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.limits import UpstreamOptions
from gateway.serve.http import HttpOptions, serve_http
from gateway.serve.server import mcp_server
from tests.serve.conftest import NODE, Tool, node_env

ROOT = Path(__file__).parents[2]
LOGGING = frozenset({"logging-set-level", "tools-call-with-logging"})
"""Not passed through: the protocol has deprecated it."""
WATCHING = frozenset({"resources-subscribe", "resources-unsubscribe"})
"""Single resources are not watched."""
HANGING_UP = frozenset({"server-sse-polling"})
"""Needs a server that hangs up by itself and keeps events."""
MISSING: Mapping[str, frozenset[str]] = {
    "2025-11-25": LOGGING | WATCHING | HANGING_UP,
    "2026-07-28": frozenset(),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve what a real server offers, all of it."""
    options = Options(upstream=UpstreamOptions(first_listing_s=120, connect_timeout_s=120))
    gateway = Gateway(vector_store=MemoryVectorStore(), options=options)
    args = ["-m", "tests.serve.upstream"]
    server = mcp_server(gateway, expose="all")
    gateway.add_server("fixture", command=sys.executable, args=args, cwd=ROOT)
    bridge = Bridge("served")
    where: Future[str] = Future()
    serving = bridge.submit(
        lambda: serve_http(server, HttpOptions(port=0), listening=where.set_result)
    )
    # The suite is not patient with a server that has yet to start another.
    asyncio.run(gateway.refresh())
    yield where.result(timeout=60)
    serving.cancel()
    bridge.close()
    gateway.close()


@pytest.mark.parametrize("version", list(MISSING))
def test_the_suite_passes(conformance: Tool, url: str, tmp_path: Path, version: str) -> None:
    """Every scenario that the version has, but for those whose reason stands above."""
    told = ["server", "--url", url, "--suite", "all", "--spec-version", version]
    ran = subprocess.run(
        [str(NODE / "node"), str(conformance), *told, "--output-dir", str(tmp_path)],
        env=node_env(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    failed: dict[str, list[str]] = {}
    for written in tmp_path.rglob("checks.json"):
        scenario = written.parent.name.removeprefix("server-").rpartition("-20")[0]
        checks = json.loads(written.read_text(encoding="utf-8"))
        failed[scenario] = [each["id"] for each in checks if each["status"] == "FAILURE"]

    assert len(failed) >= 30, ran.stdout
    assert MISSING[version] == {each for each, ids in failed.items() if ids}, ran.stdout
