"""Facts compiled."""

from __future__ import annotations

from graphs.facts.build import extract_facts
from graphs.graph import GraphIndex
from graphs.markdown.document import Document
from graphs.markdown.parts import Link

DOCUMENTS = [
    Document(
        id="urn:t:1",
        title="create_invoice",
        groups=(Link(target="billing"),),
        requires=(Link(target="urn:t:9"),),
    ),
    Document(id="urn:t:2", title="send_invoice", groups=(Link(target="billing"),)),
]
INDEX = GraphIndex.compile(extract_facts(DOCUMENTS))
BILLING = "urn:tool-gateway:concept:billing"


def test_documents_stand_first_and_everything_has_a_place() -> None:
    """A mask over documents is a prefix of a mask over nodes."""
    assert ("urn:t:1", "urn:t:2", BILLING, "urn:t:9") == INDEX.nodes
    assert (2, frozenset({"urn:t:1", "urn:t:2"})) == (INDEX.document_count, INDEX.documents)
    assert [0, 3, None] == [INDEX.position(node) for node in ("urn:t:1", "urn:t:9", "no")]


def test_nodes_and_edges_are_counted() -> None:
    """Type and text facts are no edges."""
    assert (4, 3) == (INDEX.node_count, INDEX.edge_count)


def test_a_node_is_called_by_its_name_or_its_id() -> None:
    """Something must stand in a picture."""
    assert ["create_invoice", "billing", "urn:t:9", "no"] == [
        INDEX.label(node) for node in ("urn:t:1", BILLING, "urn:t:9", "no")
    ]


def test_only_labels_without_a_document_are_concepts() -> None:
    """What one can use must be told from what only names a group."""
    assert [False, True, False] == [INDEX.is_concept(n) for n in ("urn:t:1", BILLING, "urn:t:9")]


def test_edges_are_found_from_both_ends() -> None:
    """By role, not by predicate."""
    (out,) = INDEX.outgoing("urn:t:1", "prerequisite")
    (back,) = INDEX.incoming("urn:t:9", "prerequisite")

    assert (out, ()) == (back, INDEX.incoming("urn:t:1", "prerequisite"))
    assert [0, 1] == INDEX.members(INDEX.positions[BILLING]).tolist()


def test_an_empty_graph_has_nothing() -> None:
    """An empty catalog is a catalog."""
    empty = GraphIndex.compile([])

    assert (0, 0, ()) == (empty.node_count, empty.edge_count, empty.nodes)
