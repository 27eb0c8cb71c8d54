from __future__ import annotations

import pytest

from graphs import parse
from graphs.errors import DocumentError
from graphs.markdown import Edge, add_edge

EDGE = Edge(subject="shop/pay", predicate="requires", object="shop/login")
ROW = '{subject: "shop/pay", predicate: "requires", object: "shop/login"}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\ntitle: T\n---\nText\n", f"---\ntitle: T\ngraph_edges:\n  - {ROW}\n---\nText\n"),
        (
            "---\ntitle: T\r\ngraph_edges: # mine\r\n- {predicate: requires, object: b}\r\n---",
            (
                f"---\ntitle: T\r\ngraph_edges: # mine\r\n- {ROW}\r\n"
                "- {predicate: requires, object: b}\r\n---"
            ),
        ),
        ("# Title\n\nText", f"---\ngraph_edges:\n  - {ROW}\n---\n# Title\n\nText"),
        (
            "---\ntitle: T\ngraphEdges: [{predicate: requires, object: b}]\n---\n",
            (
                "---\ntitle: T\ngraphEdges: [{predicate: requires, object: b}]\n"
                f"graph_edges:\n  - {ROW}\n---\n"
            ),
        ),
    ],
    ids=["no list", "a list", "no front matter", "another spelling"],
)
def test_add_edge_adds_one_row_and_changes_no_other_text(before: str, after: str) -> None:
    assert after == add_edge(before, EDGE)
    assert EDGE in parse(after).edges


def test_add_edge_adds_a_forbidden_edge_to_the_list_of_forbidden_edges() -> None:
    text = add_edge("---\ntitle: T\n---\n", EDGE, forbidden=True)

    assert ((), (EDGE,)) == (parse(text).edges, parse(text).forbidden)


def test_add_edge_does_not_repeat_an_existing_edge() -> None:
    text = add_edge("---\ntitle: T\n---\n", EDGE)

    assert text == add_edge(text, EDGE)


@pytest.mark.parametrize("name", ['a"}\n---\n# x', "a --> b", "a\n  - b", "*x", "שלום", "#", "`a`"])
def test_add_edge_escapes_names_that_could_end_the_row_or_the_front_matter(name: str) -> None:
    edge = Edge(subject=name, predicate="nextStep", object=name)

    text = add_edge("---\ntitle: T\n---\nText\n", edge)

    assert (edge,) == parse(text).edges
    assert "Text" == parse(text).sections[0].text


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: T\ngraph_edges: [{predicate: requires, object: b}]\n---\n",
        "---\ntitle: T\ngraph_edges:\n---\n",
        "---\ntitle: T\nx_long: " + "a" * 65_500 + "\n---\n",
    ],
    ids=["on one line", "without rows", "too long"],
)
def test_add_edge_refuses_text_that_cannot_be_edited_safely(text: str) -> None:
    """The message contains the row, so that a person can add it."""
    with pytest.raises(DocumentError, match=r"t\.md.* by hand") as error:
        add_edge(text, EDGE, path="t.md")

    assert ROW in str(error.value)


def test_add_edge_refuses_an_invalid_document() -> None:
    with pytest.raises(DocumentError, match=r"t\.md:1: the front matter is not closed"):
        add_edge("---\ntitle: T", EDGE, path="t.md")
