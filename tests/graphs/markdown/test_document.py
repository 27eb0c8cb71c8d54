from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import parse, render
from graphs.errors import DocumentError
from graphs.facts import PREDICATES
from graphs.markdown import LINK_LISTS, TEXT_LISTS, Document, Edge, Link, Section, Text
from graphs.parameters import MAX_DOCUMENT_LINES

THIS = {"article", "document", "this article", "this document"}
ANY = st.characters(blacklist_characters="\r\0", blacklist_categories=["Cs"])
WILD = st.characters(blacklist_categories=())
PIECES = [
    "---\n", "title: a\n", "graph_edges: [{predicate: requires, object: b}]\n", "\n", "\n\n", "# ",
    "## ", "a", "b", " ", "    ", "- ", "> ", "1. ", "===\n", "[[", "]]", "|", "](b.md)", "[", "`",
    "```\n", "--requires-->", "<!--", "-->", "<b>", "#", "\t", "\\", "天", "é",
]  # fmt: skip
ANY_TEXT = st.text(ANY, min_size=1, max_size=12).filter(lambda text: text == text.strip() != "")
WORD = st.text(string.ascii_letters + "é天и", min_size=1, max_size=8)
TARGET = ANY_TEXT.filter(lambda text: text.casefold() not in THIS)
TEXTS = st.lists(ANY_TEXT, max_size=2).map(tuple)
LINKS = st.lists(
    st.builds(Link, target=TARGET, label=st.just("") | ANY_TEXT, types=TEXTS, same_as=TEXTS),
    max_size=2,
).map(tuple)
KNOWN = st.sampled_from(sorted(PREDICATES))
WEIGHT = st.just(1.0) | st.floats(0, 1, exclude_min=True)
EDGES = st.lists(
    st.builds(Edge, subject=TARGET, predicate=KNOWN, object=TARGET, weight=WEIGHT),
    max_size=3,
    unique=True,
).map(tuple)
BANS = st.lists(
    st.builds(Edge, subject=TARGET, predicate=st.just("") | KNOWN, object=TARGET), max_size=2
).map(tuple)
LANGUAGE = st.sampled_from(["", "de", "zh-Hans"])
OTHER_TEXTS = st.lists(
    st.builds(
        Text,
        predicate=KNOWN | st.just("https://e.org/p"),
        value=ANY_TEXT,
        language=LANGUAGE,
        datatype=st.sampled_from(["", "xsd:date", "https://e.org/d"]),
    ),
    max_size=3,
).map(tuple)
PREFIXES = st.sampled_from([(), (("ex", "https://e.org/"),)])
SECTIONS = st.lists(
    st.builds(Section, heading=WORD, level=st.integers(1, 6), text=st.just("") | WORD), max_size=3
)
DOCUMENTS = st.builds(
    Document,
    id=TARGET,
    title=ANY_TEXT,
    url=st.just("") | ANY_TEXT,
    summary=st.just("") | ANY_TEXT,
    search_text=st.just("") | ANY_TEXT,
    published=st.just("") | ANY_TEXT,
    modified=st.sampled_from(["", "2026-11-21"]),
    source_project=st.just("") | ANY_TEXT,
    **dict.fromkeys(TEXT_LISTS, TEXTS),
    **dict.fromkeys(LINK_LISTS, LINKS),
    edges=EDGES,
    forbidden=BANS,
    texts=OTHER_TEXTS,
    prefixes=PREFIXES,
    sections=SECTIONS.map(tuple),
    language=LANGUAGE,
)


@settings(deadline=None)
@given(DOCUMENTS)
def test_parse_restores_a_rendered_document(document: Document) -> None:
    text = render(document)

    assert document == parse(text)
    assert text == render(parse(text))


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_parse_restores_a_parsed_and_rendered_document(text: str) -> None:
    try:
        document = parse(text, path="a.md")
    except DocumentError:
        return

    assert document == parse(render(document), path="a.md")


@settings(deadline=None)
@given(st.text(WILD, max_size=200))
def test_parse_raises_only_document_errors_for_any_text(text: str) -> None:
    with contextlib.suppress(DocumentError):
        parse(render(parse(text, path="a.md")), path="a.md")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "[" * 1_000_000,
        "[[" * 500_000,
        "](a" * 300_000,
        "--" * 500_000 + "-->",
        "`a" * 500_000,
        "- " * 500_000,
        ">" * 1_000_000,
        "天" * 1_000_000,
    ],
    ids=["line", "brackets", "wikilinks", "links", "arrow", "code", "lists", "quotes", "cjk"],
)
def test_parse_reads_very_long_lines(text: str) -> None:
    """The time is linear in the length, so no document can block a build."""
    assert () == parse(text, path="a.md").edges


@pytest.mark.parametrize("text", ["a" * 3_000_000, "# a\n" * (MAX_DOCUMENT_LINES + 1)])
def test_parse_refuses_a_too_large_text(text: str) -> None:
    with pytest.raises(DocumentError, match="split the document"):
        parse(text, path="a.md")


def test_path_of_a_document_gives_its_id_and_resolves_its_links() -> None:
    """Paths are relative, so a folder of documents can be moved as a whole."""
    document = parse("[b](../b.md) --requires--> [c](c.md)\n\n[d](./d.md)", path="x/a.md")

    expected = (
        Edge(subject="b.md", predicate="requires", object="x/c.md"),
        Edge(subject="urn:tool-gateway:doc:x/a", predicate="mentions", object="x/d.md"),
    )
    assert (expected, "a") == (document.edges, document.title)


def test_edge_in_front_matter_and_body_has_the_line_of_the_body() -> None:
    """The body is the part that people read."""
    text = "---\nid: a\ngraph_edges: [{predicate: requires, object: b}]\n---\n--requires--> b\n"
    other = Edge(subject="x", predicate="requires", object="y")

    (edge,) = parse(text).edges

    assert ("a", "requires", "b", 5) == (edge.subject, edge.predicate, edge.object, edge.line)
    written = render(Document(id="a", title="a", edges=(other,)))
    assert '  - {subject: "x", predicate: "requires", object: "y"}\n' in written


def test_parse_ignores_windows_line_ends_and_a_byte_order_mark() -> None:
    text = "---\nid: a\ntitle: b\n---\n\n# c\n\nd\ne\n"

    assert parse(text) == parse("\ufeff" + text.replace("\n", "\r\n"))


@pytest.mark.parametrize(
    "text",
    ["a--requires--> b", "a -- requires --> b", "--> b", "a --x-->", "`a --requires--> b` c"],
)
def test_parse_does_not_read_text_similar_to_an_arrow_as_a_statement(text: str) -> None:
    assert () == parse(text, path="a.md").edges


def test_parse_reads_an_arrow_in_a_heading_on_two_lines() -> None:
    """The heading is rendered on one line, with the same meaning."""
    document = parse("---\nid: a\n---\nb\n--requires--> c\n===\n")

    assert ["b"] == [edge.subject for edge in document.edges]
    assert document == parse(render(document))


def test_parse_accepts_keys_in_snake_case_and_camel_case() -> None:
    front = "id: a\ntitle: a\n{}: [x]\n"

    for camel, snake in (("graphNextSteps", "graph_next_steps"), ("entityHints", "entity_hints")):
        texts = (f"---\n{front.format(key)}---\n" for key in (camel, snake))
        assert 1 == len({parse(text) for text in texts})


def test_document_can_have_an_id_and_another_url() -> None:
    url_only = parse("---\ncanonical_url: https://e.org/a\ntitle: a\n---\n")
    two = parse("---\nid: a\ncanonical_url: https://e.org/a\ntitle: a\n---\n")

    assert [("https://e.org/a", ""), ("a", "https://e.org/a")] == [
        (document.id, document.url) for document in (url_only, two)
    ]
