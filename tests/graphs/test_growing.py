"""A graph that changes: whatever way it came to be, it is what a fresh build makes of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import get_args

import pytest

from graphs.adjacency import ROLES, Role
from graphs.compiler import Compiler
from graphs.expansion import expand
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex
from graphs.markdown.document import Document
from graphs.markdown.parts import Edge, Link
from graphs.text_search import focused

LABELS = tuple("abcdefgh")
WORDS = ("create", "invoice", "invoices", "weather", "wether", "forecast", "createInvoice", "sea")
QUERIES = (*WORDS, "create the wether invoice", "invoyce", "forcast at sea", "")


def document(draw: random.Random, name: str) -> Document:
    """Write one that speaks of others by their names, and sometimes forbids."""
    declared = draw.random() < 0.3

    def links(*among: str) -> tuple[Link, ...]:
        return tuple(Link(target=each) for each in draw.choices(among, k=draw.choice((0, 0, 1, 2))))

    bans = (Edge(subject=draw.choice(LABELS), predicate="", object=draw.choice(LABELS)),)
    return Document(
        id=f"urn:t:{name}",
        path=f"{name}.md" if declared else "",
        title=draw.choice((name, draw.choice(LABELS), "Send")),
        summary=" ".join(draw.choices(WORDS, k=draw.choice((0, 2, 5)))),
        aliases=tuple(draw.choices(WORDS, k=draw.choice((0, 0, 1)))),
        groups=links("billing", "Billing", "sky"),
        related=links(*LABELS),
        requires=links(*LABELS, "Send", "host_a"),
        produces=links("data x", "data y"),
        consumes=links("data x", "data y"),
        forbidden=bans if declared and draw.random() < 0.4 else (),
        declared=declared,
    )


def rule(draw: random.Random) -> Fact:
    return Fact(
        subject=f"urn:t:{draw.choice(LABELS)}",
        predicate=draw.choice(("requires", "nextStep", "relatedTo")),
        object=f"urn:t:{draw.choice(LABELS)}",
        literal=False,
        weight=draw.choice((0.5, 1.0)),
        origin=draw.choice(("rule", "usage")),
        declared=False,
    )


def naming(draw: random.Random) -> Mapping[str, str]:
    names = ("a", "A", "host_a", "Send", "b_b")
    return {name: f"urn:t:{draw.choice(LABELS)}" for name in names if draw.random() < 0.4}


def same(fresh: GraphIndex, found: GraphIndex) -> None:
    """Compare everything that an answer is made of."""
    assert (fresh.nodes, fresh.labels, fresh.positions) == (
        found.nodes, found.labels, found.positions
    )  # fmt: skip
    assert (fresh.document_count, fresh.edge_count) == (found.document_count, found.edge_count)
    assert fresh.ranks.tolist() == found.ranks.tolist()
    assert fresh.facts == found.facts
    assert (dict(fresh.forward), dict(fresh.backward)) == (
        dict(found.forward), dict(found.backward)
    )  # fmt: skip
    for query in QUERIES:
        assert focused(fresh, query, limit=9) == focused(found, query, limit=9)
    for role in get_args(Role):
        assert expand(fresh, fresh.nodes, role=role, limit=99) == expand(
            found, fresh.nodes, role=role, limit=99
        )
        for node in fresh.nodes:
            assert expand(fresh, [node], role=role, limit=9) == expand(
                found, [node], role=role, limit=9
            )


@pytest.mark.parametrize("number", range(25))
def test_any_way_to_a_graph_gives_the_same_index(number: int) -> None:
    """Documents, names and rules come and go; the last index is the one of a fresh start."""
    draw = random.Random(number)  # noqa: S311  (the same graphs at every run; no secret)
    compiler = Compiler()
    documents: dict[str, Document] = {}
    names: Mapping[str, str] = {}
    rules: set[Fact] = set()
    for _ in range(8):
        some = draw.sample(LABELS, k=draw.choice((0, 1, 1, 3)))
        later = {key: each for key, each in documents.items() if key not in some}
        later |= {key: document(draw, key) for key in some if draw.random() < 0.7}
        told = naming(draw) if draw.random() < 0.3 else names
        derived = {each for each in rules if draw.random() < 0.8} | {rule(draw)}
        gone = [documents[key] for key in documents.keys() - later.keys()]
        gone += [each for key, each in documents.items() if key in later and later[key] != each]
        found = compiler.change(
            gone=gone,
            new=[each for key, each in later.items() if documents.get(key) != each],
            names=dict.fromkeys(names.keys() - told.keys(), "")
            | {name: node for name, node in told.items() if names.get(name) != node},
            unsaid=rules - derived,
            said=derived - rules,
        )
        documents, names, rules = later, told, derived

        fresh = Compiler().compile(documents.values(), names=names, derived=rules)
        same(fresh, found)


def test_a_change_works_out_what_changed_and_who_speaks_of_it() -> None:
    """One document more is one document, and those that name it."""
    compiler = Compiler()
    documents = [
        Document(id=f"urn:t:{at}", title=f"t{at}", requires=(Link(target="new"),) if at < 2 else ())
        for at in range(50)
    ]
    compiler.compile(documents)

    compiler.change(new=[Document(id="urn:t:x", title="other")])
    assert 1 == compiler.changed
    compiler.change(new=[Document(id="urn:t:y", title="new")])
    assert 3 == compiler.changed
    compiler.change(names={"new": "urn:t:7"})
    assert 2 < compiler.changed < 6
    compiler.change(gone=[documents[9]])
    assert 0 == compiler.changed


def test_an_index_that_is_held_does_not_change() -> None:
    """Readers keep what they have, however often the graph changes; what is unused is forgotten."""
    compiler = Compiler()
    first = compiler.compile(
        [Document(id="urn:t:a", title="a", requires=(Link(target="urn:t:b"),))]
    )
    held = dict(first.forward), dict(first.backward), first.facts

    found = first
    for number in range(40):
        many = tuple(Link(target=f"urn:n:{number}:{each}") for each in range(99))
        last = Document(id="urn:t:z", title="z", requires=many)
        found = compiler.change(new=[last])
        compiler.change(gone=[last])

    assert held == (dict(first.forward), dict(first.backward), first.facts)
    assert len(found.evidence) < 2000
    assert {role for _, role in found.forward} <= {*ROLES}
