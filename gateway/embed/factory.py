"""The embedder that a host names or brings."""

from __future__ import annotations

from typing import Literal

from gateway.checks import check_shape
from gateway.embed.parts import VectorParts
from gateway.embed.protocol import Embedder, EmbedderInfo
from gateway.errors import ConfigError


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
        check_shape("embedder", given, "'local' or an Embedder", "embed", "info")
        _check_parts(given.info)
    return given


def _check_parts(info: EmbedderInfo) -> None:
    parts, size = info.parts, info.dimensions
    if parts is None:
        return
    if not isinstance(parts, VectorParts):
        raise ConfigError(f"parts of an embedder must be VectorParts, got {type(parts).__name__}")
    if size is not None and parts.starts[-1] >= size:
        raise ConfigError(f"parts begin at {parts.starts}, vectors have {size} numbers")
