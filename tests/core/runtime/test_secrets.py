"""Secrets by reference."""

from __future__ import annotations

from collections.abc import Iterator

import keyring
import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.errors import ConfigError
from gateway.mcp import HttpServer
from gateway.runtime.secrets import from_keyring, literal_secrets
from tests.core.storage.test_oauth_tokens import Ring


@pytest.fixture
def ring() -> Iterator[None]:
    before = keyring.get_keyring()
    ring = Ring()
    ring.set_password("mcp/files", "token", "s3cret")
    keyring.set_keyring(ring)
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("ring")
def test_a_reference_to_the_keyring_is_followed() -> None:
    """The file may be shared; the secret is not in it."""
    entry = {"url": "https://h/mcp", "headers": {"X-Token": "keyring:mcp/files/token"}}

    manifest = parse_manifest({"mcpServers": {"a": entry}})

    assert {"a": HttpServer("https://h/mcp", {"X-Token": "s3cret"})} == manifest.servers
    assert () == manifest.warnings


@pytest.mark.usefixtures("ring")
@pytest.mark.parametrize(
    ("text", "message"),
    [("keyring:token", "write keyring:SERVICE/NAME"), ("keyring:other/token", "has no")],
)
def test_a_reference_that_leads_nowhere_is_reported(text: str, message: str) -> None:
    """By its name."""
    with pytest.raises(ConfigError, match=message):
        from_keyring(text)


def test_a_variable_may_be_named_in_short() -> None:
    """As other tools write it."""
    manifest = parse_manifest({"mcpServers": {"a": {"command": "r", "env": {"K": "env:NOT_SET"}}}})

    assert "needs the environment variable NOT_SET" in manifest.warnings[0].detail


def test_a_secret_that_stands_in_the_file_earns_a_warning_without_being_shown() -> None:
    """It ends in a repository sooner or later."""
    values = {
        "API_KEY": "sk-1234567890",
        "TOKEN": "${TOKEN}",
        "AUTH_MODE": "oauth",
        "PASSWORD": "env:PW",
        "COOKIE": "keyring:a/b",
        "REGION": "eu-central-1",
    }
    manifest = parse_manifest(
        {"mcpServers": {"a": {"command": "r", "env": {"API_KEY": values["API_KEY"]}}}}
    )

    assert ["API_KEY"] == literal_secrets(values)
    (note,) = manifest.warnings
    assert "'API_KEY' stands in the file" in note.detail
    assert "1234" not in note.detail
