"""The embedder that a host names or brings."""

from __future__ import annotations

from typing import Literal

from gateway.embed.protocol import Embedder
from gateway.errors import ConfigError
from gateway.options.validation import check_members


def resolve_embedder(given: Embedder | Literal["local"] | None) -> Embedder | None:
    """Give the embedder that a host names or brings.

    Raises:
        ConfigError: If it names another than ``local``, or is none.
        MissingExtraError: If the local one is not installed.
    """
    if isinstance(given, str):
        if given != "local":
            raise ConfigError(f"unknown embedder {given!r}; give 'local' or an Embedder")
        from gateway.embed.local.embedder import LocalEmbedder  # noqa: PLC0415  (only who embeds here pays for it)

        return LocalEmbedder()
    if given is not None:
        check_members("embedder", given, "'local' or an Embedder", "embed", "info")
    return given
