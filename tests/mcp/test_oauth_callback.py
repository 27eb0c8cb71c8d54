"""Where a browser brings the answer of a sign-in."""

from __future__ import annotations

import asyncio

import pytest
from mcp.client.auth import AuthorizationCodeResult

from gateway.errors import ConfigError, UpstreamError
from gateway.mcp.oauth import LoopbackSignIn, listen_for_sign_in
from gateway.mcp.servers import HttpServer, OAuth
from gateway.mcp.session import sign_in
from tests.mcp.conftest import PATIENT


async def asked() -> LoopbackSignIn:
    callback = LoopbackSignIn("srv", 7, lambda _url: None)
    await callback.show("https://giver/authorize?state=ours")
    return callback


async def test_an_answer_is_taken_once() -> None:
    """With the issuer, which the SDK compares (RFC 9207)."""
    callback = await asked()

    first = callback.receive("/callback?code=c&state=ours&iss=https%3A%2F%2Fgiver")
    second = callback.receive("/callback?code=other&state=ours")

    result = AuthorizationCodeResult(code="c", state="ours", iss="https://giver")
    assert result == await callback.wait()
    assert (True, True) == (first[0].startswith("200"), second[0].startswith("400"))


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
    callback = await asked()

    refused = callback.receive(target)
    taken = callback.receive("/callback?code=c&state=ours")

    assert (status, "200") == (refused[0][:3], taken[0][:3])
    assert "c" == (await callback.wait()).code


async def test_nothing_is_taken_before_it_was_asked_for() -> None:
    """An empty state is nobody's."""
    callback = LoopbackSignIn("srv", 7, lambda _url: None)

    assert "400" == callback.receive("/callback?code=c&state=")[0][:3]


@pytest.mark.parametrize(
    ("query", "told"),
    [("error=access_denied", "access_denied"), ("error=<b>", "no code"), ("x=1", "no code")],
)
async def test_a_refusal_is_told_by_its_code(query: str, told: str) -> None:
    """Words of a stranger are not."""
    callback = await asked()

    callback.receive(f"/callback?{query}&state=ours")

    with pytest.raises(UpstreamError, match=rf"refused \({told}\)"):
        await callback.wait()


async def test_a_line_that_is_no_request_is_answered_and_forgotten() -> None:
    """Port scanners exist."""
    async with listen_for_sign_in("srv", lambda _url: None) as callback:
        port = int(callback.address.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 20_000 + b"\n")
        answer = await reader.readline()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 404")


async def test_a_port_that_is_taken_is_told_with_the_remedy() -> None:
    """The person chose it, for it is registered."""
    async with listen_for_sign_in("srv", lambda _url: None) as callback:
        port = int(callback.address.split(":")[2].split("/")[0])
        with pytest.raises(ConfigError, match="choose another callback_port"):
            async with listen_for_sign_in("srv", lambda _url: None, port=port):
                pass


async def test_a_server_that_does_not_sign_in_says_what_to_add() -> None:
    """Before anything is opened."""
    with pytest.raises(ConfigError, match='add "auth"'):
        await sign_in("srv", HttpServer("http://127.0.0.1:9/mcp"), PATIENT, print)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"client_metadata_url": "http://a/b"}, "https address with a path"),
        ({"client_metadata_url": "https://a/"}, "https address with a path"),
        ({"client_secret": "x"}, "goes with a client_id"),
        ({"callback_port": 70000}, "between 0 and 65535"),
        ({"store": "cloud"}, "file or keyring"),
    ],
)
def test_what_no_server_would_take_is_refused_at_once(
    options: dict[str, object], told: str
) -> None:
    """Where it is written, not where it fails."""
    with pytest.raises(ConfigError, match=told):
        OAuth(**options)  # type: ignore[arg-type]  # on purpose


def test_a_sign_in_is_part_of_what_is_pinned_and_its_secret_is_not() -> None:
    """Another client is another configuration; a file with the tokens tells no secret."""
    plain = HttpServer("https://a/mcp")
    signing = HttpServer("https://a/mcp", auth=OAuth(client_id="me", client_secret="s3cret"))  # noqa: S106  (of this test)
    other = HttpServer("https://a/mcp", auth=OAuth(client_id="me", client_secret="other"))  # noqa: S106  (of this test)

    assert 3 == len({plain.launch, signing.launch, HttpServer("https://b/mcp").launch})
    assert signing.launch == other.launch
    assert "s3cret" not in repr(signing)
