from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rdflib import RDF, SKOS, Literal, URIRef

from graphs import parse
from graphs.errors import DocumentError
from graphs.facts import CONTEXT_IRI, FILE_BASE, PREDICATES, Fact, context, extract_facts
from graphs.parameters import MAX_RDF_CHARS
from graphs.rdf import (
    SCHEME,
    from_json_ld,
    from_turtle,
    to_json_ld,
    to_n_triples,
    to_rdf,
    to_turtle,
    validate,
)

# rdflib 7 reads JSON-LD with its own class ConjunctiveGraph, which it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")

TEXT = """---
id: urn:t:a
title: Say "hi" <now>
language: de
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
FACTS = extract_facts(
    [parse(TEXT, path="x/a b.md"), parse("---\nid: urn:t:b\ntitle: b\n---\n")], derived=[GUESS]
)
FORMS = [(to_turtle, from_turtle), (to_json_ld, from_json_ld), (to_n_triples, from_turtle)]


def test_json_ld_export_contains_its_context() -> None:
    """Readers of the JSON-LD must not need to fetch the context."""
    assert json.loads(to_json_ld(FACTS))["@context"] == json.loads(json.dumps(context()))


def test_to_turtle_sorts_triples_and_numbers_prefixes_in_order() -> None:
    """A diff of two exports then shows only the changes."""
    lines = to_n_triples(FACTS).splitlines()

    assert sorted(lines) == lines
    assert "" == to_n_triples([])
    facts = [text_fact(f"https://{host}.org/p", "x") for host in "cadb"]
    numbered = [
        f"@prefix ns{1 + index}: <https://{host}.org/> ." for index, host in enumerate("abcd")
    ]
    assert numbered == to_turtle(facts).splitlines()[:4]


def test_export_lists_concepts_in_a_scheme_and_names_the_file_of_a_document() -> None:
    """Readers of SKOS begin at the top concepts of a scheme."""
    graph = to_rdf(FACTS)

    (top,) = graph.objects(SCHEME, SKOS.hasTopConcept)
    assert "urn:tool-gateway:concept:billing" == str(top)
    assert 2 == len(list(graph.subjects(SKOS.inScheme, SCHEME)))
    assert "#wasDerivedFrom> <urn:tool-gateway:file:x/a%20b.md> ." in to_n_triples(FACTS)
    assert Literal('Say "hi" <now>', lang="de") in set(graph.objects())
    assert () == validate(FACTS)


def test_export_replaces_invalid_ids_and_texts() -> None:
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
    """Importing rdflib takes long, and most starts do not need it."""
    code = "import sys, graphs; print('rdflib' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False\n" == done.stdout


# Tests of weights and rules: facts that only an export adds.

_ADDED = {"inScheme", "hasTopConcept", "wasDerivedFrom"}


def without_export_facts(facts: Sequence[Fact]) -> set[Fact]:
    """Return *facts* without facts that only an export adds: the scheme of concepts and the files
    of documents.
    """
    return {f for f in facts if f.predicate not in _ADDED and f.subject != str(SCHEME)}


@pytest.mark.parametrize(("write", "read"), FORMS)
def test_import_restores_the_weight_and_rule_of_a_fact(
    write: Callable[[Sequence[Fact]], str], read: Callable[[str], tuple[Fact, ...]]
) -> None:
    """A fact derived by a rule must not become a declared fact."""
    again = read(write(FACTS))

    def statements(facts: Iterable[Fact]) -> set[tuple[object, ...]]:
        return {(f.subject, f.predicate, f.object, f.weight, f.origin, f.declared) for f in facts}

    assert statements(without_export_facts(again)) == statements(FACTS)
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
def test_import_restores_edges_with_any_weight(
    write: Callable[[Sequence[Fact]], str],
    read: Callable[[str], tuple[Fact, ...]],
    stated: list[Fact],
) -> None:
    """Every format keeps all digits of the weight."""
    assert set(stated) == without_export_facts(read(write(stated)))


def test_edge_without_a_weight_is_exported_as_one_triple() -> None:
    plain = extract_facts([parse("---\nid: urn:t:a\ntitle: a\nrequires: urn:t:b\n---\n")])

    assert not list(to_rdf(plain).subjects(RDF.type, RDF.Statement))


def test_import_reads_an_invalid_weight_as_1() -> None:
    text = to_turtle(FACTS)
    hostile = text.replace("0.00001", '"much"').replace("0.123456789", "7.5")
    hostile = hostile.replace("tg:line 7", 'tg:line "99999999999"')

    facts = from_turtle(hostile)

    assert {1.0} == {fact.weight for fact in facts}
    (guess,) = (fact for fact in facts if fact.predicate == "nextStep")
    assert ("usage", 0, False) == (guess.origin, guess.line, guess.declared)


def test_import_ignores_a_description_of_a_statement_that_is_not_made() -> None:
    """An ``rdf:Statement`` whose id was not written by an export is imported as a plain node."""
    bare = [fact for fact in from_turtle(to_turtle(FACTS)) if fact.predicate != "nextStep"]
    text = to_turtle([GUESS])
    without = "\n".join(line for line in text.splitlines() if "nextStep <urn:t:a>" not in line)
    foreign = text.replace("urn:tool-gateway:statement:", "urn:other:")

    assert "usage" not in {fact.origin for fact in bare}
    assert () == tuple(f for f in from_turtle(without) if f.origin)
    assert {""} == {fact.origin for fact in from_turtle(foreign)}
    assert FILE_BASE + "derived/usage%20%C3%A9" in text


# Tests of RDF from untrusted sources: texts that could cause a fetch.

FETCHING = {
    "string": '{"@context": "https://e.org/c.jsonld", "name": "a"}',
    "file": '{"@context": ["file:///etc/passwd"], "name": "a"}',
    "nested": '{"@graph": [{"a": {"@context": "https://e.org/c"}}]}',
    "import": '{"@context": {"@import": "https://e.org/c"}}',
    "scoped": '{"@context": {"p": {"@id": "urn:p", "@context": "https://e.org/c"}}}',
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


def text_fact(predicate: str, text: str, datatype: str = "") -> Fact:
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
    text_fact("https://e.org/p", ""),
    text_fact("https://e.org/p", "0", _XSD + "integer"),
    text_fact("https://e.org/p", "false", _XSD + "boolean"),
    text_fact("https://e.org/p", "1", _XSD + "integer"),
]


@settings(deadline=None, max_examples=40)
@given(st.lists(LITERAL, max_size=6))
@example([text_fact("name", ""), text_fact("name", "0")])
@example([text_fact("name", "0"), text_fact("name", "")])
@example(NOTHINGS)
@example(NOTHINGS[::-1])
def test_export_and_import_keep_every_text_in_every_format(stated: list[Fact]) -> None:
    turtles = from_turtle(to_turtle(stated)), from_turtle(to_n_triples(stated))
    for facts in (*turtles, from_json_ld(to_json_ld(stated))):
        assert set(stated) == set(facts)


@pytest.mark.parametrize("number", ["NaN", "INF"])
def test_to_json_ld_writes_numbers_that_json_lacks_as_texts(number: str) -> None:
    text = to_json_ld([text_fact("https://e.org/p", number, _XSD + "double")])

    assert {"type": "xsd:double", "@value": number} == json.loads(text)["https://e.org/p"]


def test_from_turtle_keeps_the_order_of_the_text_and_numbers_blank_nodes() -> None:
    """Equal texts give equal facts on every machine."""
    text = '@prefix s: <https://schema.org/> .\n<urn:a> s:author [ s:name "b" ] ; s:name "a" .\n'

    facts = from_turtle(text, path="x.ttl", declared=False)

    assert [("urn:a", "author", "urn:tool-gateway:blank:0"), ("urn:a", "name", "a")] == [
        (f.subject, f.predicate, f.object) for f in facts if f.subject == "urn:a"
    ]
    assert {("x.ttl", False)} == {(f.path, f.declared) for f in facts}
    assert facts == from_turtle(text, path="x.ttl", declared=False)


def test_packaged_context_equals_the_vocabulary() -> None:
    packaged = files("graphs").joinpath("context.jsonld").read_text(encoding="utf-8")
    assert {"@context": json.loads(json.dumps(context()))} == json.loads(packaged)
    for named in (CONTEXT_IRI, [CONTEXT_IRI, {"x": "urn:x"}]):
        text = json.dumps({"@context": named, "id": "urn:a", "requires": "urn:b", "name": "a"})
        expected = {("requires", "urn:b", False), ("name", "a", True)}
        assert expected == {(f.predicate, f.object, f.literal) for f in from_json_ld(text)}


@pytest.mark.parametrize("text", FETCHING.values(), ids=FETCHING)
def test_from_json_ld_refuses_a_reference_to_a_context_before_parsing(text: str) -> None:
    with pytest.raises(DocumentError, match=r"would have to be fetched|names a context"):
        from_json_ld(text, path="a.jsonld")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("{", "not JSON"),
        ('{"a": ' * 100_000, "not JSON, or nested too deeply"),
        ('{"a": ' * 70 + "1" + "}" * 70, "nested deeper than 64"),
        ("[" * 70 + "]" * 70, "nested deeper than 64"),
        ('{"@context": {"a": {"@id": 5}}, "a": 1}', "not json-ld"),
        ('{"@context": 5, "a": 1}', "the context 5 would have to be fetched"),
    ],
)
def test_from_json_ld_raises_a_document_error_for_invalid_or_hostile_json(
    text: str, detail: str
) -> None:
    with pytest.raises(DocumentError, match=detail):
        from_json_ld(text)


@pytest.mark.parametrize(
    "text", ["<urn:a> <urn:b>", "[" * 20_000, "<urn:a> <urn:b> " + "(" * 20_000, "\x00", "a b c ."]
)
def test_from_turtle_raises_a_document_error_for_invalid_or_hostile_text(text: str) -> None:
    with pytest.raises(DocumentError):
        from_turtle(text, path="a.ttl")


def test_import_refuses_a_too_large_text() -> None:
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


def test_import_opens_no_socket_or_file_for_any_text() -> None:
    """A Python audit hook records every socket and file that is opened."""
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
    arguments = json.dumps([[*FETCHING.values()], queries, turtles, documents])

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WATCHED],
        input=arguments,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [[], 8] == json.loads(done.stdout)
