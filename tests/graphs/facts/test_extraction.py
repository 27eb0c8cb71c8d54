from __future__ import annotations

from graphs import parse
from graphs.facts import CONCEPT_BASE, Fact, extract_facts
from graphs.markdown import Document, Edge, Link, Section


def links(*targets: str) -> tuple[Link, ...]:
    return tuple(Link(target=target) for target in targets)


def objects(stated: tuple[Fact, ...], predicate: str) -> list[str]:
    return [fact.object for fact in stated if fact.predicate == predicate]


def test_label_finds_a_host_name_in_any_spelling_before_a_document() -> None:
    """A document of the host may write a tool's name as people say it."""
    document = Document(id="urn:d:1", title="Plan", requires=links("Create Invoice", "b/Send-It"))
    names = {"create_invoice": "tool:1", "b/send_it": "tool:2"}

    assert ["tool:1", "tool:2"] == objects(extract_facts([document], names=names), "requires")


def test_label_finds_the_exact_name_before_a_similar_one() -> None:
    """``createInvoice`` and ``create_invoice`` can be two tools."""
    names = {"createInvoice": "tool:1", "create_invoice": "tool:2"}
    document = Document(
        id="urn:d:1", title="Plan", related=links("create_invoice", "CreateInvoice")
    )

    expected = ["tool:2", CONCEPT_BASE + "createinvoice"]
    assert expected == objects(extract_facts([document], names=names), "relatedTo")


def test_host_document_describes_the_tool_it_is_named_after() -> None:
    names = {"create_invoice": "tool:1", "send": "tool:2", "urn:alias": "tool:3"}
    documents = [
        Document(id="tool:1", title="send", summary="s"),
        Document(id="urn:d:1", title="Create invoice", tags=("a",)),
        Document(id="urn:d:2", path="x/send.md", title="How to send", tags=("b",)),
        Document(id="urn:alias", title="other", tags=("c",)),
    ]

    stated = extract_facts(documents, names=names)

    assert [("tool:1", "a"), ("tool:2", "b"), ("tool:3", "c")] == [
        (fact.subject, fact.object) for fact in stated if fact.predicate == "keywords"
    ]


def test_edge_may_connect_nodes_without_documents() -> None:
    """A host may write edges between tools that have no documents."""
    document = Document(
        id="urn:d:1",
        title="Plan",
        edges=(Edge(subject="send", predicate="requires", object="create"),),
    )

    stated = extract_facts([document], names={"send": "tool:1", "create": "tool:2"})

    assert ("tool:1", "requires", "tool:2") in [(f.subject, f.predicate, f.object) for f in stated]


def test_declared_fact_replaces_an_equal_undeclared_fact() -> None:
    """Facts of the host are trusted more than facts of an upstream."""
    upstream = Document(
        id="urn:t:1", title="a", path="up", requires=links("urn:t:2"), declared=False
    )
    host = Document(id="urn:t:1", title="a", path="host", requires=links("urn:t:2"))

    for order in ([upstream, host], [host, upstream]):
        assert {("host", True)} == {(fact.path, fact.declared) for fact in extract_facts(order)}


def test_concept_keeps_the_label_of_its_link() -> None:
    group = Link(target="billing_v2", label="Billing")

    stated = extract_facts([Document(id="urn:t:1", title="a", groups=(group,))])

    assert ["Billing"] == objects(stated, "prefLabel")


def test_facts_keep_the_language_of_texts_and_omit_empty_texts() -> None:
    document = Document(
        id="urn:t:1",
        title="Rechnung",
        language="de",
        types=("https://e.org/T",),
        sections=(Section(heading="", level=1, text=""),),
    )

    stated = extract_facts([document])

    assert () == extract_facts([])
    assert [("name", "de")] == [(f.predicate, f.language) for f in stated if f.literal]
    assert "https://e.org/T" in objects(stated, "type")


def derived(subject: str, predicate: str, target: str, weight: float = 0.5) -> Fact:
    return Fact(
        subject=subject,
        predicate=predicate,
        object=target,
        literal=False,
        weight=weight,
        origin="rule",
        declared=False,
    )


BAN = """---
id: urn:t:plan
title: plan
graph_forbid:
  - {subject: a, predicate: next_step, object: b}
  - {subject: a, predicate: relatedTo, object: c}
  - {subject: a, object: d}
  - {predicate: memberOf, object: g}
---
"""
GUESSES = [
    derived("urn:t:a", "nextStep", "urn:t:b"),
    derived("urn:t:b", "nextStep", "urn:t:a"),
    derived("urn:t:c", "relatedTo", "urn:t:a"),
    derived("urn:t:a", "requires", "urn:t:d"),
    derived("urn:t:plan", "memberOf", CONCEPT_BASE + "g"),
]


def documents_of(*labels: str) -> list[Document]:
    return [Document(id=f"urn:t:{label}", title=label) for label in labels]


def test_edge_forbidden_by_the_host_is_not_derived() -> None:
    """The edge ``related`` is then forbidden in both directions."""
    stated = extract_facts([parse(BAN), *documents_of("a", "b", "c", "d")], derived=GUESSES)

    expected = [("urn:t:b", "nextStep", "urn:t:a")]
    assert expected == [(f.subject, f.predicate, f.object) for f in stated if f.origin]


def test_upstream_cannot_forbid_edges_and_declared_edges_cannot_be_forbidden() -> None:
    host_document = Document(id="urn:t:a", title="a", next_steps=links("b"))
    stranger = parse(BAN, declared=False)
    host = parse(BAN)

    undeclared = extract_facts([stranger, *documents_of("a", "b", "c", "d")], derived=GUESSES)
    declared = extract_facts([host, host_document, *documents_of("b", "c", "d")], derived=GUESSES)

    assert len(GUESSES) == len([fact for fact in undeclared if fact.origin])
    assert [("urn:t:b", True)] == [
        (f.object, f.declared)
        for f in declared
        if f.predicate == "nextStep" and f.subject == "urn:t:a"
    ]


def test_declared_weight_replaces_the_weight_of_an_equal_derived_fact() -> None:
    """The declared weight may be higher or lower. If both facts are declared or both derived, the
    greater weight is used.
    """
    edge = Edge(subject="urn:t:a", predicate="nextStep", object="urn:t:b", weight=0.3)
    host = Document(id="urn:t:a", title="a", edges=(edge,))
    guess, surer = (derived("urn:t:a", "nextStep", "urn:t:b", weight) for weight in (0.5, 0.9))

    for guesses in ([guess, surer], [surer, guess]):
        stated = extract_facts([host], derived=guesses)
        assert [0.3] == [f.weight for f in stated if not f.literal][1:]
        assert [0.9] == [f.weight for f in extract_facts([], derived=guesses)]
