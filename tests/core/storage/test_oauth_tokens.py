"""Where the tokens of sign-ins are kept."""

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
def ring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    yield
    keyring.set_keyring(before)


def files(folder: Path) -> OpenTokens:
    return open_tokens(Options(catalog_store_path=folder / "catalog.sqlite3"), None)


def tokens_of(target: HttpServer) -> TokenStore:
    assert isinstance(target.auth, OAuth)
    assert target.auth.tokens is not None
    return target.auth.tokens


@pytest.mark.usefixtures("ring")
@pytest.mark.parametrize("store", ["file", "keyring"])
def test_tokens_are_kept_replaced_and_forgotten(store: TokenStoreKind, tmp_path: Path) -> None:
    """The same for every place."""
    auth = OAuth(store=store)
    tokens = tokens_of(
        with_token_store("srv", HttpServer("https://a/mcp", auth=auth), files(tmp_path))
    )

    before = tokens.read()
    tokens.write("one")
    tokens.write("two")
    held = tokens.read()
    tokens.forget()
    tokens.forget()

    assert (None, "two", None) == (before, held, tokens.read())


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    """Whatever the mask of the process is."""
    tokens = FileTokens(tmp_path / "deep" / "srv.json")

    tokens.write("secret")

    assert 0o600 == stat.S_IMODE((tmp_path / "deep" / "srv.json").stat().st_mode)
    assert ["srv.json"] == [each.name for each in (tmp_path / "deep").iterdir()]


def test_tokens_belong_to_a_name_an_address_and_a_client(tmp_path: Path) -> None:
    """An address that somebody put there later gets none of them."""
    targets = [
        ("a", HttpServer("https://a/mcp", auth=OAuth())),
        ("a", HttpServer("https://evil/mcp", auth=OAuth())),
        ("b", HttpServer("https://a/mcp", auth=OAuth())),
        ("a", HttpServer("https://a/mcp", auth=OAuth(client_id="other"))),
    ]
    for name, target in targets:
        tokens_of(with_token_store(name, target, files(tmp_path))).write(name + target.url)

    assert 4 == len(list((tmp_path / "tokens").iterdir()))


def test_who_does_not_sign_in_gets_no_place_and_who_has_one_keeps_it(tmp_path: Path) -> None:
    """A host may keep tokens its own way."""
    own = FileTokens(tmp_path / "own")
    plain = HttpServer("https://a/mcp")

    assert plain is with_token_store("srv", plain, files(tmp_path))
    assert own is tokens_of(
        with_token_store(
            "srv", HttpServer("https://a/mcp", auth=OAuth(tokens=own)), files(tmp_path)
        )
    )


def test_bytes_that_are_no_text_are_nothing(tmp_path: Path) -> None:
    """A broken file costs one sign-in, not a search."""
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")

    assert FileTokens(tmp_path / "x").read() is None
