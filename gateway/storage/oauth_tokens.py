"""Where the tokens of sign-ins are kept: in the team's store, encrypted, or else in files."""

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
"""Returns the place of one sign-in: by its key, and what the configuration says keeps it."""


@runtime_checkable
class SignInStore(Protocol):
    """A `gateway.storage.protocol.Store` that keeps sign-ins too."""

    def sign_in(self, key: str, keys: Sequence[bytes]) -> TokenStore:
        """Return the place of the sign-in *key*, encrypted under the first of *keys*."""


class FileTokens:
    """`TokenStore` in one file, mode 0600, replaced as a whole.

    Args:
        path: The file; its folder is made when it is first written.
    """

    fault = ""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str | None:
        """See `TokenStore.read`."""
        try:
            return self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, text: str) -> None:
        """See `TokenStore.write`."""
        write_atomically(self._path, text)

    def forget(self) -> None:
        """See `TokenStore.forget`."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """See `TokenStore.lock`: files have none, processes look again before they refresh."""
        yield


def open_tokens(options: Options, store: object) -> OpenTokens:
    """Return what opens the places of sign-ins: rows of *store*, or files beside the catalog.

    Rows need a store that has them and a key of the host, which is not in the database.

    Args:
        options: Where files are, and the key.
        store: The store of the gateway.

    Raises:
        ConfigError: The key of the host cannot be used.
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
    """Return *target* with a store for its tokens, if it signs in.

    The place belongs to the name, the address and the client: tokens are never sent to an
    address that was put there later.

    Args:
        name: The host's name for the server.
        target: The server.
        tokens: Opens the place.
    """
    auth = target.auth
    if not isinstance(auth, OAuth):
        return target
    key, kind = f"{name}-{target.launch[:16]}", auth.store
    auth = replace(auth, user_tokens=lambda user: tokens(f"{key}-{user}", kind))
    return replace(target, auth=auth.with_tokens(tokens(key, kind)))
