"""The embedder that a host names or gives."""

from __future__ import annotations

from typing import Literal

from gateway.embed.protocol import Embedder
from gateway.errors import ConfigError
from gateway.options.validation import check_members


def resolve_embedder(embedder: Embedder | Literal["local"] | None) -> Embedder | None:
    """Return the embedder that a host names or brings.

    Raises:
        ConfigError: If it names another than ``local``, or is none.
        MissingExtraError: If the local one is not installed.
    """
    if isinstance(embedder, str):
        if embedder != "local":
            raise ConfigError(f"unknown embedder {embedder!r}; give 'local' or an Embedder")
        from gateway.plugins.local.embedder import LocalEmbedder  # noqa: PLC0415  (only who embeds here pays for it)

        return LocalEmbedder()
    if embedder is not None:
        check_members("embedder", embedder, "'local' or an Embedder", "embed", "info")
    return embedder
