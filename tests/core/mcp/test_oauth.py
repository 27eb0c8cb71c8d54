"""Signing in to servers, against a real authorization server on the loopback."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp.client.auth import AuthorizationCodeResult

from gateway.errors import ConfigError, UpstreamError, UpstreamTimeoutError
from gateway.mcp import HttpServer, OAuth
from gateway.mcp.oauth import LoopbackSignIn, listen_for_sign_in
from gateway.mcp.session import sign_in
from gateway.runtime.background_loop import Bridge
from gateway.storage import FileTokens
from tests.core.mcp.conftest import PATIENT, lines, noted, placed
from tests.core.mcp.servers.authority import BY_HAND, SECRET, Authority
from tests.core.mcp.sign_in_place import Place, signing_place

pytestmark = pytest.mark.usefixtures("discreet")


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def place(
    bridge: Bridge, authority: Authority, record: Path, tmp_path: Path
) -> AsyncIterator[Place]:
    file = tmp_path / "tokens" / "srv.json"
    async with signing_place(bridge, authority, record, file) as found:
        yield found


async def test_a_server_that_wants_a_sign_in_says_how_and_asks_nobody(place: Place) -> None:
    """A search must not open a browser, and a refused key is no failure of the server. A file that
    is no record is as none.
    """
    place.tokens.write('{"tokens": 7}')
    async with place.source() as source:
        for _ in range(7):
            with pytest.raises(UpstreamError, match=r"HTTP 401: sign in with: gateway login srv$"):
                await source.list_tools()
        is_open = source.supervisor.breaker.is_open

    assert ([], False) == (place.authority.seen, is_open)


async def test_one_sign_in_lasts(place: Place) -> None:
    """Found, registered, asked for with PKCE, kept: the next start needs nobody."""
    listing = await place.sign_in()
    async with place.source() as source:
        again = await source.list_tools()
        answer = await source.call("echo", {"text": "hi"}, tool_id="t")

    assert [tool.name for tool in listing.tools] == [tool.name for tool in again.tools]
    assert "hi" == answer.text
    assert ["registered", "authorized", "exchanged"] == place.authority.seen
    assert 0o600 == stat.S_IMODE(place.file.stat().st_mode)
    assert 0o700 == stat.S_IMODE(place.file.parent.stat().st_mode)
    # The server's own headers never reach the authorization server, which may be somebody else's.
    assert place.authority.headers
    assert "x-key" not in place.authority.headers


async def test_a_sign_in_that_fails_leaves_the_tokens_that_work(place: Place) -> None:
    """The new ones must be of use first."""
    await place.sign_in()
    before = place.tokens.read()
    with pytest.raises(UpstreamTimeoutError, match="list_timeout_s"):
        await place.sign_in(options=replace(PATIENT, list_timeout_s=0.001))

    assert 2 == place.authority.seen.count("exchanged")
    assert before == place.tokens.read()


@pytest.mark.parametrize("life_s", [1, 3600])
async def test_a_token_that_ran_out_or_was_revoked_is_refreshed_once_for_all(
    place: Place, life_s: int
) -> None:
    """After a restart, at an authorization server on another address; by one request."""
    place.authority.life_s = life_s
    await place.sign_in()
    place.authority.life_s = 3600
    place.authority.tokens.clear()
    async with place.source() as source:
        answers = await asyncio.gather(
            *(source.call("echo", {"text": str(number)}, tool_id="t") for number in range(10))
        )

    assert [str(number) for number in range(10)] == [answer.text for answer in answers]
    assert 1 == place.authority.seen.count("refreshed")
    assert 1 == place.authority.seen.count("authorized")


@pytest.mark.parametrize("life_s", [1, 3600])
async def test_where_nothing_can_be_refreshed_somebody_must_sign_in_again(
    place: Place, life_s: int
) -> None:
    """And the breaker stays closed: the server answers."""
    place.authority.life_s = life_s
    await place.sign_in()
    place.authority.tokens.clear()
    place.authority.refreshes = False
    async with place.source() as source:
        with pytest.raises(UpstreamError, match="gateway login srv") as raised:
            await source.list_tools()
        is_open = source.supervisor.breaker.is_open
    await place.sign_in()
    async with place.source() as source:
        listing = await source.list_tools()

    assert ("authorization", False, 4) == (raised.value.kind, is_open, len(listing.tools))
    assert "SECRET" not in str(raised.value)


async def test_a_token_without_a_refresh_is_an_error_after_one_request(place: Place) -> None:
    """Nothing is sent twice that must fail twice."""
    await place.sign_in()
    record = json.loads(place.file.read_text("utf-8"))
    del record["tokens"]["refresh_token"]
    place.tokens.write(json.dumps(record))
    place.authority.tokens.clear()
    async with place.source() as source:
        with pytest.raises(UpstreamError, match="gateway login srv"):
            await source.list_tools()

    assert "refreshed" not in place.authority.seen


async def test_a_new_token_of_another_process_is_taken_up(place: Place) -> None:
    """Two gateways share one file; the second must not spend a refresh that is used up."""
    await place.sign_in()
    async with place.source() as source:
        await source.list_tools()
        place.authority.tokens.clear()
        place.authority.renewals.clear()
        await place.sign_in()
        listing = await source.list_tools()

    assert 4 == len(listing.tools)
    assert "refreshed" not in place.authority.seen


async def test_calls_run_side_by_side(place: Place) -> None:
    """The SDK's own flow would let the second wait for the first, which never ends."""
    await place.sign_in()
    async with place.source() as source:
        waiting = asyncio.create_task(source.call("wait", {}, tool_id="t"))
        await noted(place.record, "started")
        answer = await source.call("echo", {"text": "meanwhile"}, tool_id="t")
        waiting.cancel()
        await asyncio.wait({waiting})

    assert "meanwhile" == answer.text
    assert "started" in lines(place.record)


async def test_no_is_an_answer(place: Place) -> None:
    """With its code, and without the words of the authorization server."""
    place.authority.refuses = True

    with pytest.raises(UpstreamError, match=r"refused \(access_denied\)") as raised:
        await place.sign_in()

    assert "authorization" == raised.value.kind


async def test_the_host_may_choose_the_scope_and_name_the_client_by_an_address(
    place: Place,
) -> None:
    """Less than the server would like is the host's right; a named client is not registered."""
    await place.sign_in(OAuth(client_metadata_url="https://client.example/gateway.json"))
    named = tuple(place.authority.seen)
    await place.sign_in(OAuth(scope="read write"))

    assert ("authorized", "exchanged") == named
    assert [["read"], ["read", "write"]] == place.authority.scopes


async def test_a_client_can_be_registered_by_hand(place: Place) -> None:
    """Its secret comes from a reference, goes with the request, and is not kept again."""
    auth = OAuth(client_id=BY_HAND, client_secret=SECRET)
    place.authority.life_s = 1
    await place.sign_in(auth)
    async with place.source(auth) as source:
        await source.list_tools()

    assert ["authorized", "exchanged", "refreshed"] == place.authority.seen[:3]
    assert SECRET not in place.file.read_text("utf-8")


async def test_a_server_that_registers_nobody_says_what_helps(
    place: Place, bridge: Bridge, record: Path, tmp_path: Path
) -> None:
    """Then somebody has to register the gateway by hand."""
    closed = Authority(registers=False)
    async with (
        placed(bridge, closed.app) as giver,
        placed(bridge, lambda port: closed.guarded(port, giver, record)) as port,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        other = replace(place, authority=closed, url=url, tokens=FileTokens(tmp_path / "x"))
        with pytest.raises(UpstreamError, match="give auth a client_id"):
            await other.sign_in()


async def test_a_server_elsewhere_cannot_send_a_browser_into_this_machine(place: Place) -> None:
    """Its authorization server may be a lie."""
    elsewhere = HttpServer("http://mcp.example.org/mcp", auth=place.target().auth)

    with pytest.raises(ConfigError, match="may not be asked without TLS"):
        await sign_in("srv", elsewhere, PATIENT, print)


async def asking() -> LoopbackSignIn:
    callback = LoopbackSignIn("srv", 7, lambda _url: None)
    await callback.show("https://giver/authorize?state=ours")
    return callback


async def test_an_answer_is_taken_once() -> None:
    """With the issuer, which the SDK compares (RFC 9207)."""
    callback = await asking()
    first = callback.receive("/callback?code=c&state=ours&iss=https%3A%2F%2Fgiver")
    second = callback.receive("/callback?code=other&state=ours")

    result = AuthorizationCodeResult(code="c", state="ours", iss="https://giver")
    assert result == await callback.wait()
    assert ("200", "400") == (first[0][:3], second[0][:3])


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/callback?code=c&state=theirs", "400"),
        ("/callback?code=c", "400"),
        ("/favicon.ico", "404"),
        ("", "404"),
    ],
)
async def test_what_another_page_sends_counts_for_nothing(target: str, status: str) -> None:
    """Any page can send a browser to this machine; the sign-in goes on."""
    callback = await asking()
    refused, taken = (callback.receive(each) for each in (target, "/callback?code=c&state=ours"))

    assert (status, "200") == (refused[0][:3], taken[0][:3])
    early = LoopbackSignIn("srv", 7, lambda _url: None)
    assert "400" == early.receive("/callback?code=c&state=")[0][:3]


@pytest.mark.parametrize(
    ("query", "reason"),
    [("error=access_denied", "access_denied"), ("error=<b>", "no code"), ("x=1", "no code")],
)
async def test_a_refusal_is_named_by_its_code(query: str, reason: str) -> None:
    """Words of a stranger are not repeated."""
    callback = await asking()
    callback.receive(f"/callback?{query}&state=ours")

    with pytest.raises(UpstreamError, match=rf"refused \({reason}\)"):
        await callback.wait()


async def test_a_line_that_is_no_request_is_answered_and_a_port_is_had_once() -> None:
    """Port scanners exist; the person chose the port, for it is registered."""
    async with listen_for_sign_in("srv", lambda _url: None) as callback:
        port = urlsplit(callback.address).port
        assert port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 20_000 + b"\n")
        answer = await reader.readline()
        writer.close()
        with pytest.raises(ConfigError, match="choose another callback_port"):
            async with listen_for_sign_in("srv", lambda _url: None, port=port):
                pass

    assert answer.startswith(b"HTTP/1.1 404")


async def test_a_server_that_does_not_sign_in_says_what_to_add() -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigError, match='add "auth"'):
        await sign_in("srv", HttpServer("http://127.0.0.1:9/mcp"), PATIENT, print)
