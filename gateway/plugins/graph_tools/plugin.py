"""Plugin ``graph_tools``: edges proposed by a chat model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.hookspecs import hookimpl


@hookimpl
def register_edge_proposals() -> Mapping[str, Callable[..., Any]]:
    """Register `Gateway.propose_edges`."""
    from gateway.plugins.graph_tools.edge_proposals import propose  # noqa: PLC0415  (loads search)

    return {"propose": propose}
