"""Sign-in of people at a real identity provider, and attacks on it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response

from gateway.gateway import Gateway
from gateway.options import Options
from gateway.serve.account import SealedCookie, account_routes
from gateway.serve.auth import BearerToken
from gateway.serve.console import ConsoleOptions, Sessions
from gateway.serve.console.app import console_routes
from gateway.serve.guard import Guard, guarded
from gateway.serve.http_options import HttpOptions
from gateway.serve.identity import Issuer
from gateway.serve.sign_in import sign_in_routes
from gateway.types import Caller
from tests.apps.serve.conftest import RESOURCE, SECRET, RealProvider
from tests.conftest import OpenGateway

ROOT = RESOURCE.removesuffix("/mcp")
OPTIONS = Options(host_key="k" * 32)
TO = "/console/catalog?q=pay&kind=tool"
LONG = "/console/" + "é" * 600
"""Path that is too long for an encrypted cookie."""


def http_options(
    issuer: str, *, resource: str = RESOURCE, port: int = 8930, **own: Any
) -> HttpOptions:
    """Return options of a server that accepts *issuer* and offers browser sign-in there."""
    sign_in = {"client_id": "browser", "client_secret": SECRET, **own}
    groups = {"platform": ["catalog:write"]}
    entry = {"issuer": issuer, "sign_in": sign_in, "groups": groups}
    return HttpOptions(port=port, issuers=(Issuer.model_validate(entry),), resource=resource)


@dataclass
class Site:
    """A gateway whose requests need no network. Its identity provider is a real server."""

    app: Guard
    sessions: Sessions
    issuer: str

    def browser(self) -> httpx2.AsyncClient:
        """Return an HTTP client that keeps its cookies like a browser."""
        transports = {ROOT: httpx2.ASGITransport(self.app)}
        return httpx2.AsyncClient(base_url=ROOT, mounts=transports, trust_env=False)

    def begin(self, to: str = TO) -> str:
        """Return the address of a sign-in that returns to *to*."""
        return str(httpx2.URL("/account/sign-in", params={"issuer": self.issuer, "to": to}))


def site_of(gateway: Gateway, http: HttpOptions) -> Site:
    sessions = Sessions(http)

    async def name_caller(token: str) -> Caller:
        return (await sessions.authenticator.authenticate([f"Bearer {token}"])).caller

    routes = [
        *account_routes(sessions, OPTIONS),
        *sign_in_routes(gateway, name_caller, sessions),
        *console_routes(gateway, ConsoleOptions(), sessions),
    ]
    app = guarded(Starlette(routes=routes), http, has_console=True)
    return Site(app, sessions, next((issuer.issuer for issuer in http.issuers), ""))


@pytest.fixture
def site(open_gateway: OpenGateway, real_provider: RealProvider) -> Site:
    return site_of(open_gateway(), http_options(real_provider.url))


def links_of(answer: httpx2.Response) -> list[str]:
    return [unescape(address) for address in re.findall('href="([^"#]+)"', answer.text)]


async def test_person_signs_in_returns_to_the_page_and_signs_out(
    site: Site, real_provider: RealProvider
) -> None:
    async with site.browser() as browser:
        sign_in_page = await browser.get(TO)
        page = await browser.get(sign_in_page.headers["location"])
        begin = next(cookie for cookie in links_of(page) if cookie.startswith("/account/"))
        away = await browser.get(begin)
        back = await real_provider.sign_in(browser, away.headers["location"], "ada")
        done = await browser.get(back)
        landing = await browser.get(TO)
        cookies = done.headers.get_list("set-cookie")
        sessions = (
            site.sessions.find_by_cookie(cookie.value or "") for cookie in browser.cookies.jar
        )
        session = next(filter(None, sessions))
        upstream = await browser.get("/sign-in/srv")
        out = await browser.post("/console/sign-out", data={"csrf": session.csrf})
        signed_out_page = await browser.get(out.headers["location"])
        after = [await browser.get(TO), await browser.get("/sign-in/srv")]

    assert (303, 200, 303, 200) == (
        sign_in_page.status_code,
        page.status_code,
        away.status_code,
        done.status_code,
    )
    assert f'content="0;url={TO.replace("&", "&amp;")}"' in done.text
    assert (200, "Sign out") == (
        landing.status_code,
        "Sign out" if "Sign out" in landing.text else "",
    )
    assert f"{site.issuer}#ada" == session.caller.user
    assert session.caller.holds({"catalog:write"})
    assert session.caller.token is not None
    state = parse_qs(urlsplit(back).query)
    for secret in (*state["code"], *state["state"], session.caller.token.reveal(), SECRET):
        assert secret not in done.text + landing.text + str(cookies)
    assert any(
        cookie.startswith("gateway_console_") and cookie.endswith("; Path=/; SameSite=strict")
        for cookie in cookies
    )
    assert all("HttpOnly" in cookie for cookie in cookies)
    assert "no-referrer" == done.headers["referrer-policy"]
    assert f"signed in here as {site.issuer}#ada" in upstream.text
    assert f"{site.issuer}/session/end?client_id=browser" in links_of(signed_out_page)
    assert (303, False) == (after[0].status_code, "signed in here" in after[1].text)


async def test_response_is_accepted_once_and_only_in_its_browser(
    site: Site, real_provider: RealProvider
) -> None:
    """Eve sends Ada a response of the provider, or uses one of Ada's responses. Both fail."""
    async with site.browser() as ada, site.browser() as eve:
        addresses = [
            (await response.get(site.begin())).headers["location"] for response in (ada, eve)
        ]
        before = dict(ada.cookies)
        ada_redirect = await real_provider.sign_in(ada, addresses[0], "ada")
        lure = await real_provider.sign_in(eve, addresses[1], "eve")
        code = parse_qs(urlsplit(ada_redirect).query)["code"][0]
        refused = [
            await site.browser().get(ada_redirect),
            await ada.get(lure),
            await eve.get(ada_redirect),
            await ada.get(ada_redirect.replace("state=", "state=x")),
            await ada.get(f"/account/callback?code={code}"),
        ]
        first = await ada.get(ada_redirect)
        async with site.browser() as again:
            again.cookies.update(before)
            refused += [await again.get(ada_redirect), await ada.get(ada_redirect)]

    assert [400] * 7 == [response.status_code for response in refused]
    assert [False] * 7 == ["set-cookie" in response.headers for response in refused]
    assert 200 == first.status_code
    assert code not in "".join(response.text for response in refused)


async def test_replicas_with_a_host_key_share_sign_ins(
    site: Site, open_gateway: OpenGateway, real_provider: RealProvider
) -> None:
    other = site_of(open_gateway(), http_options(real_provider.url))
    async with site.browser() as browser, other.browser() as moved:
        away = await browser.get(site.begin())
        back = await real_provider.sign_in(browser, away.headers["location"], "ada")
        for response in browser.cookies.jar:
            moved.cookies.jar.set_cookie(response)
        done = await moved.get(back)
        landing, transports = await moved.get(TO), await browser.get(back)

    assert [200, 200, 503] == [response.status_code for response in (done, landing, transports)]


async def test_code_is_accepted_once_and_id_token_is_not_an_access_token(
    site: Site, real_provider: RealProvider
) -> None:
    """An attacker may have the code from a browser, or an ID token from another application."""
    sign_in = site.sessions.authenticator.sign_ins[site.issuer]
    url, pending = await sign_in.begin()
    async with site.browser() as browser:
        back = await real_provider.sign_in(browser, url, "ada")
        code = parse_qs(urlsplit(back).query)["code"][0]
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": sign_in.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": RESOURCE,
        }
        auth = ("browser", SECRET)
        tokens = (await browser.post(f"{site.issuer}/token", data=fields, auth=auth)).json()
        answers = [
            await browser.get("/mcp", headers={"Authorization": f"Bearer {tokens[name]}"})
            for name in ("id_token", "access_token")
        ]
        url, other = await sign_in.begin()
        query = parse_qs(urlsplit(url).query)
        replayed = f"/account/callback?code={code}&state={query['state'][0]}&iss={site.issuer}"
        cookie(browser, pending=other, to=TO, until=time.time() + 60)
        again = await browser.get(replayed)

    # This application has no route for /mcp.
    assert [401, 404] == [response.status_code for response in answers]
    assert "for another audience" in answers[0].json()["detail"]
    assert (503, False) == (again.status_code, code in again.text)


def cookie(browser: httpx2.AsyncClient, *, pending: Any, to: str, until: float) -> None:
    """Set a sign-in cookie in *browser*. The host can do this because it has the key."""
    response = Response()
    content = {
        "pending": {
            name: getattr(pending, name) for name in ("issuer", "state", "nonce", "verifier")
        },
        "to": to,
        "until": until,
    }
    SealedCookie("gateway_account", OPTIONS, 600).set(response, content, secure=False)
    name, _, value = response.headers["set-cookie"].partition(";")[0].partition("=")
    browser.cookies.set(name, value, domain="127.0.0.1")


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/console/\\evil.example", "/mcp", "", LONG]
)
async def test_sign_in_returns_only_to_pages_of_this_server(
    site: Site, real_provider: RealProvider, to: str
) -> None:
    async with site.browser() as browser:
        away = await browser.get(site.begin(to))
        back = await real_provider.sign_in(browser, away.headers["location"], "ada")
        done = await browser.get(back)

    assert 'content="0;url=/console">' in done.text
    assert "evil" not in done.text
    assert len(away.headers["set-cookie"]) < 4096


async def test_failed_sign_in_shows_a_page_with_advice(
    site: Site, open_gateway: OpenGateway
) -> None:
    sign_in = site.sessions.authenticator.sign_ins[site.issuer]
    _, pending = await sign_in.begin()
    denied = f"/account/callback?error=access_denied&error_description=<b>&state={pending.state}"
    denied += f"&iss={site.issuer}"
    down = site_of(open_gateway(), http_options("http://127.0.0.1:9"))
    async with site.browser() as browser, down.browser() as other:
        cookie(browser, pending=pending, to=TO, until=time.time() - 1)
        late = await browser.get(denied)
        cookie(browser, pending=pending, to=TO, until=time.time() + 60)
        refused = await browser.get(denied)
        unknown = await browser.get("/account/sign-in?issuer=https://evil.example")
        unreachable = await other.get(down.begin())

    answers = [late, refused, unknown, unreachable]
    assert [400, 400, 404, 503] == [response.status_code for response in answers]
    assert "Open the page that you want again" in late.text
    assert "did not sign you in" in refused.text
    assert "<b>" not in refused.text
    assert [site.begin(), TO] == [links_of(refused)[0], links_of(unreachable)[0]]
    assert "127.0.0.1:9 cannot be reached" in unreachable.text


async def test_sign_in_without_a_required_scope_names_the_scope(
    open_gateway: OpenGateway, real_provider: RealProvider
) -> None:
    http = http_options(real_provider.url)
    (issuer,) = http.issuers
    needs = issuer.model_copy(update={"required_scopes": frozenset({"tools.own"})})
    site = site_of(open_gateway(), replace(http, issuers=(needs,)))
    async with site.browser() as browser:
        away = await browser.get(site.begin())
        back = await real_provider.sign_in(browser, away.headers["location"], "ada")
        told = await browser.get(back)

    assert (403, False) == (told.status_code, "gateway_console" in str(told.headers))
    assert "but this needs a token with the scopes 'tools.own'. Ask the" in unescape(told.text)


async def test_browser_session_ends_with_its_token(site: Site) -> None:
    bearer = BearerToken(name="ada", caller=Caller(user="ada"), expires_at=time.time() + 60)
    lasting = site.sessions.admit(bearer, 0)
    ended = site.sessions.admit(replace(bearer, expires_at=time.time() - 1), 0)
    pages = []
    begun_before_a_change = site.sessions.admit(bearer, -1)
    for session in (lasting, ended, begun_before_a_change):
        async with site.browser() as browser:
            browser.cookies.set("gateway_console_8930", session.key)
            pages += [await browser.get("/sign-in/srv"), await browser.get("/console/ask")]

    assert [True, True, *[False] * 4] == ["csrf" in response.text for response in pages]


async def test_cookies_behind_tls_are_secure_and_host_only(
    open_gateway: OpenGateway, real_provider: RealProvider
) -> None:
    """The proxy terminates TLS, so requests reach the gateway without TLS."""
    back = "https://tools.example/account/callback"
    site = site_of(open_gateway(), http_options(real_provider.url, redirect_uri=back))
    async with site.browser() as browser:
        away = await browser.get(site.begin())

    cookie_set = away.headers["set-cookie"]
    async with site.browser() as browser:
        # A sibling domain could set this cookie in another browser.
        browser.cookies.set("gateway_account", cookie_set.partition(";")[0].partition("=")[2])
        state = parse_qs(urlsplit(away.headers["location"]).query)["state"][0]
        lure = await browser.get(f"/account/callback?state={state}&error=access_denied")

    assert "in the last ten minutes" in lure.text
    assert cookie_set.startswith("__Host-gateway_account=")
    for part in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert part in cookie_set
    assert [back] == parse_qs(urlsplit(away.headers["location"]).query)["redirect_uri"]


async def test_cookie_of_a_sibling_domain_is_ignored(
    open_gateway: OpenGateway, real_provider: RealProvider
) -> None:
    """Otherwise Ada would sign in to upstream servers with the attacker's session."""
    token = BearerToken.from_secret("eve", "of-eve-0123456789", Caller(user="eve"))
    gateway = open_gateway(options=Options(public_url="https://tools.example"))
    tls_options = http_options(
        real_provider.url, redirect_uri="https://tools.example/account/callback"
    )
    pages, names = [], []
    for http in (replace(tls_options, tokens=(token,)), HttpOptions(tokens=(token,))):
        site = site_of(gateway, http)
        async with site.browser() as eve, site.browser() as ada:
            signed_in = await eve.post("/console/sign-in", data={"token": "of-eve-0123456789"})
            name, _, value = signed_in.headers["set-cookie"].partition(";")[0].partition("=")
            names.append(name)
            ada.cookies.set("gateway_console_8930", value)
            pages.append(await ada.get("/sign-in/srv"))
            ada.cookies.clear()
            pages.append(await ada.get("/sign-in/srv", headers={"Cookie": f"{name}={value}"}))

    assert ["__Host-gateway_console_8930", "gateway_console_8930"] == names
    assert [False, True, False, False] == ["signed in here" in response.text for response in pages]


async def test_console_session_does_not_change_pages_for_a_single_user(
    open_gateway: OpenGateway,
) -> None:
    site = site_of(open_gateway(), HttpOptions())
    session = await site.sessions.begin(site.sessions.launch_token)
    async with site.browser() as browser:
        pages = [await browser.get("/sign-in/srv")]
        browser.cookies.set("gateway_console_8930", session.key)
        pages.append(await browser.get("/sign-in/srv"))

    assert pages[0].text == pages[1].text
    assert "password" not in pages[0].text


async def test_server_sign_in_from_a_session_requires_its_csrf_token(site: Site) -> None:
    session = site.sessions.admit(BearerToken(name="ada", caller=Caller(user="ada")), 0)
    fields = {"action": "sign_in"}
    async with site.browser() as browser:
        browser.cookies.set("gateway_console_8930", session.key)
        forged = [
            await browser.post("/sign-in/srv", data=fields),
            await browser.post("/sign-in/srv", data=fields | {"csrf": "x" * 43}),
        ]
        response = await browser.post("/sign-in/srv", data=fields | {"csrf": session.csrf})
        signed_out_page = await browser.post(
            "/sign-in/srv", data={"action": "leave", "csrf": session.csrf}
        )
        nobody = await browser.post("/sign-in/srv", data=fields)

    assert [403, 403] == [item.status_code for item in forged]
    assert "no user signs in to" in unescape(response.text)
    assert (303, 401) == (signed_out_page.status_code, nobody.status_code)
