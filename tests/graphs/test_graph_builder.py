from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx

from graphs.expansion import Role, expand
from graphs.facts import Fact, extract_facts
from graphs.graph import GraphIndex
from graphs.graph_builder import GraphBuilder, compile_facts
from graphs.markdown import Document, Edge, Link
from graphs.text_search import search_text

DOCUMENTS = [
    Document(id=f"urn:t:{n}", title=f"tool {n}", related=(Link(target="tool 0"),)) for n in range(5)
]
ROLES: tuple[Role, ...] = ("related", "next_step", "prerequisite")
WORDS = ("invoice", "weather", "create", "send", "sea")


def assert_same_answers(fresh: GraphIndex, rebuilt: GraphIndex) -> None:
    """Assert that both graphs have equal nodes, edges and search results."""
    assert nx.utils.graphs_equal(fresh.network, rebuilt.network)
    assert fresh.documents == rebuilt.documents
    for word in WORDS:
        assert fresh.texts.match(word).scores.tolist() == rebuilt.texts.match(word).scores.tolist()
        assert search_text(fresh, word, limit=9) == search_text(rebuilt, word, limit=9)
    for role in ROLES:
        seeds = fresh.documents[:3]
        assert expand(fresh, seeds, role=role, hops=2, limit=99) == expand(
            rebuilt, seeds, role=role, hops=2, limit=99
        )


def test_second_build_equals_the_build_of_a_new_builder() -> None:
    """The graph of the first build does not change."""
    builder = GraphBuilder()
    before = builder.build(DOCUMENTS)
    edges = before.network.number_of_edges()
    changed = [replace(DOCUMENTS[0], summary="Sends an invoice"), *DOCUMENTS[1:4]]

    after = builder.build(changed)

    fresh = compile_facts(extract_facts(changed))
    assert fresh.facts == after.facts
    assert_same_answers(fresh, after)
    assert () == search_text(before, "invoices", limit=5)
    assert edges == before.network.number_of_edges() > after.network.number_of_edges()


def test_second_build_reads_only_affected_documents() -> None:
    """A document is affected if it changed, or if one of its labels refers to another node."""
    builder = GraphBuilder()
    documents = [
        Document(id=f"urn:t:{n}", title=f"tool {n}", requires=(Link(target=f"Tool {n + 1}"),))
        for n in range(50)
    ]

    def reread_positions(number: int, **changes: str) -> list[int]:
        before = list(builder.build(documents).statements())
        documents[number] = replace(documents[number], **changes)  # type: ignore[arg-type]
        after = builder.build(documents).statements()
        pairs = enumerate(zip(before, after, strict=True))
        return [position for position, (old, new) in pairs if new is not old]

    assert [7] == reread_positions(7, summary="Sends an invoice")
    assert [6, 7] == reread_positions(7, title="another")
    assert [6, 7] == reread_positions(7, title="tool 7")
    assert [7, 8] == reread_positions(8, id="urn:t:new")


def random_document(draw: random.Random, number: int) -> Document:
    def links(labels: str) -> tuple[Link, ...]:
        chosen = draw.sample(labels.split(), k=draw.randrange(3))
        return tuple(Link(target=label) for label in chosen)

    bans = (Edge(subject="tool 1", predicate="", object="tool 2"),)
    return Document(
        id=f"urn:t:{draw.randrange(8)}" if draw.random() < 0.3 else f"urn:t:{number}",
        path=f"{number}.md",
        title=f"tool {number}",
        summary=" ".join(draw.choices(WORDS, k=3)),
        groups=links("billing sky mail"),
        related=links("tool-1 tool-2 tool-3 topic"),
        requires=links("urn:t:1 urn:t:2 urn:t:3"),
        consumes=links("id name"),
        produces=links("id name"),
        forbidden=bans if draw.random() < 0.1 else (),
        declared=draw.random() < 0.5,
    )


def derived_edge(subject: int, target: int) -> Fact:
    return Fact(
        subject=f"urn:t:{subject}",
        predicate="requires",
        object=f"urn:t:{target}",
        literal=False,
        weight=0.5,
        origin="rule",
        declared=False,
    )


def test_builds_after_any_changes_equal_the_build_of_a_new_builder() -> None:
    """Hypothesis adds, changes and removes documents and rules, and shares, forbids and repeats
    statements.
    """
    draw = random.Random(7)
    builder = GraphBuilder()
    documents: dict[int, Document] = {}
    derived: dict[tuple[int, int], tuple[Fact, ...]] = {}
    for _ in range(60):
        for _ in range(draw.randrange(4)):
            number = draw.randrange(8)
            if draw.random() < 0.3:
                documents.pop(number, None)
            else:
                documents[number] = random_document(draw, number)
            pair = draw.randrange(4), draw.randrange(4)
            if derived.pop(pair, None) is None:
                derived[pair] = (derived_edge(*pair),)

        rebuilt = builder.build(documents.values(), derived=derived.values())

        rules = [fact for facts in derived.values() for fact in facts]
        stated = extract_facts(documents.values(), derived=rules)
        assert stated == rebuilt.facts
        fresh = GraphBuilder().build(documents.values(), derived=derived.values())
        assert_same_answers(fresh, rebuilt)


def test_build_makes_a_new_network_only_if_an_edge_changed() -> None:
    builder = GraphBuilder()
    before = builder.build(DOCUMENTS)

    text = builder.build([replace(DOCUMENTS[0], summary="Sends an invoice"), *DOCUMENTS[1:]])
    edge = builder.build([replace(DOCUMENTS[0], related=()), *DOCUMENTS[1:]])

    assert before.network is text.network
    assert edge.network is not before.network


def test_node_of_two_documents_stays_until_both_are_removed() -> None:
    builder = GraphBuilder()
    group = (Link(target="billing"),)
    first, second = (
        Document(id=f"urn:t:{n}", title=f"tool {n}", groups=group, declared=False) for n in range(2)
    )

    both, remaining, empty = (builder.build(some) for some in ([first, second], [second], []))

    assert [3, 2, 0] == [len(graph.kinds) for graph in (both, remaining, empty)]
    assert ["billing", "billing"] == [
        graph.label("urn:tool-gateway:concept:billing") for graph in (both, remaining)
    ]
