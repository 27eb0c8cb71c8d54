"""The host's access to the graph of its gateway: export, drawing and proposed edges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import graphs
from gateway.errors import missing_plugin
from gateway.index.graph_documents import GraphFormat, export, graph_of
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolNetwork
from gateway.runtime.telemetry import Telemetry
from gateway.search.normalize import ModelReply
from gateway.types import Caller


class Proposer(Protocol):
    """A chat model that proposes edges between tools. Called from tasks of the gateway's loop."""

    @property
    def model_id(self) -> str:
        """Name of the chat model and its endpoint."""
        ...

    async def propose(self, tools: str) -> ModelReply:
        """Ask the chat model for edges between *tools*, a list with one tool on each line.

        The answer contains lines of the form ``A --requires--> B``.

        Raises:
            Exception: Of any type. These tools are then skipped, with a notice.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeProposals:
    """Edges that a chat model proposed, as documents to review."""

    documents: tuple[graphs.Document, ...]
    """One document for each server with a proposed edge. Its path is the server's name."""
    notices: tuple[str, ...]
    """Messages about dropped edges, with reasons, and about failed requests."""
    requests: int
    """Number of requests to the chat model, including failed ones."""
    input_tokens: int
    output_tokens: int
    """Number of tokens in the answers, as reported; 0 if not reported."""


@dataclass(eq=False, repr=False)
class Edges:
    """The edges between the tools of one gateway.

    `proposing` contains functions from the hook `register_edge_proposals`.
    """

    snapshot: Callable[[], Awaitable[Snapshot]]
    telemetry: Telemetry
    proposing: Mapping[str, Callable[..., Any]]

    async def export(
        self,
        form: GraphFormat = "turtle",
        *,
        centre: str = "",
        hops: int = 1,
        caller: Caller | None = None,
    ) -> str:
        """Return the graph as RDF or as a drawing; see `gateway.index.graph_documents.export`."""
        return export(await self.snapshot(), form, centre=centre, hops=hops, caller=caller)

    async def graph(self, *, caller: Caller | None = None) -> ToolNetwork:
        """Return the entities visible to *caller* as a `networkx.MultiDiGraph`; with None, all.

        Nodes are entity ids. The key of an edge is its predicate. The data of an edge are ``role``,
        ``weight``, ``declared``, ``rule``, ``path`` and ``line``.
        """
        return graph_of(await self.snapshot(), caller).to_networkx()

    async def propose(
        self, proposer: Proposer, *, servers: Sequence[str] = (), caller: Caller | None = None
    ) -> EdgeProposals:
        """Ask a chat model for edges between tools, and return them as documents to review.

        Args:
            proposer: The chat model. Each request contains a few tools of one server.
            servers: Names of the servers whose tools are sent; empty for all servers.
            caller: Only tools visible to this caller are sent. With None, all tools are sent.

        Raises:
            ConfigError: If the plugin ``graph_tools`` is not loaded.
            InvalidRequestError: If a server does not exist.
        """
        propose = self.proposing.get("propose")
        if propose is None:
            raise missing_plugin("Gateway.propose_edges", "graph_tools")
        proposals: EdgeProposals = await propose(
            await self.snapshot(), proposer, self.telemetry, servers=servers, caller=caller
        )
        return proposals
