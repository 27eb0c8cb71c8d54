"""Graph page: neighbours of an entity, paths, prerequisites, and decisions on edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlencode

from gateway.errors import InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.index.graph_documents import load_proposals
from gateway.plugins.graph_tools.edge_proposals import GraphEdit
from gateway.plugins.graph_tools.graph_view import (
    GraphEdge,
    GraphNode,
    GraphView,
    Neighbourhood,
    PrerequisiteOrder,
)
from gateway.runtime.background_loop import in_thread
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import WRITE
from gateway.serve.console.page import (
    ConsoleOptions,
    PageView,
    Place,
    Redirect,
    Texts,
    Visit,
    page,
    path,
)
from gateway.serve.guard import CONSOLE

HOPS = ("1", "2", "3")
MAX_PROPOSED = 100
"""Maximum number of proposed edges on the page. After a decision, the next edge appears."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphData:
    """Graph nodes to choose from, and proposed edges."""

    query: str
    found: tuple[GraphNode, ...]
    """Nodes that match the query. Without a query, the nodes with the most edges."""
    proposed: tuple[GraphEdge, ...]
    omitted: int
    can_decide: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeData:
    """One node of the graph and its neighbourhood."""

    node: GraphNode
    hops: int
    around: Neighbourhood
    order: PrerequisiteOrder
    end: str
    """Node to which paths were requested, or ""."""
    paths: tuple[tuple[GraphEdge, ...], ...]
    fault: str
    can_decide: bool
    """True if the host has a folder of graph documents for decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionData:
    """A proposed edge, and the changes by a decision on it."""

    verdict: str
    """``accept`` or ``reject``."""
    subject: str
    predicate: str
    object: str
    path: str
    """Changed document, relative to the folder of documents."""
    diff: str
    """Change of the document. Empty if it contains the decision."""
    revision: str


class GraphPage:
    """Page that shows the graph and writes decisions."""

    place: ClassVar = Place(title="Graph", path="/graph")

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._folder = options.documents

    @page("GET", "/graph")
    async def choose(self, visit: Visit) -> PageView:
        """Find nodes that match the address's ``q``, and list the proposed edges."""
        view, query = await self._view(visit), visit.query.get("q", "")

        def data() -> GraphData:
            proposed = view.proposed()
            return GraphData(
                query=query,
                found=view.find(query),
                proposed=proposed[:MAX_PROPOSED],
                omitted=len(proposed[MAX_PROPOSED:]),
                can_decide=self._folder is not None,
            )

        return PageView(template="graph.html", title="Graph", data=await in_thread(data))

    @page("GET", "/graph/-/decide", right=WRITE)
    async def look(self, visit: Visit) -> PageView:
        """Show the changes by a decision on an edge."""
        edit = await self._edit(visit, visit.query)
        data = DecisionData(
            **_edge_of(visit.query), path=edit.path, diff=edit.diff, revision=edit.revision
        )
        return PageView(template="graph_decision.html", title="Decide on an edge", data=data)

    @page("POST", "/graph/-/decide", right=WRITE)
    async def decide(self, visit: Visit) -> Redirect:
        """Write a decision, unless the document changed since the difference was shown."""
        edit = await self._edit(visit, visit.form)
        edge, place = _edge_of(visit.form), edit.path
        if edit.revision != visit.form.get("revision"):
            note = f"{place} has changed since. Check the difference again."
            return Redirect(to=f"{CONSOLE}/graph/-/decide?{urlencode(edge)}", note=note)
        await in_thread(edit.write)
        self._gateway.reread_graph()
        note = "{verdict}ed: {subject} {predicate} {object}".format(**edge)
        return Redirect(to=f"{CONSOLE}/graph/{path(edge['subject'])}", note=f"{note}, in {place}")

    @page("GET", "/graph/{id:path}")
    async def show(self, visit: Visit) -> PageView:
        """Show the nodes within ``hops`` edges of a node, and its paths ``to`` another."""
        view, name = await self._view(visit), visit.path["id"]
        hops, end = visit.query.get("hops", ""), visit.query.get("to", "").strip()
        try:
            data = await in_thread(self._data, view, name, int(hops) if hops in HOPS else 1, end)
        except UnknownToolError as error:
            raise RefusedError(404, "unknown_entity", str(error)) from error
        return PageView(template="graph_node.html", title=f"Graph: {data.node.name}", data=data)

    def _data(self, view: GraphView, name: str, hops: int, end: str) -> NodeData:
        around, paths, fault = view.around(name, hops=hops), tuple[tuple[GraphEdge, ...], ...](), ""
        try:
            paths = view.paths(name, end) if end else ()
        except InvalidRequestError as error:
            fault = str(error)
        return NodeData(
            node=around.nodes[0],
            hops=hops,
            around=around,
            order=view.order(name),
            end=end,
            paths=paths,
            fault=fault,
            can_decide=self._folder is not None,
        )

    async def _view(self, visit: Visit) -> GraphView:
        snapshot = await self._gateway.snapshot()
        signals = await self._gateway.searches.cached.signals(snapshot, visit.caller.tenant)
        return GraphView(
            snapshot=snapshot,
            caller=visit.caller,
            learned=signals.learned,
            proposals=await in_thread(load_proposals, self._folder),
        )

    async def _edit(self, visit: Visit, fields: Texts) -> GraphEdit:
        folder, view, edge = self._folder, await self._view(visit), _edge_of(fields)
        if folder is None:
            raise RefusedError(
                404, "no_documents", "the gateway was started without a folder of graph documents"
            )
        return await in_thread(
            view.plan_edit,
            "reject" if edge["verdict"] == "reject" else "accept",
            edge["subject"],
            edge["predicate"],
            edge["object"],
            folder=folder,
        )


def _edge_of(fields: Texts) -> dict[str, str]:
    return {key: fields.get(key, "") for key in ("verdict", "subject", "predicate", "object")}
