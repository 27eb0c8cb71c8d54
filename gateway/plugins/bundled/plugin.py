"""Plugin ``bundled``: edges and example requests for the tools of well-known servers."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.hookspecs import hookimpl


@hookimpl
def register_edges(options: object) -> Sequence[object]:
    """Register the bundled documents, unless `GraphOptions.bundled` is False."""
    if not getattr(options, "bundled", True):
        return ()
    from gateway.plugins.bundled.documents import BundledKnowledge  # noqa: PLC0415  (only a gateway needs it, no command)

    return (BundledKnowledge(),)
