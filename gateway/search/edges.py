"""The graph's edges in the catalog's words, for people: where each comes from. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from gateway.index.tool_graph import ToolGraph
from graphs.facts.fact import Fact
from graphs.graph import EDGE_PREDICATES
from graphs.markdown.document import Document, Link

_BY_LINK: Mapping[str, str] = {
    "memberOf": "groups",
    "consumes": "data_flow",
    "produces": "data_flow",
}
"""The rules whose edges stand in a tool's own document."""
_OWN = "catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEdge:
    """One edge, its ends named as people name them."""

    subject: str
    """A tool's id, or the label of another node."""
    predicate: str
    object: str
    """The same."""
    declared: bool
    """Whether a document of the host says it."""
    rule: str
    """The switch in `GraphOptions` of the rule that derived it; empty if declared."""
    source: str
    """File and line; empty if none says it."""


def edges(graph: ToolGraph) -> tuple[ShownEdge, ...]:
    """Return every edge between two nodes; what is only stored is none."""
    return tuple(_shown(graph, fact) for fact in _facts(graph))


def around(graph: ToolGraph, node: str) -> tuple[ShownEdge, ...]:
    """Return the edges that start or end at *node*, those that start there first."""
    touching = [fact for fact in _facts(graph) if node in (fact.subject, fact.object)]
    touching.sort(key=lambda fact: fact.subject != node)
    return tuple(_shown(graph, fact) for fact in touching)


def name_of(graph: ToolGraph, node: str) -> str:
    """Return a tool's id, or the label of another node."""
    return graph.index.label(node) if graph.entity(node) is None else graph.entity_id(node)


def written(graph: ToolGraph) -> tuple[Document, ...]:
    """Write what was derived as documents of the host: one a rule and tool.

    Their paths begin with the rule's name, so that an edge still tells where it comes from when
    somebody has made it their own.
    """
    links: dict[tuple[str, str], dict[str, list[Link]]] = {}
    for fact in _facts(graph):
        if not fact.declared and graph.entity(fact.subject) is not None:
            by_predicate = links.setdefault((_rule(fact), fact.subject), defaultdict(list))
            by_predicate[fact.predicate].append(Link(target=name_of(graph, fact.object)))
    return tuple(_document(graph, rule, subject, found) for (rule, subject), found in links.items())


def _document(graph: ToolGraph, rule: str, node: str, links: Mapping[str, list[Link]]) -> Document:
    tool = graph.entity_id(node)
    server, _, name = tool.partition("/")
    return Document(
        id=tool,
        # Quoted, a name of an upstream is one part of a path, whatever it holds.
        path=f"{rule}/{quote(server, safe='')}/{quote(name, safe='')}.md",
        title=graph.index.label(node),
        groups=tuple(links.get("memberOf", ())),
        consumes=tuple(links.get("consumes", ())),
        produces=tuple(links.get("produces", ())),
        requires=tuple(links.get("requires", ())),
        next_steps=tuple(links.get("nextStep", ())),
        related=tuple(links.get("relatedTo", ())),
    )


def _facts(graph: ToolGraph) -> Iterator[Fact]:
    for fact in graph.facts:
        if not fact.literal and fact.predicate in EDGE_PREDICATES:
            yield fact


def _shown(graph: ToolGraph, fact: Fact) -> ShownEdge:
    rule = "" if fact.declared else _rule(fact)
    place = f"{fact.path}:{fact.line}" if fact.line else fact.path
    return ShownEdge(
        subject=name_of(graph, fact.subject),
        predicate=fact.predicate,
        object=name_of(graph, fact.object),
        declared=fact.declared,
        rule=rule,
        source="" if rule else place,
    )


def _rule(fact: Fact) -> str:
    return fact.origin or _BY_LINK.get(fact.predicate, _OWN)
