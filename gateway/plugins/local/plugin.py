"""Plugin ``local``: embedder with packaged multilingual models."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.embed.protocol import Embedder
from gateway.hookspecs import hookimpl


@hookimpl
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Register the embedder ``local``."""
    return {"local": _local_embedder}


def _local_embedder() -> Embedder:
    from gateway.plugins.local.embedder import LocalEmbedder  # noqa: PLC0415  (its import takes long)

    return LocalEmbedder()
