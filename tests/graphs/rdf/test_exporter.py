"""The graph written for others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from rdflib import Graph, Literal, URIRef

from graphs.facts.extraction import extract_facts
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import context
from graphs.markdown.dialect import parse
from graphs.rdf.serialization import to_json_ld, to_n_triples, to_rdf, to_turtle

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


@pytest.mark.parametrize(
    ("text", "form"),
    [(to_turtle(FACTS), "turtle"), (to_n_triples(FACTS), "nt"), (to_json_ld(FACTS), "json-ld")],
)
# rdflib 7 reads JSON-LD through a class of its own that it calls deprecated.
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
def test_each_form_says_the_same_graph(text: str, form: str) -> None:
    """What is exported must read back."""
    assert set(to_rdf(FACTS)) == set(Graph().parse(data=text, format=form))


def test_the_context_travels_inside() -> None:
    """Nobody must fetch anything to read our JSON-LD."""
    assert json.loads(to_json_ld(FACTS))["@context"] == json.loads(json.dumps(context()))


def test_triples_are_sorted() -> None:
    """A diff of two exports shows what changed."""
    lines = to_n_triples(FACTS).splitlines()

    assert sorted(lines) == lines
    assert "" == to_n_triples([])


def test_groups_are_concepts_of_one_scheme_and_documents_know_their_file() -> None:
    """The SKOS layer and the provenance."""
    text = to_n_triples(FACTS)

    assert (
        "<urn:tool-gateway:concept:billing> "
        "<http://www.w3.org/2004/02/skos/core#inScheme> "
        "<https://w3id.org/tool-gateway/ns#concepts> ."
    ) in text
    assert "#wasDerivedFrom> <urn:tool-gateway:file:x/a%20b.md> ." in text
    assert Literal('Say "hi" <now>', lang="de") in set(to_rdf(FACTS).objects())


def test_what_rdf_cannot_hold_is_made_harmless() -> None:
    """Ids and texts come from anywhere; an export must not break."""
    fact = Fact(
        subject="no iri <\ud800>",
        predicate="name",
        object="a\ud800",
        literal=True,
        language="not a tag",
        declared=True,
    )

    (triple,) = to_rdf([fact])

    expected = URIRef("urn:tool-gateway:doc:no%20iri%20%3C%3F%3E"), Literal("a\ufffd")
    assert expected == (triple[0], triple[2])


def test_importing_graphs_does_not_import_rdflib() -> None:
    """A warm start must not pay for it."""
    code = "import sys, graphs; print('rdflib' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False\n" == done.stdout
