"""Sign-in with OAuth against a real authorization server on this machine."""

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
from tests.core.mcp.conftest import PATIENT, lines, placed, wait_for_lines
from tests.core.mcp.servers.authority import BY_HAND, SECRET, Authority
from tests.core.mcp.sign_in_place import Place, signing_place

pytestmark = pytest.mark.usefixtures("no_secrets_in_logs")


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
async def place(
    bridge: Bridge, authority: Authority, record: Path, tmp_path: Path
) -> AsyncIterator[Place]:
    """Running server with OAuth, and its authorization server."""
    file = tmp_path / "tokens" / "srv.json"
    async with signing_place(bridge, authority, record, file) as place:
        yield place


async def test_listing_without_a_sign_in_names_the_login_command_and_asks_no_person(
    place: Place,
) -> None:
    """A search must not open a browser, and a refusal must not open the circuit breaker. An
    unreadable sign-in record counts as missing.
    """
    place.tokens.write('{"tokens": 7}')
    async with place.source() as source:
        for _ in range(7):
            with pytest.raises(UpstreamError, match=r"HTTP 401: sign in with: gateway login srv$"):
                await source.list_tools()
        is_open = source.supervisor.breaker.is_open

    assert ([], False) == (place.authority.seen, is_open)


async def test_tokens_of_a_sign_in_are_used_at_the_next_start(place: Place) -> None:
    """The sign-in includes discovery, registration and PKCE."""
    listing = await place.sign_in()
    async with place.source() as source:
        again = await source.list_tools()
        answer = await source.call("echo", {"text": "hi"}, tool_id="t")

    assert [tool.name for tool in listing.tools] == [tool.name for tool in again.tools]
    assert "hi" == answer.text
    assert ["registered", "authorized", "exchanged"] == place.authority.seen
    assert 0o600 == stat.S_IMODE(place.file.stat().st_mode)
    assert 0o700 == stat.S_IMODE(place.file.parent.stat().st_mode)
    # The authorization server may belong to someone else, so it must not get the server's headers.
    assert place.authority.headers
    assert "x-key" not in place.authority.headers


async def test_failed_sign_in_keeps_the_previous_tokens(place: Place) -> None:
    await place.sign_in()
    before = place.tokens.read()
    with pytest.raises(UpstreamTimeoutError, match="list_timeout_s"):
        await place.sign_in(options=replace(PATIENT, list_timeout_s=0.001))

    assert 2 == place.authority.seen.count("exchanged")
    assert before == place.tokens.read()


@pytest.mark.parametrize("life_s", [1, 3600])
async def test_expired_or_revoked_token_is_refreshed_once_for_all_requests(
    place: Place, life_s: int
) -> None:
    """The refresh also works after a restart. The authorization server has another address than the
    server.
    """
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
async def test_user_must_sign_in_again_after_a_failed_token_refresh(
    place: Place, life_s: int
) -> None:
    """The circuit breaker stays closed because the server answers."""
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


async def test_refused_token_without_a_refresh_token_fails_after_one_request(place: Place) -> None:
    await place.sign_in()
    record = json.loads(place.file.read_text("utf-8"))
    del record["tokens"]["refresh_token"]
    place.tokens.write(json.dumps(record))
    place.authority.tokens.clear()
    async with place.source() as source:
        with pytest.raises(UpstreamError, match="gateway login srv"):
            await source.list_tools()

    assert "refreshed" not in place.authority.seen


async def test_token_that_another_process_refreshed_is_used(place: Place) -> None:
    """Two gateways share one token file. The old refresh token is invalid after the first
    refresh.
    """
    await place.sign_in()
    async with place.source() as source:
        await source.list_tools()
        place.authority.tokens.clear()
        place.authority.renewals.clear()
        await place.sign_in()
        listing = await source.list_tools()

    assert 4 == len(listing.tools)
    assert "refreshed" not in place.authority.seen


async def test_calls_with_a_token_run_in_parallel(place: Place) -> None:
    """The SDK's own flow would make the second call wait for the first."""
    await place.sign_in()
    async with place.source() as source:
        waiting = asyncio.create_task(source.call("wait", {}, tool_id="t"))
        await wait_for_lines(place.record, "started")
        answer = await source.call("echo", {"text": "meanwhile"}, tool_id="t")
        waiting.cancel()
        await asyncio.wait({waiting})

    assert "meanwhile" == answer.text
    assert "started" in lines(place.record)


async def test_error_of_a_refused_sign_in_contains_the_error_code(place: Place) -> None:
    """The error omits the text of the authorization server."""
    place.authority.refuses = True

    with pytest.raises(UpstreamError, match=r"refused \(access_denied\)") as raised:
        await place.sign_in()

    assert "authorization" == raised.value.kind


async def test_sign_in_uses_the_configured_scope_and_client_metadata_url(place: Place) -> None:
    """A client with a metadata URL is not registered."""
    await place.sign_in(OAuth(client_metadata_url="https://client.example/gateway.json"))
    named = tuple(place.authority.seen)
    await place.sign_in(OAuth(scope="read write"))

    assert ("authorized", "exchanged") == named
    assert [["read"], ["read", "write"]] == place.authority.scopes


async def test_sign_in_uses_a_client_registered_by_hand(place: Place) -> None:
    """The client's secret is sent with requests but not stored with the tokens."""
    auth = OAuth(client_id=BY_HAND, client_secret=SECRET)
    place.authority.life_s = 1
    await place.sign_in(auth)
    async with place.source(auth) as source:
        await source.list_tools()

    assert ["authorized", "exchanged", "refreshed"] == place.authority.seen[:3]
    assert SECRET not in place.file.read_text("utf-8")


async def test_sign_in_without_client_registration_names_the_remedy(
    place: Place, bridge: Bridge, record: Path, tmp_path: Path
) -> None:
    closed = Authority(registers=False)
    async with (
        placed(bridge, closed.app) as authority_port,
        placed(bridge, lambda port: closed.guarded(port, authority_port, record)) as port,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        other = replace(place, authority=closed, url=url, tokens=FileTokens(tmp_path / "x"))
        with pytest.raises(UpstreamError, match="give auth a client_id"):
            await other.sign_in()


async def test_remote_server_cannot_send_a_browser_to_this_machine(place: Place) -> None:
    elsewhere = HttpServer("http://mcp.example.org/mcp", auth=place.target().auth)

    with pytest.raises(ConfigError, match="may not be used without TLS"):
        await sign_in("srv", elsewhere, PATIENT, print)


async def started_sign_in() -> LoopbackSignIn:
    callback = LoopbackSignIn("srv", 7, lambda _url: None)
    await callback.show("https://giver/authorize?state=ours")
    return callback


async def test_loopback_listener_accepts_one_answer_of_a_browser() -> None:
    """The answer includes the issuer, which the SDK compares (RFC 9207)."""
    callback = await started_sign_in()
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
async def test_loopback_listener_ignores_requests_of_other_web_pages(
    target: str, status: str
) -> None:
    """Any web page can send a browser to this machine."""
    callback = await started_sign_in()
    refused, taken = (callback.receive(path) for path in (target, "/callback?code=c&state=ours"))

    assert (status, "200") == (refused[0][:3], taken[0][:3])
    early = LoopbackSignIn("srv", 7, lambda _url: None)
    assert "400" == early.receive("/callback?code=c&state=")[0][:3]


@pytest.mark.parametrize(
    ("query", "reason"),
    [("error=access_denied", "access_denied"), ("error=<b>", "no code"), ("x=1", "no code")],
)
async def test_error_of_a_refusal_in_the_browser_contains_only_the_error_code(
    query: str, reason: str
) -> None:
    callback = await started_sign_in()
    callback.receive(f"/callback?{query}&state=ours")

    with pytest.raises(UpstreamError, match=rf"refused \({reason}\)"):
        await callback.wait()


async def test_loopback_listener_answers_invalid_requests_and_refuses_a_used_port() -> None:
    """The port cannot be replaced by a free one, because the redirect URL is registered."""
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


async def test_sign_in_to_a_server_without_oauth_names_the_missing_setting() -> None:
    with pytest.raises(ConfigError, match='add "auth"'):
        await sign_in("srv", HttpServer("http://127.0.0.1:9/mcp"), PATIENT, print)
