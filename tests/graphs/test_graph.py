from __future__ import annotations

from graphs.facts import extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown import Document, Link
from graphs.parameters import MAX_GROUP_SIZE

DOCUMENTS = [
    Document(
        id="urn:t:1",
        title="send_invoice",
        path="a.md",
        groups=(Link(target="billing", line=4),),
        requires=(Link(target="urn:t:9"),),
    ),
    Document(id="urn:t:2", title="create_invoice", groups=(Link(target="billing"),)),
]
INDEX = compile_facts(extract_facts(DOCUMENTS))
BILLING = "urn:tool-gateway:concept:billing"


def test_graph_sorts_its_documents_by_label() -> None:
    """Documents with equal scores are found in this order."""
    assert ["urn:t:2", "urn:t:1"] == INDEX.documents


def test_renamed_returns_a_network_with_plain_values_and_provenance() -> None:
    network = INDEX.renamed({"urn:t:1": "one"})
    kinds = {node: data["kind"] for node, data in network.nodes(data=True)}

    assert {"one": "document", "urn:t:2": "document", BILLING: "group"} | {
        "urn:t:9": "other"
    } == kinds
    assert {
        "role": "member",
        "weight": 1.0,
        "declared": True,
        "rule": "",
        "path": "a.md",
        "line": 4,
    } == network.get_edge_data("one", BILLING, key="memberOf")
    assert 3 == network.number_of_edges() == INDEX.network.number_of_edges()


def test_network_contains_only_nodes_with_an_edge() -> None:
    """A document without an edge is found through the text index."""
    index = compile_facts(extract_facts([*DOCUMENTS, Document(id="urn:t:3", title="alone")]))

    assert {"urn:t:1", "urn:t:2", "urn:t:9", BILLING} == {*index.network}
    assert "document" == index.kinds["urn:t:3"] == index.renamed({}).nodes["urn:t:3"]["kind"]
    assert "alone" == index.label("urn:t:3")
    assert [] == index.edges_from("urn:t:3")


def test_label_returns_the_name_of_a_node_or_else_its_id() -> None:
    assert ["send_invoice", "billing", "urn:t:9", "no"] == [
        INDEX.label(node) for node in ("urn:t:1", BILLING, "urn:t:9", "no")
    ]


def test_is_concept_is_true_only_for_labels_without_a_document() -> None:
    assert [False, True, False] == [INDEX.is_concept(n) for n in ("urn:t:1", BILLING, "urn:t:9")]


def test_edges_from_and_edges_to_return_the_edges_of_a_role() -> None:
    (out,) = INDEX.edges_from("urn:t:1", "prerequisite")
    (back,) = INDEX.edges_to("urn:t:9", "prerequisite")

    assert out == back
    assert [] == INDEX.edges_to("urn:t:1", "prerequisite") == INDEX.edges_from("no", "member")
    assert ["urn:t:1", "urn:t:2"] == [edge.subject for edge in INDEX.members(BILLING, "member")]


def test_members_returns_nothing_for_a_concept_with_too_many_members() -> None:
    group = (Link(target="all"),)
    crowd = [Document(id=f"t{n}", title="t", groups=group) for n in range(MAX_GROUP_SIZE + 1)]

    index = compile_facts(extract_facts(crowd))

    assert () == index.members("urn:tool-gateway:concept:all", "member")
    assert len(crowd) == len(index.edges_to("urn:tool-gateway:concept:all", "member"))


def test_empty_graph_has_no_nodes_or_edges() -> None:
    empty = compile_facts([])

    assert (0, [], ()) == (len(empty.network), empty.documents, empty.facts)
