"""The graph as a picture."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from graphs.diagrams import dot, mermaid, svg
from graphs.facts.build import extract_facts
from graphs.graph import GraphIndex
from graphs.markdown.document import Document, parse
from graphs.markdown.parts import Link

TEXT = """---
id: urn:t:a
title: Say "hi" <now>
language: de
graph_groups: billing
requires: urn:t:b
---
b --requires--> urn:t:c
"""
FACTS = extract_facts([parse(TEXT, path="x/a b.md"), parse("---\nid: urn:t:b\ntitle: b\n---\n")])
INDEX = GraphIndex.compile(FACTS)


def test_a_picture_shows_names_and_predicates() -> None:
    """Labels cannot break out of their quotes."""
    picture = mermaid(INDEX)

    assert picture.startswith("graph LR\n")
    assert '["Say &quot;hi&quot; &lt;now&gt;"]' in picture
    assert "  n0 -->|requires| n2\n" in picture


def test_a_picture_can_be_centred() -> None:
    """A whole catalog is no picture."""
    expected = 'digraph {\n  rankdir=LR;\n  n0 [label="urn:t:c"];\n  n1 [label="b"];\n'

    assert expected + '  n1 -> n0 [label="requires"];\n}\n' == dot(INDEX, centre="urn:t:c")
    assert 'label="Say \\"hi\\" <now>"' in dot(INDEX, centre="urn:t:c", hops=2)
    assert 'graph LR\n  n0["b"]\n' == mermaid(INDEX, centre="urn:t:b", hops=0)


@pytest.mark.parametrize("centre", [None, "urn:t:a", "urn:t:c", "nobody"])
def test_a_drawing_is_xml_with_every_node_and_no_hole_for_text(centre: str | None) -> None:
    """A label is data, also in a browser."""
    drawn = svg(INDEX, centre=centre, hops=3)

    root = ET.fromstring(drawn)  # noqa: S314  (we wrote it)
    titles = {title.text for title in root.iter("{http://www.w3.org/2000/svg}title")}
    assert titles == (
        {"nobody"} if centre == "nobody" else {'Say "hi" <now>', "billing", "b", "urn:t:c"}
    )


def test_boxes_of_one_ring_do_not_share_a_place() -> None:
    """Forty neighbours must be seen as forty."""
    hub = Document(
        id="hub", title="h" * 40, related=tuple(Link(target=f"urn:t:{n}") for n in range(40))
    )
    drawn = svg(GraphIndex.compile(extract_facts([hub])), centre="hub")

    root = ET.fromstring(drawn)  # noqa: S314  (we wrote it)
    places = [(box.get("x"), box.get("y")) for box in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert 41 == len(places) == len(set(places))
    assert "h" * 19 + "…" in drawn


def test_no_graph_is_an_empty_drawing() -> None:
    """An empty catalog is a catalog."""
    assert "</svg>" in svg(GraphIndex.compile([]))
