"""RDF, written for others and read as facts."""

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

from graphs.errors import DocumentError
from graphs.facts import CONTEXT_IRI, FILE_BASE, PREDICATES, Fact, context, extract_facts
from graphs.markdown import parse
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

# rdflib 7 reads JSON-LD through a class of its own that it calls deprecated.
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


def test_the_context_travels_inside() -> None:
    """Nobody must fetch anything to read our JSON-LD."""
    assert json.loads(to_json_ld(FACTS))["@context"] == json.loads(json.dumps(context()))


def test_triples_and_numbered_prefixes_are_sorted() -> None:
    """A diff of two exports shows what changed."""
    lines = to_n_triples(FACTS).splitlines()

    assert sorted(lines) == lines
    assert "" == to_n_triples([])
    found = [text_fact(f"https://{host}.org/p", "x") for host in "cadb"]
    numbered = [f"@prefix ns{1 + at}: <https://{host}.org/> ." for at, host in enumerate("abcd")]
    assert numbered == to_turtle(found).splitlines()[:4]


def test_groups_are_concepts_of_one_scheme_and_documents_know_their_file() -> None:
    """A reader of SKOS begins at the top concepts, those that none is broader than."""
    graph = to_rdf(FACTS)

    (top,) = graph.objects(SCHEME, SKOS.hasTopConcept)
    assert "urn:tool-gateway:concept:billing" == str(top)
    assert 2 == len(list(graph.subjects(SKOS.inScheme, SCHEME)))
    assert "#wasDerivedFrom> <urn:tool-gateway:file:x/a%20b.md> ." in to_n_triples(FACTS)
    assert Literal('Say "hi" <now>', lang="de") in set(graph.objects())
    assert () == validate(FACTS)


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


# -- weights and rules --------------------------------------------------------------------------

_ADDED = {"inScheme", "hasTopConcept", "wasDerivedFrom"}


def own(found: Sequence[Fact]) -> set[Fact]:
    """Leave out what an export adds of its own: the scheme and the provenance of documents."""
    return {f for f in found if f.predicate not in _ADDED and f.subject != str(SCHEME)}


@pytest.mark.parametrize(("write", "read"), FORMS)
def test_weight_and_origin_come_back(
    write: Callable[[Sequence[Fact]], str], read: Callable[[str], tuple[Fact, ...]]
) -> None:
    """And with them who stands for an edge: what a rule derived stays derived."""
    again = read(write(FACTS))

    def statements(facts: Iterable[Fact]) -> set[tuple[object, ...]]:
        return {(f.subject, f.predicate, f.object, f.weight, f.origin, f.declared) for f in facts}

    assert statements(own(again)) == statements(FACTS)
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


# -- texts from elsewhere ----------------------------------------------------------------------

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
def test_every_text_survives_every_form(stated: list[Fact]) -> None:
    """In every script and language."""
    turtles = from_turtle(to_turtle(stated)), from_turtle(to_n_triples(stated))
    for found in (*turtles, from_json_ld(to_json_ld(stated))):
        assert set(stated) == set(found)


@pytest.mark.parametrize("number", ["NaN", "INF"])
def test_a_number_that_json_lacks_is_written_as_a_text(number: str) -> None:
    """So that every reader of JSON can read it."""
    text = to_json_ld([text_fact("https://e.org/p", number, _XSD + "double")])

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
        ("{", "not JSON"),
        ('{"a": ' * 100_000, "not JSON, or nested too deeply"),
        ('{"a": ' * 70 + "1" + "}" * 70, "nested deeper than 64"),
        ("[" * 70 + "]" * 70, "nested deeper than 64"),
        ('{"@context": {"a": {"@id": 5}}, "a": 1}', "not json-ld"),
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
