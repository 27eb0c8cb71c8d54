"""What RDF says of a statement, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import RDF, SKOS

from graphs.facts.extraction import extract_facts
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import FILE_BASE, PREDICATES
from graphs.markdown.dialect import parse
from graphs.rdf.serialization import (
    SCHEME,
    from_json_ld,
    from_turtle,
    to_json_ld,
    to_n_triples,
    to_rdf,
    to_turtle,
)
from graphs.rdf.shapes import validate

# rdflib 7 reads JSON-LD through a class of its own that it calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")

TEXT = """---
id: urn:t:a
title: a
graph_groups: [billing, money]
graph_edges:
  - {predicate: requires, object: "urn:t:b", weight: 0.123456789}
---
- money --broader--> urn:tool-gateway:concept:billing
"""
GUESS = Fact(
    subject="urn:t:b",
    predicate="nextStep",
    object="urn:t:a",
    literal=False,
    weight=0.00001,
    path="derived/usage é",
    line=7,
    origin="usage",
    declared=False,
)
FACTS = extract_facts([parse(TEXT), parse("---\nid: urn:t:b\ntitle: b\n---\n")], derived=[GUESS])
_ADDED = {"inScheme", "hasTopConcept", "wasDerivedFrom"}


def own(found: Sequence[Fact]) -> set[Fact]:
    """Leave out what an export adds of its own: the scheme and the provenance of documents."""
    return {f for f in found if f.predicate not in _ADDED and f.subject != str(SCHEME)}


FORMS = [(to_turtle, from_turtle), (to_json_ld, from_json_ld), (to_n_triples, from_turtle)]


@pytest.mark.parametrize(("write", "read"), FORMS)
def test_weight_and_origin_come_back(
    write: Callable[[Sequence[Fact]], str], read: Callable[[str], tuple[Fact, ...]]
) -> None:
    """And with them who stands for an edge: what a rule derived stays derived."""
    again = read(write(FACTS))

    said = next(f for f in FACTS if f.predicate == "requires")
    assert 0.123456789 == said.weight
    assert {f for f in FACTS if f.predicate == "nextStep"} == {GUESS}
    lines = {(f.subject, f.predicate, f.object, f.weight, f.origin, f.declared) for f in own(again)}
    assert lines == {
        (f.subject, f.predicate, f.object, f.weight, f.origin, f.declared) for f in FACTS
    }
    assert GUESS in again
    assert to_n_triples(FACTS) == to_n_triples(again)


@pytest.mark.parametrize(("write", "read"), FORMS)
@settings(max_examples=20)
@given(
    st.lists(
        st.builds(
            Fact,
            subject=st.sampled_from(["urn:t:a", "urn:t:b", "urn:t:é"]),
            predicate=st.sampled_from(sorted({*PREDICATES} - {"type", *_ADDED})),
            object=st.sampled_from(["urn:t:a", "urn:t:c", "urn:t:天"]),
            literal=st.just(False),
            weight=st.floats(0, 1, exclude_min=True),
            origin=st.sampled_from(["usage", 'a "rule"\n']),
            path=st.sampled_from(["", "a b/c%.md"]),
            line=st.integers(0, 9999),
            declared=st.just(False),
        ),
        unique_by=lambda fact: (fact.subject, fact.predicate, fact.object),
    )
)
def test_any_weighed_edge_comes_back(
    write: Callable[[Sequence[Fact]], str],
    read: Callable[[str], tuple[Fact, ...]],
    stated: list[Fact],
) -> None:
    """To the last digit, in every form."""
    assert set(stated) == own(read(write(stated)))


def test_a_plain_edge_is_one_triple() -> None:
    """A graph without weights is no larger for it."""
    plain = extract_facts([parse("---\nid: urn:t:a\ntitle: a\nrequires: urn:t:b\n---\n")])

    assert not list(to_rdf(plain).subjects(RDF.type, RDF.Statement))


def test_top_concepts_are_those_that_none_is_broader_than() -> None:
    """A reader of SKOS begins there."""
    graph = to_rdf(FACTS)

    (top,) = graph.objects(SCHEME, SKOS.hasTopConcept)
    assert "urn:tool-gateway:concept:billing" == str(top)
    assert () == validate(FACTS)


def test_a_weight_that_is_none_is_a_fault_and_is_not_read() -> None:
    """A file from elsewhere may say anything."""
    text = to_turtle(FACTS)
    odd = text.replace("0.00001", '"much"').replace("0.123456789", "7.5")
    odd = odd.replace("tg:line 7", 'tg:line "99999999999"')

    found = from_turtle(odd)

    assert {1.0} == {fact.weight for fact in found}
    (guess,) = (fact for fact in found if fact.predicate == "nextStep")
    assert ("usage", 0, False) == (guess.origin, guess.line, guess.declared)


def test_a_node_about_no_statement_says_nothing() -> None:
    """What is not stated cannot be weighed; a statement of another name is a plain node."""
    bare = [fact for fact in from_turtle(to_turtle(FACTS)) if fact.predicate != "nextStep"]
    text = to_turtle([GUESS])
    without = "\n".join(line for line in text.splitlines() if "nextStep <urn:t:a>" not in line)
    foreign = text.replace("urn:tool-gateway:statement:", "urn:other:")

    assert "usage" not in {fact.origin for fact in bare}
    assert () == tuple(f for f in from_turtle(without) if f.origin)
    assert {""} == {fact.origin for fact in from_turtle(foreign)}
    assert FILE_BASE + "derived/usage%20%C3%A9" in text
