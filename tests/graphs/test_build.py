"""Documents become facts."""

from __future__ import annotations

from graphs.body import Edge, Section
from graphs.build import Fact, facts
from graphs.document import Document
from graphs.fields import Link
from graphs.vocabulary import CONCEPT_BASE


def links(*targets: str) -> tuple[Link, ...]:
    return tuple(Link(target=target) for target in targets)


def objects(stated: tuple[Fact, ...], predicate: str) -> list[str]:
    return [fact.object for fact in stated if fact.predicate == predicate]


def test_the_hosts_names_come_first_and_forgive_spelling() -> None:
    """A host's file may say a tool's name as people say it."""
    document = Document(id="urn:d:1", title="Plan", requires=links("Create Invoice", "b/Send-It"))
    names = {"create_invoice": "tool:1", "b/send_it": "tool:2"}

    assert ["tool:1", "tool:2"] == objects(facts([document], names=names), "requires")


def test_an_exact_name_beats_a_forgiving_one() -> None:
    """``createInvoice`` and ``create_invoice`` can be two tools."""
    names = {"createInvoice": "tool:1", "create_invoice": "tool:2"}
    document = Document(
        id="urn:d:1", title="Plan", related=links("create_invoice", "CreateInvoice")
    )

    expected = ["tool:2", CONCEPT_BASE + "createinvoice"]
    assert expected == objects(facts([document], names=names), "relatedTo")


def test_a_hosts_file_speaks_about_the_tool_it_is_named_after() -> None:
    """By title, by file name, or by id; and the tool's own document stays itself."""
    names = {"create_invoice": "tool:1", "send": "tool:2", "urn:alias": "tool:3"}
    documents = [
        Document(id="tool:1", title="send", summary="s"),
        Document(id="urn:d:1", title="Create invoice", tags=("a",)),
        Document(id="urn:d:2", path="x/send.md", title="How to send", tags=("b",)),
        Document(id="urn:alias", title="other", tags=("c",)),
    ]

    stated = facts(documents, names=names)

    assert [("tool:1", "a"), ("tool:2", "b"), ("tool:3", "c")] == [
        (fact.subject, fact.object) for fact in stated if fact.predicate == "keywords"
    ]


def test_an_edge_reaches_a_node_that_has_no_document() -> None:
    """A graph file alone, over a catalog that wrote none, must work."""
    document = Document(
        id="urn:d:1",
        title="Plan",
        edges=(Edge(subject="send", predicate="requires", object="create"),),
    )

    stated = facts([document], names={"send": "tool:1", "create": "tool:2"})

    assert ("tool:1", "requires", "tool:2") in [(f.subject, f.predicate, f.object) for f in stated]


def test_of_equal_facts_the_declared_one_stays() -> None:
    """What the host says weighs more than what an upstream says of itself."""
    upstream = Document(
        id="urn:t:1", title="a", path="up", requires=links("urn:t:2"), declared=False
    )
    host = Document(id="urn:t:1", title="a", path="host", requires=links("urn:t:2"))

    for order in ([upstream, host], [host, upstream]):
        assert {("host", True)} == {(fact.path, fact.declared) for fact in facts(order)}


def test_a_concept_keeps_the_label_of_its_link() -> None:
    """Ids are for machines."""
    group = Link(target="billing_v2", label="Billing")

    stated = facts([Document(id="urn:t:1", title="a", groups=(group,))])

    assert ["Billing"] == objects(stated, "prefLabel")


def test_texts_carry_the_language_and_empty_ones_are_left_out() -> None:
    """A label without a language is a label in no language."""
    document = Document(
        id="urn:t:1",
        title="Rechnung",
        language="de",
        types=("https://e.org/T",),
        sections=(Section(heading="", level=1, text=""),),
    )

    stated = facts([document])

    assert [("name", "de")] == [(f.predicate, f.language) for f in stated if f.literal]
    assert "https://e.org/T" in objects(stated, "type")


def test_no_documents_state_nothing() -> None:
    """An empty catalog is a catalog."""
    assert () == facts([])
