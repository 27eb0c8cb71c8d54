"""Sign-in, sessions and CSRF protection of the console."""

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


async def test_console_requires_a_sign_in(empty_gateway: Gateway, serve_console: Serve) -> None:
    """Other users of the machine can reach the console's port too."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        client.headers.pop("authorization")
        page = await client.get("/ask", params={"q": "send a letter"})
        data = await client.get("/ask", params={"format": "json"})
        wrong = await client.get("", params={"token": "x" * 43})

    sign_in = "/console/sign-in?next=%2Fconsole%2Fask%3Fq%3Dsend%2Ba%2Bletter"
    assert (303, sign_in) == (page.status_code, page.headers["location"])
    assert [401, 401] == [data.status_code, wrong.status_code]


async def test_session_cookie_is_restricted_to_this_console(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        answer = await client.get("", params={"token": served.token})

    cookie = answer.headers["set-cookie"]
    assert served.token not in cookie
    for part in ("HttpOnly", "SameSite=strict", "Path=/;", f"_{served.url.split(':')[-1]}="):
        assert part in cookie


async def test_form_of_another_session_is_refused(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
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
async def test_sign_in_redirects_only_to_the_console(
    empty_gateway: Gateway, serve_console: Serve, to: str, landed: str
) -> None:
    """Otherwise a link to the sign-in page could lead to another site."""
    served = await serve_console(empty_gateway)

    async with served.client() as client:
        fields = {"token": served.token}
        answer = await client.post("/sign-in", params={"next": to}, data=fields)

    assert (303, landed) == (answer.status_code, answer.headers["location"])


async def test_console_accepts_api_tokens_instead_of_a_launch_token(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    http = HttpOptions(port=0, tokens=(READER,))
    served = await serve_console(empty_gateway, http=http, token=SECRET)

    async with served.signed_in() as client:
        page = await client.get("/ask")

    assert "" == served.sessions.launch_token
    assert 200 == page.status_code


async def test_api_token_in_the_address_does_not_sign_in(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Proxies log addresses, and an attacker's link could sign a browser in as the attacker."""
    http = HttpOptions(port=0, tokens=(READER,))
    served = await serve_console(empty_gateway, http=http, token=SECRET)

    async with served.client() as client:
        client.headers.pop("authorization")
        answers = [await client.get(path, params={"token": SECRET}) for path in ("", "/")]

    assert [(303, "/console/ask")] * 2 == [
        (response.status_code, response.headers["location"]) for response in answers
    ]
    assert [False, False] == ["set-cookie" in response.headers for response in answers]


async def test_many_sign_ins_end_only_sessions_of_the_same_caller() -> None:
    other = BearerToken.from_secret("other", "x" * 20, Caller(user="ada"))
    sessions = Sessions(HttpOptions(tokens=(READER, other)))
    first, other_session = await sessions.begin("x" * 20), await sessions.begin(SECRET)

    for _ in range(MAX_SESSIONS):
        await sessions.begin(SECRET)

    assert first is sessions.find_by_cookie(first.key)
    assert None is sessions.find_by_cookie(other_session.key)


async def test_oversized_forms_are_refused(empty_gateway: Gateway, serve_console: Serve) -> None:
    """Half a million fields in the sign-in form blocked the server for 0.7 s."""
    served = await serve_console(empty_gateway)
    form = {"content-type": "application/x-www-form-urlencoded"}

    async with served.signed_in() as client:
        long = await client.post("/sign-in", content=b"%" * 10_000, headers=form)
        many = [
            await client.post("/ask/save", content=b"a&" * count, headers=form)
            for count in (1000, 500_000)
        ]

    assert 413 == long.status_code
    assert [403, 413] == [response.status_code for response in many]


async def test_security_headers_forbid_foreign_content_and_frames(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
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


async def test_sign_in_and_sign_out_work_with_the_keyboard(
    empty_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
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


async def test_console_escapes_the_query(
    empty_gateway: Gateway, serve_console: Serve, visit: Open
) -> None:
    served = await serve_console(empty_gateway)

    page = await visit(served, f"/ask?q={MARKUP}")

    assert await page.evaluate("window.broken") is None
    assert MARKUP == await page.get_by_role("searchbox").input_value()
