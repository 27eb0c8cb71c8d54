"""The key ``auth`` of a server."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config import Manifest
from gateway.config.mcp_json import parse_manifest
from gateway.mcp import HttpServer, OAuth, TokenExchange

URL = "https://a/mcp"


def read(auth: object) -> Manifest:
    return parse_manifest({"mcpServers": {"a": {"url": URL, "auth": auth}}})


def test_how_a_server_signs_in_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets by reference, as everywhere."""
    monkeypatch.setenv("MY_SECRET", "s3cret-value")
    found = read(
        {
            "type": "oauth",
            "scope": "read",
            "client_id": "me",
            "client_secret": "env:MY_SECRET",
            "callback_port": 7777,
            "store": "keyring",
            "per_user": True,
        }
    )

    auth = OAuth(
        scope="read",
        client_id="me",
        client_secret="s3cret-value",
        callback_port=7777,
        store="keyring",
        per_user=True,
    )
    assert {"a": HttpServer(URL, auth=auth)} == found.servers
    assert () == found.warnings
    assert {"a": HttpServer(URL, auth=OAuth())} == read({"type": "oauth"}).servers


def test_a_token_exchange_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is empty; another endpoint is another server, to be approved."""
    monkeypatch.setenv("MY_SECRET", "s3cret-value")
    entry = {"type": "token_exchange", "token_url": "https://idp.example/token"}
    full: dict[str, Any] = {
        "audience": "https://a",
        "resource": "https://b",
        "scope": "read",
        "client_id": "me",
    }
    found = read({**entry, **full, "client_secret": "env:MY_SECRET"})

    own = TokenExchange(token_url="https://idp.example/token", **full, client_secret="s3cret-value")
    assert {"a": HttpServer(URL, auth=own)} == found.servers
    assert "s3cret" not in repr(found.servers)
    other = read({**entry, "token_url": "https://evil.example/token"}).servers["a"]
    assert read(entry).servers["a"].fingerprint != other.fingerprint


def test_a_bearer_token_is_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """By reference; what stands there as it is earns a warning."""
    monkeypatch.setenv("MY_TOKEN", "t0ken-value")
    named = read({"type": "bearer", "token": "${MY_TOKEN}"})
    written = read({"type": "bearer", "token": "t0ken-value"})

    assert {"a": HttpServer(URL, {"Authorization": "Bearer t0ken-value"})} == named.servers
    assert () == named.warnings
    assert ["config_warning"] == [each.code for each in written.warnings]
    assert "t0ken" not in written.warnings[0].detail


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("oauth", "must be an object"),
        ({"type": "basic"}, "auth must be of the type 'bearer', 'oauth', 'token_exchange'"),
        ({"type": "oauth", "port": 1}, "unknown key 'port'"),
        ({"type": "bearer"}, "auth.bearer: 'token' is missing"),
        ({"type": "bearer", "token": "x", "scope": "y"}, "unknown key 'scope'"),
        ({"type": "oauth", "scope": 1}, "auth.oauth.scope must be a text"),
        ({"type": "oauth", "callback_port": "1"}, "must be a whole number"),
        ({"type": "oauth", "callback_port": True}, "must be a whole number"),
        ({"type": "oauth", "store": "cloud"}, "'file' or 'keyring'"),
        ({"type": "oauth", "client_secret": "env:NO_SUCH_VARIABLE_AT_ALL"}, "NO_SUCH_VARIABLE"),
    ],
)
def test_a_sign_in_that_cannot_be_read_makes_its_server_unusable(
    auth: object, message: str
) -> None:
    """The others live."""
    found = read(auth)

    assert ("a",) == found.unusable
    assert message in found.warnings[-1].detail
