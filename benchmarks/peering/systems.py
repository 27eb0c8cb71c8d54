"""The systems that are measured beside the gateway, and how each is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
_RATEL = ("ratel-ai>=0.12",)
_CALLBUS = ("callbus>=0.3.1",)
_GRAPH_TOOL_CALL = ("graph-tool-call>=0.47", "numpy")

PEERS: tuple[Peer, ...] = (
    Peer(
        name="ratel-ai",
        package="ratel-ai",
        requirements=_RATEL,
        adapter=f"{_FOLDER}.ratel_ai",
        how="its default, BM25",
    ),
    Peer(
        name="ratel-ai hybrid",
        package="ratel-ai",
        requirements=_RATEL,
        adapter=f"{_FOLDER}.ratel_ai",
        how="hybrid; vectors over HTTP, which is in its CPU",
        vectors=True,
        options={"method": "hybrid"},
    ),
    Peer(
        name="callbus",
        package="callbus",
        requirements=_CALLBUS,
        adapter=f"{_FOLDER}.callbus",
        how="its default, BM25",
    ),
    Peer(
        name="callbus hybrid",
        package="callbus",
        requirements=_CALLBUS,
        adapter=f"{_FOLDER}.callbus",
        how="dense and BM25 fused",
        vectors=True,
    ),
    Peer(
        name="graph-tool-call",
        package="graph-tool-call",
        requirements=_GRAPH_TOOL_CALL,
        adapter=f"{_FOLDER}.graph_tool_call",
        how="retrieve, BM25 and graph",
        slow=True,
    ),
    Peer(
        name="graph-tool-call hybrid",
        package="graph-tool-call",
        requirements=_GRAPH_TOOL_CALL,
        adapter=f"{_FOLDER}.graph_tool_call",
        how="retrieve, with vectors",
        vectors=True,
        slow=True,
    ),
    Peer(
        name="fastmcp",
        package="fastmcp",
        requirements=("fastmcp>=4.1",),
        adapter=f"{_FOLDER}.fastmcp",
        how="BM25 search transform, without the MCP round trip",
    ),
    Peer(
        name="langgraph-bigtool",
        package="langgraph-bigtool",
        requirements=("langgraph-bigtool>=0.0.3", "numpy"),
        adapter=f"{_FOLDER}.langgraph_bigtool",
        how="its retrieval function over InMemoryStore",
        vectors=True,
    ),
    Peer(
        name="llama-index",
        package="llama-index-core",
        requirements=("llama-index-core>=0.14.25",),
        adapter=f"{_FOLDER}.llama_index",
        how="ObjectIndex over VectorStoreIndex",
        vectors=True,
    ),
    Peer(
        name="haystack-ai",
        package="haystack-ai",
        requirements=("haystack-ai>=3.4",),
        adapter=f"{_FOLDER}.haystack",
        how="SearchableToolset, BM25",
    ),
    Peer(
        name="pydantic-ai-slim",
        package="pydantic-ai-slim",
        requirements=("pydantic-ai-slim>=2.68",),
        adapter=f"{_FOLDER}.pydantic_ai",
        how="local keyword ranker of ToolSearch",
    ),
    Peer(
        name="dehydrator",
        package="dehydrator",
        requirements=("dehydrator>=0.3.1",),
        adapter=f"{_FOLDER}.dehydrator",
        how="ToolIndex, BM25L",
    ),
)
MEASURED_FOR_COST = (
    "ratel-ai",
    "ratel-ai hybrid",
    "callbus",
    "callbus hybrid",
    "fastmcp",
    "langgraph-bigtool",
    "llama-index",
)
"""What `--synthetic` measures by default."""


def select_peers(names: Sequence[str], known: Sequence[Peer] = PEERS) -> tuple[Peer, ...]:
    """Return the peers of these names or packages, all without names.

    Raises:
        KeyError: If a name is unknown.
    """
    missing = set(names) - {peer.name for peer in known} - {peer.package for peer in known}
    if missing:
        raise KeyError(f"{sorted(missing)}: it is one of {[peer.name for peer in known]}")
    return tuple(p for p in known if not names or {p.name, p.package} & set(names))
