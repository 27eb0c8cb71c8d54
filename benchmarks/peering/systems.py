"""The systems that are measured beside the gateway, and how each is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One system, in one way of using it."""

    name: str
    package: str
    """The distribution, and its environment; empty for ours, which runs in this one."""
    adapter: str
    """Module that runs it."""
    how: str
    """What of it is measured."""
    requirements: tuple[str, ...] = ()
    vectors: bool = False
    """Whether it is given our embedder's vectors."""
    slow: bool = False
    """Whether it is asked fewer queries."""
    options: Mapping[str, object] = field(default_factory=dict)


_FOLDER = "benchmarks.peering.adapters"
OURS = Peer(
    name="ours", package="", adapter=f"{_FOLDER}.ours", how="Gateway.search, no result cache"
)


def _peer(adapter: str, how: str, *requirements: str, name: str = "", **rest: Any) -> Peer:
    """Return a peer whose package is named first among its requirements."""
    package = requirements[0].partition(">=")[0]
    return Peer(
        name=name or package,
        package=package,
        adapter=f"{_FOLDER}.{adapter}",
        how=how,
        requirements=requirements,
        **rest,
    )


_hybrid = partial(_peer, vectors=True)
PEERS: tuple[Peer, ...] = (
    _peer("ratel_ai", "its default, BM25", "ratel-ai>=0.12"),
    _hybrid(
        "ratel_ai",
        "hybrid; vectors over HTTP, which is in its CPU",
        "ratel-ai>=0.12",
        name="ratel-ai hybrid",
        options={"method": "hybrid"},
    ),
    _peer("callbus", "its default, BM25", "callbus>=0.3.1"),
    _hybrid("callbus", "dense and BM25 fused", "callbus>=0.3.1", name="callbus hybrid"),
    _peer(
        "graph_tool_call", "retrieve, BM25 and graph", "graph-tool-call>=0.47", "numpy", slow=True
    ),
    _hybrid(
        "graph_tool_call",
        "retrieve, with vectors",
        "graph-tool-call>=0.47",
        "numpy",
        name="graph-tool-call hybrid",
        slow=True,
    ),
    _peer("fastmcp", "BM25 search transform, without the MCP round trip", "fastmcp>=4.1"),
    _hybrid(
        "langgraph_bigtool",
        "its retrieval function over InMemoryStore",
        "langgraph-bigtool>=0.0.3",
        "numpy",
    ),
    _hybrid(
        "llama_index",
        "ObjectIndex over VectorStoreIndex",
        "llama-index-core>=0.14.25",
        name="llama-index",
    ),
    _peer("haystack", "SearchableToolset, BM25", "haystack-ai>=3.4"),
    _peer("pydantic_ai", "local keyword ranker of ToolSearch", "pydantic-ai-slim>=2.68"),
    _peer("dehydrator", "ToolIndex, BM25L", "dehydrator>=0.3.1"),
)


def select_peers(names: Sequence[str], known: Sequence[Peer] = PEERS) -> tuple[Peer, ...]:
    """Return the peers of these names or packages, all without names.

    Raises:
        KeyError: If a name is unknown.
    """
    missing = set(names) - {peer.name for peer in known} - {peer.package for peer in known}
    if missing:
        raise KeyError(f"{sorted(missing)}: it is one of {[peer.name for peer in known]}")
    return tuple(p for p in known if not names or {p.name, p.package} & set(names))
