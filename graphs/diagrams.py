"""The graph as a picture: Mermaid, DOT and SVG, of everything or around one node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape

from graphs.facts.fact import Fact
from graphs.graph import EDGE_ROLES, GraphIndex

_RING = 190
_BOX = (150, 34)
_LETTERS = 20


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


def svg(index: GraphIndex, *, centre: str | None = None, hops: int = 1) -> str:
    """Draw the graph as SVG: the centre in the middle, each hop a ring around it.

    The arguments are those of `mermaid`; without a centre all nodes stand on one ring.
    """
    edges = list(_edges(index, centre, hops))
    places = _places(_rings(_names(edges, centre), edges, centre))
    reach = max((abs(part) for place in places.values() for part in place), default=0) + _RING
    lines = [_svg_edge(edge, places) for edge in edges]
    lines += [_svg_node(index.label(node), place) for node, place in places.items()]
    size = f"{-reach:.0f} {-reach:.0f} {2 * reach:.0f} {2 * reach:.0f}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif">'
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#567"/></marker></defs>'
    )
    return "\n".join([head, arrow, *lines, "</svg>"]) + "\n"


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


def _rings(nodes: Iterable[str], edges: Iterable[Fact], centre: str | None) -> list[list[str]]:
    """Give the nodes by their distance from the centre."""
    left = dict.fromkeys(nodes)
    pairs = [(edge.subject, edge.object) for edge in edges]
    rings = [[centre]] if centre is not None else []
    if centre is None:
        return [[], list(left)]
    left.pop(centre)
    while left:
        last = set(rings[-1])
        ring = [n for n in left if any(n in pair and last & set(pair) for pair in pairs)]
        rings.append(ring or list(left))
        left = {node: None for node in left if node not in rings[-1]}
    return rings


def _places(rings: list[list[str]]) -> dict[str, tuple[float, float]]:
    places: dict[str, tuple[float, float]] = {}
    radius = 0.0
    for ring in rings:
        # Wide enough that the boxes of one ring do not touch.
        needed = len(ring) * _BOX[0] / 5
        radius = max(radius, needed) if places else 0.0 if len(ring) == 1 else needed
        for number, node in enumerate(ring):
            angle = 2 * math.pi * number / len(ring)
            places[node] = (radius * math.cos(angle), radius * math.sin(angle))
        radius += _RING
    return places


def _svg_edge(edge: Fact, places: dict[str, tuple[float, float]]) -> str:
    (x1, y1), (x2, y2) = places[edge.subject], places[edge.object]
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    x2 -= (x2 - x1) / length * _BOX[0] / 2
    y2 -= (y2 - y1) / length * _BOX[1]
    line = f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"'
    word = escape(edge.predicate.rpartition("#")[2].rpartition("/")[2])
    text = f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2:.0f}" font-size="10"'
    return (
        f'{line} stroke="#567" marker-end="url(#arrow)"/>'
        f'{text} text-anchor="middle" fill="#567">{word}</text>'
    )


def _svg_node(label: str, place: tuple[float, float]) -> str:
    plain = "".join(mark if mark.isprintable() else " " for mark in " ".join(label.split()))
    short = plain if len(plain) <= _LETTERS else plain[: _LETTERS - 1] + "…"
    x, y = place
    width, height = _BOX
    return (
        f'<g><title>{escape(plain)}</title><rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" '
        f'width="{width}" height="{height}" rx="6" fill="#eef" stroke="#567"/>'
        f'<text x="{x:.0f}" y="{y + 4:.0f}" font-size="12" text-anchor="middle">'
        f"{escape(short)}</text></g>"
    )
