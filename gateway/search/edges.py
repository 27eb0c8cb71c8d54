"""The graph of a gateway, as its host looks at it and adds to it."""

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
    """Says which tools belong together. May be called from any task of the gateway's own loop."""

    @property
    def model_id(self) -> str:
        """Names model and endpoint."""
        ...

    async def propose(self, tools: str) -> ModelReply:
        """Answer a list of tools with lines ``A --requires--> B``.

        Raises:
            Exception: Anything; the batch is then left out, with a notice.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeProposals:
    """What came of asking."""

    documents: tuple[graphs.Document, ...]
    """One a server with an edge; their paths are the servers' names."""
    notices: tuple[str, ...]
    """What was dropped and why, and which batches could not be asked about."""
    requests: int
    """How many requests were sent, the failed ones included."""
    input_tokens: int
    output_tokens: int
    """As the endpoint counts them; 0 where it does not."""


@dataclass(eq=False, repr=False)
class Edges:
    """The edges between the tools of one gateway.

    Args:
        snapshot: Returns the index as it is now.
        telemetry: Traces requests to models.
        proposing: Functions of plugins; see `gateway.hookspecs.register_edge_proposals`.
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
        """Write the graph as RDF, or draw it; see `gateway.index.graph_documents.export`."""
        return export(await self.snapshot(), form, centre=centre, hops=hops, caller=caller)

    async def graph(self, *, caller: Caller | None = None) -> ToolNetwork:
        """Return a `networkx.MultiDiGraph` of what *caller* may see; None is the host, all of it.

        Tools are called by their ids. Each edge has its predicate as key, and ``role``,
        ``weight``, ``declared``, ``rule``, ``path`` and ``line`` as data.
        """
        return graph_of(await self.snapshot(), caller).to_networkx()

    async def propose(
        self, proposer: Proposer, *, servers: Sequence[str] = (), caller: Caller | None = None
    ) -> EdgeProposals:
        """Ask a chat model which tools belong together, as documents to read, edit and commit.

        Args:
            proposer: Such as `OpenAIProposer`; asked once for every few tools of a server.
            servers: Names of the servers; empty is all.
            caller: Only tools that this party may see; None is the host, which sees all.

        Raises:
            ConfigError: The plugin ``graph_tools`` is not loaded.
            InvalidRequestError: A server does not exist.
        """
        propose = self.proposing.get("propose")
        if propose is None:
            raise missing_plugin("Gateway.propose_edges", "graph_tools")
        proposals: EdgeProposals = await propose(
            await self.snapshot(), proposer, self.telemetry, servers=servers, caller=caller
        )
        return proposals
