"""The graph of a gateway, as its host looks at it and adds to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.index.graph_documents import GraphFormat, export, graph_of
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolNetwork
from gateway.plugins.graph_tools.edge_proposals import EdgeProposals, Proposer, propose
from gateway.runtime.telemetry import Telemetry
from gateway.types import Caller


@dataclass(eq=False, repr=False)
class Edges:
    """The edges between the tools of one gateway.

    Args:
        snapshot: Returns the index as it is now.
        telemetry: Traces requests to models.
    """

    snapshot: Callable[[], Awaitable[Snapshot]]
    telemetry: Telemetry

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
        """Ask a chat model which tools belong together; see `edge_proposals.propose`."""
        return await propose(
            await self.snapshot(), proposer, self.telemetry, servers=servers, caller=caller
        )
