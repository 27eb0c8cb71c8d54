"""The part of a gateway that shows what it has beside tools: its graph, resources and prompts."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence

from gateway.call.resources import ResourceLibrary
from gateway.index.graph_documents import GraphFormat, export, graph_of
from gateway.index.tool_graph import ToolNetwork
from gateway.plugins.graph_tools.edge_proposals import EdgeProposals, Proposer, propose
from gateway.registration.attention import GatewayAttention
from gateway.runtime.telemetry import Telemetry
from gateway.types import ANYONE, Caller, Content, PromptResult


class GatewayViews(GatewayAttention, ABC):
    """The graph, the resources and the prompts of one gateway."""

    telemetry: Telemetry

    @property
    def library(self) -> ResourceLibrary:
        """The resources and prompts of the servers."""
        return ResourceLibrary(self._registry, self._view, self._servers.capabilities, self.gate)

    async def read(self, resource: str, *, caller: Caller = ANYONE) -> tuple[Content, ...]:
        """Read a resource of a server; see `ResourceLibrary.read`."""
        return await self.library.read(resource, caller=caller)

    async def prompt(
        self, prompt: str, arguments: Mapping[str, str] | None = None, *, caller: Caller = ANYONE
    ) -> PromptResult:
        """Fill in a prompt of a server; see `ResourceLibrary.prompt`."""
        return await self.library.prompt(prompt, arguments or {}, caller=caller)

    async def export_graph(
        self,
        form: GraphFormat = "turtle",
        *,
        centre: str = "",
        hops: int = 1,
        caller: Caller | None = None,
    ) -> str:
        """Write the graph as RDF, or draw it; see `gateway.index.graph_documents.export`."""
        return export(await self._view(), form, centre=centre, hops=hops, caller=caller)

    async def graph(self, *, caller: Caller | None = None) -> ToolNetwork:
        """Return a `networkx.MultiDiGraph` of what *caller* may see; None is the host, all of it.

        Tools are called by their ids. Each edge has its predicate as key, and ``role``,
        ``weight``, ``declared``, ``rule``, ``path`` and ``line`` as data.
        """
        return graph_of(await self._view(), caller).to_networkx()

    async def propose_edges(
        self, proposer: Proposer, *, servers: Sequence[str] = (), caller: Caller | None = None
    ) -> EdgeProposals:
        """Ask a chat model which tools belong together; see `search.expand.edge_proposals`."""
        return await propose(
            await self._view(), proposer, self.telemetry, servers=servers, caller=caller
        )
