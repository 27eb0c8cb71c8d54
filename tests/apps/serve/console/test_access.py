"""Signing in, forms, and what is refused."""

from __future__ import annotations

import pytest

from gateway.gateway import Gateway
from gateway.serve.auth import BearerToken
from gateway.serve.console import MAX_SESSIONS, Sessions
from gateway.serve.http_options import HttpOptions
from gateway.types import Caller
from tests.apps.serve.console.catalogs import MARKUP
from tests.apps.serve.console.conftest import Open, Serve, check_access

SECRET = "s3cret-of-the-test"
READER = BearerToken.from_secret("reader", SECRET, Caller(scopes=frozenset({"billing"})))


async def test_without_the_launch_token_a_browser_is_asked_to_sign_in(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Other users of the machine reach the port too."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        client.headers.pop("authorization")
        page = await client.get("/ask", params={"q": "send a letter"})
        data = await client.get("/ask", params={"format": "json"})
        wrong = await client.get("", params={"token": "x" * 43})

    sign_in = "/console/sign-in?next=%2Fconsole%2Fask%3Fq%3Dsend%2Ba%2Bletter"
    assert (303, sign_in) == (page.status_code, page.headers["location"])
    assert [401, 401] == [data.status_code, wrong.status_code]


async def test_the_cookie_is_for_this_console_alone(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """No script reads it, no other site's request bears it, and it is not the token."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        answer = await client.get("", params={"token": served.token})

    cookie = answer.headers["set-cookie"]
    assert served.token not in cookie
    for part in ("HttpOnly", "SameSite=strict", "Path=/;", f"_{served.url.split(':')[-1]}="):
        assert part in cookie


async def test_a_form_of_another_session_changes_nothing(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """The one change that every console offers is to sign out."""
    served = await serve_console(empty_gateway)

    async with served.signed_in() as client:
        forged = await client.post("/sign-out", data={"csrf": "x" * 43})
        inside = await client.get("/ask")
        foreign = await client.post("/sign-out", headers={"Origin": "https://elsewhere.example"})
        out = await served.send(client, "/sign-out", {})
        after = await client.get("/ask")

    assert [403, 200, 403] == [forged.status_code, inside.status_code, foreign.status_code]
    assert ("/console/sign-in", 303) == (out.headers["location"], after.status_code)


@pytest.mark.parametrize(
    ("to", "landed"),
    [
        ("/console/ask?q=x", "/console/ask?q=x"),
        ("https://elsewhere.example", "/console"),
        ("//elsewhere.example", "/console"),
        ("/console/\\elsewhere.example", "/console"),
        ("/consolexyz", "/console"),
    ],
)
async def test_signing_in_leads_to_the_console_alone(
    empty_gateway: Gateway, serve_console: Serve, to: str, landed: str
) -> None:
    """A link must not send a browser elsewhere by way of us."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        fields = {"token": served.token}
        answer = await client.post("/sign-in", params={"next": to}, data=fields)

    assert (303, landed) == (answer.status_code, answer.headers["location"])


async def test_beyond_loopback_the_tokens_of_the_api_sign_in(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """There is no launch token then, and each sees what its scopes allow."""
    http = HttpOptions(port=0, tokens=(READER,))
    served = await serve_console(empty_gateway, http=http, token=SECRET)

    async with served.signed_in() as client:
        page = await client.get("/ask")

    assert "" == served.sessions.launch_token
    assert 200 == page.status_code


async def test_a_token_of_the_api_signs_nobody_in_by_an_address(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Proxies log addresses; and a link of its bearer would make a browser act as that caller."""
    http = HttpOptions(port=0, tokens=(READER,))
    served = await serve_console(empty_gateway, http=http, token=SECRET)

    async with served.client() as client:
        client.headers.pop("authorization")
        answers = [await client.get(path, params={"token": SECRET}) for path in ("", "/")]

    assert [(303, "/console/ask")] * 2 == [
        (each.status_code, each.headers["location"]) for each in answers
    ]
    assert [False, False] == ["set-cookie" in each.headers for each in answers]


async def test_a_caller_ends_nobody_elses_session() -> None:
    """However often it signs in."""
    other = BearerToken.from_secret("other", "x" * 20, Caller(user="ada"))
    sessions = Sessions(HttpOptions(tokens=(READER, other)))
    first, own = await sessions.begin("x" * 20), await sessions.begin(SECRET)

    for _ in range(MAX_SESSIONS):
        await sessions.begin(SECRET)

    assert first is sessions.find_by_cookie(first.key)
    assert None is sessions.find_by_cookie(own.key)


async def test_forms_that_take_long_to_read_are_refused(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Above all the one that needs no session: half a million fields held all up for 0.7 s."""
    served = await serve_console(empty_gateway)
    form = {"content-type": "application/x-www-form-urlencoded"}

    async with served.signed_in() as client:
        long = await client.post("/sign-in", content=b"%" * 10_000, headers=form)
        many = [
            await client.post("/ask/save", content=b"a&" * count, headers=form)
            for count in (1000, 500_000)
        ]

    assert 413 == long.status_code
    assert [403, 413] == [each.status_code for each in many]


async def test_pages_allow_nothing_from_elsewhere(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Nor a frame around them."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        headers = (await client.get("/ask")).headers
        missing = await client.get("/no-such-page")

    policy = headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert ("no-store", "nosniff") == (headers["cache-control"], headers["x-content-type-options"])
    assert 404 == missing.status_code


async def test_a_browser_signs_in_and_out_without_a_mouse(
    empty_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    """And axe finds nothing serious on these pages."""
    served = await serve_console(empty_gateway)
    page = await visit(served, "/ask")

    await page.get_by_role("button", name="Sign out").press("Enter")
    await page.wait_for_url("**/sign-in")
    await check_access(page)
    await page.get_by_label("Token").fill(served.token)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ask")
    await check_access(page)

    assert "Ask" == await page.get_by_role("heading", level=1).text_content()


async def test_what_is_asked_for_is_shown_as_text(
    empty_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    """A link may hold anything."""
    served = await serve_console(empty_gateway)

    page = await visit(served, f"/ask?q={MARKUP}")

    assert await page.evaluate("window.broken") is None
    assert MARKUP == await page.get_by_role("searchbox").input_value()
