"""The graph, written for others: RDF texts and pictures. The same facts, the same text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from graphs.build import Fact
from graphs.index import EDGE_ROLES, GraphIndex


def turtle(facts: Iterable[Fact]) -> str:
    """Write *facts* as Turtle."""
    return _rdf(facts, "turtle")


def n_triples(facts: Iterable[Fact]) -> str:
    """Write *facts* as N-Triples, sorted; empty without facts."""
    lines = sorted(filter(None, _rdf(facts, "nt").split("\n")))
    return "".join(f"{line}\n" for line in lines)


def json_ld(facts: Iterable[Fact]) -> str:
    """Write *facts* as JSON-LD with the context of the vocabulary inside."""
    text = _rdf(facts, "json-ld")
    return json.dumps(_ordered(json.loads(text)), ensure_ascii=False, indent=2) + "\n"


def mermaid(index: GraphIndex, *, centre: str | None = None, hops: int = 1) -> str:
    """Draw the graph as a Mermaid flow chart.

    Args:
        index: The graph.
        centre: A node id: only what is at most *hops* edges away is drawn; None draws all.
        hops: How far from the centre, in edges of any direction.
    """
    edges = list(_edges(index, centre, hops))
    names = _names(edges, centre)
    lines = [f'  {name}["{_mermaid_text(index.label(node))}"]' for node, name in names.items()]
    lines += [f"  {names[e.subject]} -->|{e.predicate}| {names[e.object]}" for e in edges]
    return "\n".join(["graph LR", *lines]) + "\n"


def dot(index: GraphIndex, *, centre: str | None = None, hops: int = 1) -> str:
    """Draw the graph in the DOT language; the arguments are those of `mermaid`."""
    edges = list(_edges(index, centre, hops))
    names = _names(edges, centre)
    lines = [f"  {name} [label={_dot_text(index.label(node))}];" for node, name in names.items()]
    lines += [
        f"  {names[e.subject]} -> {names[e.object]} [label={_dot_text(e.predicate)}];"
        for e in edges
    ]
    return "\n".join(["digraph {", "  rankdir=LR;", *lines, "}"]) + "\n"


def _rdf(facts: Iterable[Fact], form: str) -> str:
    from graphs import rdf  # noqa: PLC0415  (rdflib is heavy: a warm start must not pay for it)

    return rdf.serialize(facts, form)


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=_sort_key)
    return value


_sort_key: Callable[[object], str] = json.JSONEncoder(sort_keys=True).encode


def _edges(index: GraphIndex, centre: str | None, hops: int) -> Iterator[Fact]:
    near = None if centre is None else _near(index, centre, hops)
    for key in sorted(index.forward):
        for fact in index.forward[key]:
            if near is None or (fact.subject in near and fact.object in near):
                yield fact


def _near(index: GraphIndex, centre: str, hops: int) -> frozenset[str]:
    near = {centre}
    for _ in range(hops):
        near |= {other for node in near for other in _touching(index, node)}
    return frozenset(near)


def _touching(index: GraphIndex, node: str) -> Iterator[str]:
    for role in EDGE_ROLES:
        yield from (fact.object for fact in index.outgoing(node, role))
        yield from (fact.subject for fact in index.incoming(node, role))


def _names(edges: Iterable[Fact], centre: str | None) -> dict[str, str]:
    nodes = dict.fromkeys([] if centre is None else [centre])
    for edge in edges:
        nodes |= dict.fromkeys((edge.subject, edge.object))
    return {node: f"n{number}" for number, node in enumerate(nodes)}


def _mermaid_text(text: str) -> str:
    plain = " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;")
    return plain.replace("<", "&lt;").replace(">", "&gt;").replace("#", "&#35;")


def _dot_text(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
