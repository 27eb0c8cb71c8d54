"""Token stores of sign-ins."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from gateway.mcp import HttpServer, OAuth, TokenStore, TokenStoreKind
from gateway.options import Options
from gateway.storage import FileTokens, OpenTokens, open_tokens, with_token_store


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of the library
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture
def memory_keyring() -> Iterator[None]:
    """Replace the system's keyring by one in memory during a test."""
    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    yield
    keyring.set_keyring(before)


def open_file_tokens(folder: Path) -> OpenTokens:
    return open_tokens(Options(catalog_store_path=folder / "catalog.sqlite3"), None)


def tokens_of(target: HttpServer) -> TokenStore:
    assert isinstance(target.auth, OAuth)
    assert target.auth.tokens is not None
    return target.auth.tokens


@pytest.mark.usefixtures("memory_keyring")
@pytest.mark.parametrize("store", ["file", "keyring"])
def test_tokens_are_stored_replaced_and_deleted(store: TokenStoreKind, tmp_path: Path) -> None:
    auth = OAuth(store=store)
    tokens = tokens_of(
        with_token_store("srv", HttpServer("https://a/mcp", auth=auth), open_file_tokens(tmp_path))
    )

    before = tokens.read()
    tokens.write("one")
    tokens.write("two")
    stored = tokens.read()
    tokens.forget()
    tokens.forget()

    assert (None, "two", None) == (before, stored, tokens.read())


def test_token_file_is_only_readable_by_its_owner(tmp_path: Path) -> None:
    """The umask of the process does not matter."""
    tokens = FileTokens(tmp_path / "deep" / "srv.json")

    tokens.write("secret")

    assert 0o600 == stat.S_IMODE((tmp_path / "deep" / "srv.json").stat().st_mode)
    assert ["srv.json"] == [file.name for file in (tmp_path / "deep").iterdir()]


def test_token_store_depends_on_server_name_url_and_client(tmp_path: Path) -> None:
    """So a URL that is configured later for the same server name gets no tokens."""
    targets = [
        ("a", HttpServer("https://a/mcp", auth=OAuth())),
        ("a", HttpServer("https://evil/mcp", auth=OAuth())),
        ("b", HttpServer("https://a/mcp", auth=OAuth())),
        ("a", HttpServer("https://a/mcp", auth=OAuth(client_id="other"))),
    ]
    for name, target in targets:
        tokens_of(with_token_store(name, target, open_file_tokens(tmp_path))).write(
            name + target.url
        )

    assert 4 == len(list((tmp_path / "tokens").iterdir()))


def test_only_oauth_servers_without_a_token_store_get_one(tmp_path: Path) -> None:
    """A host may have set its own token store."""
    host_tokens = FileTokens(tmp_path / "own")
    plain = HttpServer("https://a/mcp")

    assert plain is with_token_store("srv", plain, open_file_tokens(tmp_path))
    assert host_tokens is tokens_of(
        with_token_store(
            "srv",
            HttpServer("https://a/mcp", auth=OAuth(tokens=host_tokens)),
            open_file_tokens(tmp_path),
        )
    )


def test_token_file_with_invalid_utf8_counts_as_empty(tmp_path: Path) -> None:
    """Then the user must sign in again, but searches do not fail."""
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")

    assert FileTokens(tmp_path / "x").read() is None
