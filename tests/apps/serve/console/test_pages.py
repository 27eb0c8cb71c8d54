"""Properties of all console pages, on each catalog."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.async_api import Page, ViewportSize

from gateway.gateway import Gateway
from gateway.serve import console
from gateway.serve.console import SpanRing
from gateway.serve.console.app import PAGES, PLACES
from gateway.serve.http_options import HttpOptions
from tests.apps.serve.console.conftest import Open, Serve, Served, check_access
from tests.apps.serve.console.test_access import READER, SECRET

PATHS = [place.path for place in PLACES]
PHONE: ViewportSize = {"width": 360, "height": 740}
WIDE: ViewportSize = {"width": 1600, "height": 900}
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def check_layout(page: Page) -> None:
    """Fail if a page is wider than its window, on a phone or on a wide screen."""
    for size in (PHONE, WIDE):
        await page.set_viewport_size(size)
        assert 0 == await page.evaluate(OVERFLOW), f"{page.url} at {size}"


@pytest.mark.parametrize("which", ["empty", "small", "hostile", "large"])
async def test_console_pages_are_accessible_on_every_catalog(
    which: str, request: pytest.FixtureRequest, serve_console: Serve, visit: Open
) -> None:
    if which == "large":
        served: Served = request.getfixturevalue("large_console")
    else:
        served = await serve_console(request.getfixturevalue(f"{which}_gateway"))
    queries = [f"{path}?q=e-mail&text=e-mail" for path in PATHS]
    scheme = "dark" if which in ("small", "hostile") else "light"
    page = await visit(served, PATHS[0], color_scheme=scheme)

    for path in queries:
        await page.goto(f"{served.url}/console{path}")
        await check_layout(page)
        await check_access(page)

        assert await page.evaluate("window.broken") is None
        assert 1 == await page.get_by_role("heading", level=1).count()


async def test_console_pages_work_without_scripts(
    small_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    served = await serve_console(small_gateway)
    page = await visit(served, PATHS[0], java_script_enabled=False)

    for path, place in zip(PATHS, PLACES, strict=True):
        await page.get_by_role("navigation").get_by_role("link", name=place.title).click()
        assert path in page.url
        assert await served.data(path)


@pytest.mark.parametrize("path", ["/ask", "/catalog", "/graph", "/activity"])
async def test_console_pages_search_while_the_user_types(
    path: str, small_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    served = await serve_console(small_gateway, spans=SpanRing())
    page = await visit(served, path)
    await page.evaluate("window.stayed = true")

    await page.get_by_role("searchbox").first.press_sequentially("mail")
    await page.wait_for_url(re.compile(r"[?&](q|text)=mail"))

    assert await page.evaluate("window.stayed")


async def test_console_pages_require_their_scopes(
    small_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(
        small_gateway, http=HttpOptions(port=0, tokens=(READER,)), token=SECRET
    )
    async with served.signed_in() as client:
        answers = {place: await client.get(place.path) for place in PLACES}

    for (place, answer), other in product(answers.items(), PLACES):
        assert (403 if place.right else 200) == answer.status_code
        assert (f'href="/console{other.path}"' in answer.text) == (not other.right)
    assert len(PAGES) == len(answers)


def test_console_stays_small() -> None:
    """Consoles tend to grow, so Python files and templates share one budget of lines."""
    folder = Path(console.__file__).parent
    files = [*folder.rglob("*.py"), *folder.rglob("*.html")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    print(f"{lines} lines of Python and templates")  # noqa: T201  (a figure that is wanted)

    assert lines <= 3500
