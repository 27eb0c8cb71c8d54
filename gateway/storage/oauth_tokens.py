"""Tokens of sign-ins, each in a file that only its owner can read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.mcp.servers import HttpServer, TokenStore, TokenStoreKind
from gateway.runtime.atomic_file import write_atomically


class FileTokens:
    """`TokenStore` in one file, mode 0600, replaced as a whole.

    Args:
        path: The file; its folder is made when it is first written.
    """

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


def with_token_store(name: str, target: HttpServer, folder: Path) -> HttpServer:
    """Return *target* with a store for its tokens, if it signs in.

    The place belongs to the name, the address and the client: tokens are never sent to an
    address that somebody put there later.

    Args:
        name: The host's name for the server.
        target: The server.
        folder: Where the files are.
    """
    if target.auth is None:
        return target
    made = _tokens(f"{name}-{target.launch[:16]}", target.auth.store, folder)
    return replace(target, auth=target.auth.with_tokens(made))


def _tokens(key: str, where: TokenStoreKind, folder: Path) -> TokenStore:
    if where != "keyring":
        return FileTokens(folder / f"{key}.json")
    from gateway.manifests.secrets import KeyringTokens  # noqa: PLC0415  (few servers ask for it)

    return KeyringTokens(key)
