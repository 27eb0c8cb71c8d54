"""References to secrets."""

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
    """Use a keyring that contains a secret as ``mcp/files/token``."""
    before = keyring.get_keyring()
    ring = Ring()
    ring.set_password("mcp/files", "token", "s3cret")
    keyring.set_keyring(ring)
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("ring")
def test_keyring_reference_returns_the_secret() -> None:
    entry = {"url": "https://h/mcp", "headers": {"X-Token": "keyring:mcp/files/token"}}

    manifest = parse_manifest({"mcpServers": {"a": entry}})

    assert {"a": HttpServer("https://h/mcp", {"X-Token": "s3cret"})} == manifest.servers
    assert () == manifest.warnings


@pytest.mark.usefixtures("ring")
@pytest.mark.parametrize(
    ("text", "message"),
    [("keyring:token", "write keyring:SERVICE/NAME"), ("keyring:other/token", "has no")],
)
def test_invalid_or_missing_keyring_reference_raises_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_keyring(text)


def test_env_prefix_refers_to_an_environment_variable() -> None:
    manifest = parse_manifest({"mcpServers": {"a": {"command": "r", "env": {"K": "env:NOT_SET"}}}})

    assert "needs the environment variable NOT_SET" in manifest.warnings[0].detail


def test_secret_written_into_a_setting_is_reported_without_its_value() -> None:
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
    assert "'API_KEY' is in the file as plain text" in note.detail
    assert "1234" not in note.detail
