"""User sign-in to upstream servers with a real authorization server, and attacks on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client, types
from starlette.applications import Starlette

from gateway.cli.commands.serve import serve_options
from gateway.config.mcp_json import parse_manifest
from gateway.errors import InvalidRequestError, SignInRequiredError
from gateway.gateway import Gateway
from gateway.mcp import HttpServer, OAuth
from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.serve.auth import BearerToken
from gateway.serve.authenticator import Authenticator
from gateway.serve.console import Sessions
from gateway.serve.guard import guarded
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.sign_in import sign_in_routes
from gateway.storage import open_tokens, with_token_store
from gateway.types import Access, Caller
from tests.conftest import OpenGateway
from tests.core.mcp.servers.authority import Authority
from tests.core.mcp.sign_in_place import Place, signing_place

ROOT = "http://127.0.0.1:8930"
PAGE = f"{ROOT}/sign-in/srv"
USE = frozenset({"use"})
ADA, EVE = (Caller(user=user, tenant="acme", scopes=USE) for user in ("ada", "eve"))
TOKENS = tuple(
    BearerToken.from_secret(name, f"token-of-{name}", caller)
    for name, caller in {
        "ada": ADA,
        "eve": EVE,
        "robot": replace(ADA, user=""),
        "guest": Caller(user="guest"),
    }.items()
)
HTTP = HttpOptions(tokens=TOKENS)
OPTIONS = Options(
    public_url=ROOT,
    host_key="k" * 32,
    upstream=UpstreamOptions(first_listing_s=120, connect_timeout_s=120),
)


@dataclass
class Team:
    """A gateway with an upstream server that requires user sign-in, and the gateway's replica."""

    place: Place
    gateways: tuple[Gateway, Gateway]

    def browser(self, replica: int = 0, sessions: Sessions | None = None) -> httpx2.AsyncClient:
        """Return an HTTP client of one of the replicas that keeps its cookies like a browser."""

        async def name_caller(token: str) -> Caller:
            return (await Authenticator(HTTP).authenticate([f"Bearer {token}"])).caller

        routes = sign_in_routes(self.gateways[replica], name_caller, sessions or Sessions(HTTP))
        app = guarded(Starlette(routes=routes), HTTP)
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=ROOT)

    async def agree(self, url: str) -> str:
        """Consent at the authorization server, and return the address to which it redirects."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            return str((await client.get(url)).headers["location"])

    async def begin(self, browser: httpx2.AsyncClient, token: str = "token-of-ada") -> str:
        """Enter a token on the sign-in page and consent.

        Return the address of the final redirect.
        """
        policy = (await browser.get(PAGE)).headers["referrer-policy"]
        # Browsers send this Origin (Fetch, "append a request Origin header").
        origin = {"Origin": "null" if policy == "no-referrer" else ROOT}
        data = {"token": token, "action": "sign_in"}
        response = await browser.post(PAGE, data=data, headers=origin)
        assert 303 == response.status_code, response.text
        return await self.agree(response.headers["location"])

    async def echo(self, caller: Caller, replica: int = 0) -> str:
        gateway = self.gateways[replica]
        return (await gateway.invoke("srv/echo", {"text": "hi"}, caller=caller)).text


@pytest.fixture
async def team(open_gateway: OpenGateway, tmp_path: Path) -> AsyncIterator[Team]:
    bridge = Bridge("giver")
    options = replace(OPTIONS, catalog_store_path=tmp_path / "catalog.sqlite3")
    async with signing_place(bridge, Authority(), tmp_path / "record", tmp_path / "x") as place:
        gateways = open_gateway(options=options), open_gateway(options=options)
        target = HttpServer(place.url, auth=OAuth(per_user=True))
        for gateway in gateways:
            gateway.add_server("srv", server=target, access=Access(scopes=USE))
        # The gateway needs its own sign-in to list the tools of the server.
        auth = with_token_store("srv", target, open_tokens(options, gateways[0].store)).auth
        assert isinstance(auth, OAuth)
        await replace(place, tokens=auth.tokens).sign_in()  # type: ignore[arg-type]  # it has some
        place.authority.seen.clear()
        yield Team(place, gateways)
    await asyncio.to_thread(bridge.close)


async def test_users_sign_in_and_out_at_any_replica(team: Team) -> None:
    with pytest.raises(SignInRequiredError) as form_page:
        await team.echo(ADA)
    browser, other = team.browser(), team.browser(1)
    page = await browser.get(form_page.value.address)
    back = await team.begin(browser)
    other.cookies = browser.cookies
    done = await other.get(back)
    answer = await team.echo(ADA, 1), await team.echo(ADA)
    with pytest.raises(SignInRequiredError):
        await team.echo(EVE)
    out = await browser.post(PAGE, data={"token": "token-of-ada", "action": "sign_out"})
    with pytest.raises(SignInRequiredError):
        await team.echo(ADA)

    assert PAGE == form_page.value.address
    assert "Sign in to srv" in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert (200, True) == (done.status_code, "ada is signed in to srv" in done.text)
    assert ("hi", "hi") == answer
    assert "signed out" in out.text
    assert back.startswith(f"{PAGE}/callback?")


async def test_browser_session_replaces_the_token_on_the_sign_in_page(team: Team) -> None:
    sessions = Sessions(HTTP)
    session = sessions.admit(TOKENS[0], 0)
    async with team.browser(sessions=sessions) as browser:
        browser.cookies.set("gateway_console_8930", session.key)
        page = await browser.get(PAGE)
        away = await browser.post(PAGE, data={"action": "sign_in", "csrf": session.csrf})
        done = await browser.get(await team.agree(away.headers["location"]))
        answer = await team.echo(ADA)

    assert ("password" in page.text, session.csrf in page.text) == (False, True)
    assert (200, "hi") == (done.status_code, answer)


async def test_sign_in_cannot_be_completed_in_another_browser(team: Team) -> None:
    """Eve sends Ada the address of the authorization server, or the address of its redirect.

    Ada's account at the server never becomes Eve's, and Eve's never becomes Ada's.
    """
    eve, ada = team.browser(), team.browser()
    lure = await team.begin(eve, "token-of-eve")
    ada_redirect = await team.begin(ada)
    state = parse_qs(urlsplit(lure).query)["state"][0]
    own_code = parse_qs(urlsplit(ada_redirect).query)["code"][0]

    refused = [
        await team.browser().get(lure),
        await ada.get(lure),
        await ada.get(f"{PAGE}/callback?code={own_code}&state={state}"),
        await eve.get(f"{PAGE}/callback?code={own_code}&state=guess"),
        await eve.get(lure.replace("/srv/", "/other/")),
    ]
    for caller in (ADA, EVE):
        with pytest.raises(SignInRequiredError):
            await team.echo(caller)

    assert [400] * 5 == [response.status_code for response in refused]
    assert "exchanged" not in team.place.authority.seen
    assert 200 == (await ada.get(ada_redirect)).status_code
    assert "hi" == await team.echo(ADA)
    # A response of the authorization server is accepted only once.
    assert 400 == (await ada.get(ada_redirect)).status_code


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("guess", {}, 401),
        ("token-of-robot", {}, 400),
        ("token-of-guest", {}, 400),
        ("token-of-ada", {"Origin": "https://evil.example"}, 403),
        ("token-of-ada", {"Host": "evil.example"}, 421),
    ],
    ids=["unknown token", "no user", "no scope", "a page of others", "a name of others"],
)
async def test_sign_in_starts_only_for_users_and_on_own_pages(
    team: Team, token: str, headers: dict[str, str], status: int
) -> None:
    response = await team.browser().post(
        PAGE, data={"token": token, "action": "sign_in"}, headers=headers
    )

    assert status == response.status_code
    assert "set-cookie" not in response.headers
    assert token not in response.text


async def test_server_sign_in_requires_the_current_scope_of_the_server(team: Team) -> None:
    gateway = team.gateways[0]
    address = await gateway.user_sign_ins.begin("srv", ADA)

    await gateway.catalog.change(["server:srv"], {"scopes": ["admin"]})
    await gateway.list_tools(caller=ADA)

    assert address
    with pytest.raises(InvalidRequestError, match="no user signs in"):
        await gateway.user_sign_ins.begin("srv", ADA)


async def test_sign_in_page_escapes_the_server_name_in_its_address(team: Team) -> None:
    page = await team.browser().get(f"{ROOT}/sign-in/%3Cscript%3E")
    told = await team.browser().post(
        f"{ROOT}/sign-in/%3Cscript%3E", data={"token": "token-of-ada", "action": "sign_in"}
    )

    assert (200, 400) == (page.status_code, told.status_code)
    assert "<script>" not in page.text + told.text


@pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026-07-28", "2025-11-25"])
async def test_client_that_can_open_addresses_signs_in_during_the_call(
    team: Team, mode: str
) -> None:
    """The call continues after the sign-in.

    Clients that cannot open addresses get the address in an error.
    """
    opened_addresses: list[types.ElicitRequestURLParams] = []

    async def elicit(context: object, params: types.ElicitRequestParams) -> Any:
        assert isinstance(params, types.ElicitRequestURLParams)
        opened_addresses.append(params)
        browser = team.browser()
        assert 200 == (await browser.get(await team.begin(browser))).status_code
        return types.ElicitResult(action="accept")

    server = mcp_server(team.gateways[0], expose="all", caller=ADA)
    async with Client(server, mode=mode) as plain:
        refused = await plain.call_tool("echo", {"text": "hi"})
    async with Client(server, mode=mode, elicitation_callback=elicit) as client:
        answer = await client.call_tool("echo", {"text": "hi"})

    assert PAGE in str(refused.content)
    assert "hi" in str(answer.content)
    assert [PAGE] == [item.url for item in opened_addresses]


@pytest.mark.parametrize(("host", "says"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_serve_derives_the_sign_in_address_or_warns(
    host: str, says: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"url": "https://srv.example/mcp", "auth": {"type": "oauth", "per_user": True}}
    manifest = parse_manifest({"mcpServers": {"srv": entry}})
    address = HttpOptions(host=host, port=8930, token="s3cret-of-the-operator")

    options = serve_options(manifest, frozenset(), None, address)

    assert ("" if says else ROOT) == options.public_url
    assert says is ("set GATEWAY_PUBLIC_URL" in capsys.readouterr().err)
