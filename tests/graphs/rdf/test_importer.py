"""Turtle and JSON-LD, read as facts."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphs.errors import DocumentError
from graphs.facts.extraction import extract_facts
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import CONTEXT_IRI, PREDICATES, context
from graphs.markdown.dialect import parse
from graphs.parameters import MAX_RDF_CHARS
from graphs.rdf.serialization import from_json_ld, from_turtle, to_json_ld, to_n_triples, to_turtle

# rdflib 7 reads JSON-LD through a class of its own that it calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")

TEXT = """---
id: urn:t:a
title: {en: create invoice, de: Rechnung erstellen}
date_published: 2026-11-21
graph_groups: billing
requires: urn:t:b
rdf_properties: {"https://e.org/p": {value: "1", datatype: "xsd:integer"}}
---
Text.
"""
FACTS = extract_facts([parse(TEXT, path="x/a b.md")])
FETCHING = {
    "string": '{"@context": "https://e.org/c.jsonld", "name": "a"}',
    "file": '{"@context": ["file:///etc/passwd"], "name": "a"}',
    "nested": '{"@graph": [{"a": {"@context": "https://e.org/c"}}]}',
    "import": '{"@context": {"@import": "https://e.org/c"}}',
    "scoped": '{"@context": {"p": {"@id": "urn:p", "@context": "https://e.org/c"}}}',
}


@pytest.mark.parametrize("form", ["turtle", "json-ld", "nt"])
def test_what_we_export_we_read_back(form: str) -> None:
    """The same triples, written out again."""
    write, read = {
        "turtle": (to_turtle, from_turtle),
        "json-ld": (to_json_ld, from_json_ld),
        "nt": (to_n_triples, from_turtle),
    }[form]

    assert to_n_triples(FACTS) == to_n_triples(read(write(FACTS)))
    said = {(f.subject, f.predicate, f.object, f.literal, f.language, f.datatype) for f in FACTS}
    assert said <= {
        (f.subject, f.predicate, f.object, f.literal, f.language, f.datatype)
        for f in read(write(FACTS))
    }


NODE = st.from_regex(r"urn:t:[a-zé天]{1,6}", fullmatch=True)
LITERAL = st.builds(
    Fact,
    subject=NODE,
    predicate=st.sampled_from(["name", "description", "https://e.org/p"]),
    object=st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12),
    literal=st.just(True),
    language=st.sampled_from(["", "de", "zh-hans"]),
    declared=st.just(True),
)
EDGE = st.builds(
    Fact,
    subject=NODE,
    predicate=st.sampled_from(sorted({*PREDICATES} - {"type"})),
    object=NODE,
    literal=st.just(False),
    declared=st.just(True),
)


def _said(predicate: str, text: str, datatype: str = "") -> Fact:
    return Fact(
        subject="urn:t:a",
        predicate=predicate,
        object=text,
        literal=True,
        datatype=datatype,
        declared=True,
    )


_XSD = "http://www.w3.org/2001/XMLSchema#"
NOTHINGS = [
    _said("https://e.org/p", ""),
    _said("https://e.org/p", "0", _XSD + "integer"),
    _said("https://e.org/p", "false", _XSD + "boolean"),
    _said("https://e.org/p", "1", _XSD + "integer"),
]


@settings(deadline=None, max_examples=40)
@given(st.lists(LITERAL | EDGE, max_size=6))
@example([_said("name", ""), _said("name", "0")])
@example([_said("name", "0"), _said("name", "")])
@example(NOTHINGS)
@example(NOTHINGS[::-1])
def test_every_statement_survives_turtle_and_json_ld(stated: list[Fact]) -> None:
    """In every script and language."""
    for found in (from_turtle(to_turtle(stated)), from_json_ld(to_json_ld(stated))):
        assert set(stated) == set(found)


@pytest.mark.parametrize("number", ["NaN", "INF"])
def test_a_number_that_json_lacks_is_written_as_a_text(number: str) -> None:
    """So that every reader of JSON can read it."""
    text = to_json_ld([_said("https://e.org/p", number, _XSD + "double")])

    assert {"type": "xsd:double", "@value": number} == json.loads(text)["https://e.org/p"]


def test_facts_keep_the_order_of_the_text_and_number_blank_nodes() -> None:
    """The same text gives the same facts on every machine."""
    text = '@prefix s: <https://schema.org/> .\n<urn:a> s:author [ s:name "b" ] ; s:name "a" .\n'

    found = from_turtle(text, path="x.ttl", declared=False)

    assert [("urn:a", "author", "urn:tool-gateway:blank:0"), ("urn:a", "name", "a")] == [
        (f.subject, f.predicate, f.object) for f in found if f.subject == "urn:a"
    ]
    assert {("x.ttl", False)} == {(f.path, f.declared) for f in found}
    assert found == from_turtle(text, path="x.ttl", declared=False)


def test_our_own_context_is_the_packaged_one_and_equals_the_vocabulary() -> None:
    """One table of words; the file is for others."""
    packaged = files("graphs").joinpath("context.jsonld").read_text(encoding="utf-8")
    assert {"@context": json.loads(json.dumps(context()))} == json.loads(packaged)
    for named in (CONTEXT_IRI, [CONTEXT_IRI, {"x": "urn:x"}]):
        text = json.dumps({"@context": named, "id": "urn:a", "requires": "urn:b", "name": "a"})
        expected = {("requires", "urn:b", False), ("name", "a", True)}
        assert expected == {(f.predicate, f.object, f.literal) for f in from_json_ld(text)}


@pytest.mark.parametrize("text", FETCHING.values(), ids=FETCHING)
def test_a_context_that_would_be_fetched_is_refused_before_parsing(text: str) -> None:
    """In all five shapes."""
    with pytest.raises(DocumentError, match=r"would have to be fetched|names a context"):
        from_json_ld(text, path="a.jsonld")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("{", "no JSON"),
        ('{"a": ' * 100_000, "no JSON, or nested too deeply"),
        ('{"a": ' * 70 + "1" + "}" * 70, "nested deeper than 64"),
        ("[" * 70 + "]" * 70, "nested deeper than 64"),
        ('{"@context": {"a": {"@id": 5}}, "a": 1}', "no json-ld"),
        ('{"@context": 5, "a": 1}', "the context 5 would have to be fetched"),
    ],
)
def test_a_broken_or_hostile_json_is_an_error(text: str, detail: str) -> None:
    """And nothing foreign."""
    with pytest.raises(DocumentError, match=detail):
        from_json_ld(text)


@pytest.mark.parametrize(
    "text", ["<urn:a> <urn:b>", "[" * 20_000, "<urn:a> <urn:b> " + "(" * 20_000, "\x00", "a b c ."]
)
def test_a_broken_or_hostile_turtle_is_an_error(text: str) -> None:
    """And nothing foreign."""
    with pytest.raises(DocumentError):
        from_turtle(text, path="a.ttl")


def test_too_much_is_refused() -> None:
    """A bound that is told is better than a machine that stands still."""
    with pytest.raises(DocumentError, match="more than 64 MB"):
        from_turtle(" " * (MAX_RDF_CHARS + 1))


WATCHED = """
import sys, json
opened = []
def hook(event, args):
    if event.startswith(("socket.", "urllib.")) or (event == "open" and "passwd" in str(args[0])):
        opened.append(event)
sys.addaudithook(hook)
from graphs.rdf.serialization import from_json_ld, from_turtle
from graphs.rdf.sparql import answer
from graphs.rdf.serialization import to_rdf
from graphs import GraphError, extract_facts, parse
texts, queries, turtles, documents = json.loads(sys.stdin.read())
refused = 0
for call, given in ((from_json_ld, texts), (lambda q: answer(to_rdf([]), q), queries),
                    (from_turtle, turtles), (lambda t: extract_facts([parse(t)]), documents)):
    for text in given:
        try:
            call(text)
        except GraphError:
            refused += 1
print(json.dumps([opened, refused]))
"""


def test_nothing_is_fetched_whatever_a_text_says() -> None:
    """Proved from below: a hook sees every socket and every file that Python opens."""
    queries = [
        "SELECT * FROM <http://127.0.0.1:9/x> { ?s ?p ?o }",
        "ASK { SERVICE <http://127.0.0.1:9/x> { ?s ?p ?o } }",
        "LOAD <file:///etc/passwd>",
    ]
    turtles = ["@base <http://127.0.0.1:9/> . <a> <http://www.w3.org/2002/07/owl#imports> <b> ."]
    front = (
        "---\ntitle: a\nid: http://127.0.0.1:9/a\nrdf_prefixes: {x: 'http://127.0.0.1:9/'}\n---\n"
    )
    body = "![i](http://127.0.0.1:9/i.md) [[http://127.0.0.1:9/b]] [c](file:///etc/passwd.md)\n"
    documents = [front + body]
    given = json.dumps([[*FETCHING.values()], queries, turtles, documents])

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WATCHED],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [[], 8] == json.loads(done.stdout)
