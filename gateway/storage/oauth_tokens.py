"""Storage of sign-in tokens: in the gateway's store (encrypted), the keyring, or files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from gateway.mcp.servers import HttpServer, OAuth, TokenStore, TokenStoreKind
from gateway.options import Options
from gateway.options.environment import tokens_path
from gateway.runtime.atomic_file import write_atomically
from gateway.storage.host_key import host_keys

OpenTokens: TypeAlias = Callable[[str, TokenStoreKind], TokenStore]
"""Returns the token store for one sign-in, given its key and the configured kind of store."""


@runtime_checkable
class SignInStore(Protocol):
    """A `gateway.storage.protocol.Store` that can store sign-ins."""

    def sign_in(self, key: str, keys: Sequence[bytes]) -> TokenStore:
        """Return the token store of the sign-in *key*. The first of *keys* encrypts, all
        decrypt.
        """


class FileTokens:
    """`TokenStore` in one file, mode 0600, which is always replaced as a whole."""

    fault = ""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str | None:
        """Return the stored text; None if missing or unreadable."""
        try:
            return self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, text: str) -> None:
        """Replace the stored text."""
        write_atomically(self._path, text)

    def forget(self) -> None:
        """Delete the file."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Yield without locking; processes read the tokens again before they refresh them."""
        yield


def open_tokens(options: Options, store: object) -> OpenTokens:
    """Return a function that opens the token store of one sign-in.

    Tokens are in *store* only if it supports this and there is a host key, because the database
    must not contain the key of its own texts. Otherwise they are in a file next to the catalog.

    Raises:
        ConfigError: If the host key is invalid.
    """
    keys, folder = host_keys(options, "sign-ins"), tokens_path(options)

    def tokens(key: str, kind: TokenStoreKind) -> TokenStore:
        if kind == "keyring":
            from gateway.runtime.secrets import KeyringTokens  # noqa: PLC0415  (few servers ask for it)

            return KeyringTokens(key)
        if keys and isinstance(store, SignInStore):
            return store.sign_in(key, keys)
        return FileTokens(folder / f"{key}.json")

    return tokens


def with_token_store(name: str, target: HttpServer, tokens: OpenTokens) -> HttpServer:
    """Return *target* with a store for its tokens, if it uses OAuth.

    The store's key contains the URL and the client, so that tokens are never sent to a URL that was
    configured later.
    """
    auth = target.auth
    if not isinstance(auth, OAuth):
        return target
    key, kind = f"{name}-{target.launch[:16]}", auth.store
    auth = replace(auth, user_tokens=lambda user: tokens(f"{key}-{user}", kind))
    return replace(target, auth=auth.with_tokens(tokens(key, kind)))
