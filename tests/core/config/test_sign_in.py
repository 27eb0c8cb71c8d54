"""The key ``auth`` of a server in an ``mcp.json``."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config import Manifest
from gateway.config.mcp_json import parse_manifest
from gateway.mcp import HttpServer, OAuth, TokenExchange

URL = "https://a/mcp"


def read_auth(auth: object) -> Manifest:
    return parse_manifest({"mcpServers": {"a": {"url": URL, "auth": auth}}})


def test_oauth_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """References to secrets are resolved."""
    monkeypatch.setenv("MY_SECRET", "s3cret-value")
    oauth = read_auth(
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
    assert {"a": HttpServer(URL, auth=auth)} == oauth.servers
    assert () == oauth.warnings
    assert {"a": HttpServer(URL, auth=OAuth())} == read_auth({"type": "oauth"}).servers


def test_token_exchange_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omitted settings are empty. A server with another token endpoint counts as changed and needs
    approval.
    """
    monkeypatch.setenv("MY_SECRET", "s3cret-value")
    entry = {"type": "token_exchange", "token_url": "https://idp.example/token"}
    full: dict[str, Any] = {
        "audience": "https://a",
        "resource": "https://b",
        "scope": "read",
        "client_id": "me",
    }
    exchange = read_auth({**entry, **full, "client_secret": "env:MY_SECRET"})

    expected = TokenExchange(
        token_url="https://idp.example/token", **full, client_secret="s3cret-value"
    )
    assert {"a": HttpServer(URL, auth=expected)} == exchange.servers
    assert "s3cret" not in repr(exchange.servers)
    other = read_auth({**entry, "token_url": "https://evil.example/token"}).servers["a"]
    assert read_auth(entry).servers["a"].fingerprint != other.fingerprint


def test_bearer_token_becomes_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """References are resolved; a literal secret is a warning."""
    monkeypatch.setenv("MY_TOKEN", "t0ken-value")
    named = read_auth({"type": "bearer", "token": "${MY_TOKEN}"})
    written = read_auth({"type": "bearer", "token": "t0ken-value"})

    assert {"a": HttpServer(URL, {"Authorization": "Bearer t0ken-value"})} == named.servers
    assert () == named.warnings
    assert ["config_warning"] == [warning.code for warning in written.warnings]
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
def test_invalid_auth_makes_the_server_unusable(auth: object, message: str) -> None:
    manifest = read_auth(auth)

    assert ("a",) == manifest.unusable
    assert message in manifest.warnings[-1].detail
