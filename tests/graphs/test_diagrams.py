from __future__ import annotations

from graphs import parse
from graphs.diagrams import to_dot, to_mermaid
from graphs.facts import extract_facts
from graphs.graph_builder import compile_facts

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
INDEX = compile_facts(FACTS)


def test_diagram_contains_names_and_predicates() -> None:
    """Quotes in names are escaped, so that a name cannot end its quotes in the diagram."""
    picture = to_mermaid(INDEX)

    assert picture.startswith("graph LR\n")
    assert '["Say &quot;hi&quot; &lt;now&gt;"]' in picture
    assert "  n0 -->|requires| n2\n" in picture


def test_diagram_with_a_centre_contains_only_edges_near_it() -> None:
    expected = 'digraph {\n  rankdir=LR;\n  n0 [label="urn:t:c"];\n  n1 [label="b"];\n'

    assert expected + '  n1 -> n0 [label="requires"];\n}\n' == to_dot(INDEX, centre="urn:t:c")
    assert 'label="Say \\"hi\\" <now>"' in to_dot(INDEX, centre="urn:t:c", hops=2)
    assert 'graph LR\n  n0["b"]\n' == to_mermaid(INDEX, centre="urn:t:b", hops=0)


def test_diagram_of_an_unknown_centre_or_an_empty_graph_is_empty() -> None:
    assert "graph LR\n" == to_mermaid(compile_facts([]))
    assert 'graph LR\n  n0["no"]\n' == to_mermaid(INDEX, centre="no")
