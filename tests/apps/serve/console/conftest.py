"""Consoles served on loopback, and a Chromium shared by all tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright
from pytest_asyncio import is_async_test
from starlette.routing import Route

from gateway.gateway import Gateway
from gateway.serve.account import account_routes
from gateway.serve.console import ConsoleOptions, Sessions
from gateway.serve.console.app import console_routes
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.sign_in import sign_in_routes
from gateway.types import Caller
from tests.apps.serve.console.catalogs import ENTRIES, HOSTILE, HOSTILE_ENTRIES, SMALL
from tests.conftest import OpenGateway, with_own_store
from tests.fakes import Shelf
from tests.installed import installed

ROOT = Path(__file__).parents[4]
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SERIOUS = ("serious", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    url: str
    """Address of the console's server, without a path."""
    token: str
    """Token with which a browser signs in."""
    sessions: Sessions

    def client(self) -> httpx2.AsyncClient:
        """Return an HTTP client that sends the token, for ``?format=json``."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=f"{self.url}/console", headers=headers)

    async def data(self, path: str, **query: str) -> Any:
        async with self.client() as client:
            answer = await client.get(path, params={**query, "format": "json"})
            answer.raise_for_status()
            return answer.json()

    @asynccontextmanager
    async def signed_in(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Yield an HTTP client with a browser session, for `send`."""
        async with httpx2.AsyncClient(base_url=f"{self.url}/console") as client:
            answer = await client.post("/sign-in", data={"token": self.token})
            assert 303 == answer.status_code
            yield client

    async def send(
        self, client: httpx2.AsyncClient, path: str, fields: dict[str, Any]
    ) -> httpx2.Response:
        """Submit a form with the session and CSRF token of *client*."""
        findings = (self.sessions.find_by_cookie(value) for value in client.cookies.values())
        session = next(item for item in findings if item is not None)
        return await client.post(path, data={**fields, "csrf": session.csrf})


Serve = Callable[..., Awaitable[Served]]
Open = Callable[..., Awaitable[Page]]


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Run these tests on one event loop, for one Chromium."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(loop_scope="session")
async def serve_console() -> AsyncIterator[Serve]:
    """Serve consoles: `await serve_console(gateway, http=…, **options of ConsoleOptions)`."""
    async with AsyncExitStack() as stack:

        async def serve(
            gateway: Gateway, *, http: HttpOptions | None = None, token: str = "", **options: Any
        ) -> Served:
            http = http or HttpOptions(port=0)
            sessions = Sessions(http)
            url = await stack.enter_async_context(_running(gateway, http, sessions, options))
            return Served(url=url, token=token or sessions.launch_token, sessions=sessions)

        yield serve


def _account_pages(gateway: Gateway, sessions: Sessions) -> Sequence[Route]:
    async def name_caller(token: str) -> Caller:
        return (await sessions.authenticator.authenticate([f"Bearer {token}"])).caller

    pages = sign_in_routes(gateway, name_caller, sessions)
    return [*account_routes(sessions, gateway.options), *pages]


@asynccontextmanager
async def _running(
    gateway: Gateway, http: HttpOptions, sessions: Sessions, options: dict[str, Any]
) -> AsyncIterator[str]:
    where: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_http(
            mcp_server(gateway),
            http,
            routes=_account_pages(gateway, sessions),
            console=console_routes(gateway, ConsoleOptions(**options), sessions),
            on_listening=where.set_result,
        )
    )
    await asyncio.wait((where, serving), return_when=asyncio.FIRST_COMPLETED)
    yield (await where).removesuffix("/mcp")
    if spans := options.get("spans"):
        # An open stream of spans would delay the shutdown.
        spans.shutdown()
    serving.cancel()
    await asyncio.wait((serving,))


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = installed("chromium", package="chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser) -> AsyncIterator[Open]:
    """Open pages: `await visit(served, "/ask", …options of a browser context)`.

    Pages must not log errors or request other hosts.
    """
    faults: list[str] = []

    async def open_page(served: Served, path: str, **context: Any) -> Page:
        opened = await browser.new_context(**context)
        page = await opened.new_page()
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((served.url, "data:"))
                else faults.append(f"foreign: {request.url}")
            ),
        )
        sign_in = f"{served.url}/console/sign-in"
        await opened.request.post(sign_in, form={"token": served.token}, max_redirects=0)
        await page.goto(f"{served.url}/console{path}")
        return page

    yield open_page
    assert [] == faults


@pytest.fixture
def open_gateway(open_gateway: OpenGateway, tmp_path: Path) -> OpenGateway:
    """Create gateways with the test's own entries and approvals."""
    return with_own_store(open_gateway, tmp_path)


@pytest.fixture
def empty_gateway(open_gateway: OpenGateway) -> Gateway:
    return open_gateway()


@pytest.fixture
def small_gateway(open_gateway: OpenGateway) -> Gateway:
    """A gateway with a server ``mail`` of three tools, and catalog entries."""
    gateway = open_gateway()
    gateway.add_server("mail", server=Shelf(SMALL).server)
    gateway.bridge.call(lambda: gateway.catalog.put(*ENTRIES))
    return gateway


@pytest.fixture
def hostile_gateway(open_gateway: OpenGateway) -> Gateway:
    """A gateway whose texts try to break pages."""
    gateway = open_gateway()
    gateway.add_server("hostile", server=Shelf(HOSTILE).server)
    gateway.bridge.call(lambda: gateway.catalog.put(*HOSTILE_ENTRIES))
    return gateway


@pytest.fixture(scope="session")
def large_console() -> Iterator[Served]:
    """A console for 5,000 tools, for tests that change nothing.

    Its process has no coverage, which would triple its start time.
    """
    command = [sys.executable, "-m", "tests.apps.serve.console.large_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        url, token = process.stdout.readline().split()
        yield Served(url=url, token=token, sessions=Sessions(HttpOptions()))
        process.terminate()


async def check_access(page: Page) -> None:
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    await page.evaluate(axe)
    findings = await page.evaluate("axe.run()")
    serious = [
        f"{violation['id']}: {violation['help']}: "
        f"{[node['html'][:200] for node in violation['nodes'][:3]]}"
        for violation in findings["violations"]
        if violation["impact"] in SERIOUS
    ]
    assert [] == serious
