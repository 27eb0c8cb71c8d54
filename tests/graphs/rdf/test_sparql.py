"""Read-only SPARQL."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.extraction import extract_facts
from graphs.markdown.parser import parse
from graphs.rdf.convert import to_rdf
from graphs.rdf.sparql import answer
from graphs.rdf.sparql_process import Term

TEXTS = [
    "---\nid: urn:t:a\ntitle: create invoice\nlanguage: en\nrequires: urn:t:b\n---\n",
    "---\nid: urn:t:b\ntitle: login\ndate_published: 2026-11-21\n---\n",
]
GRAPH = to_rdf(extract_facts([parse(text) for text in TEXTS]))
NAMES = "SELECT ?name WHERE { ?node schema:name ?name } ORDER BY STR(?name)"
REMOTE = "https://e.org/sparql"
FEDERATED = (
    f"SELECT ?name ?x WHERE {{ ?n schema:name ?name . SERVICE <{REMOTE}> {{ ?n schema:x ?x }} }}"
)


def test_rows_are_plain_values_and_our_prefixes_are_known() -> None:
    """Nobody should have to know rdflib to ask a question."""
    found = answer(GRAPH, NAMES)

    expected = (
        Term(kind="literal", value="create invoice", language="en"),
        Term(kind="literal", value="login"),
    )
    assert (expected, ()) == (found.column("name"), found.column("other"))
    assert ("select", ("name",), False) == (found.kind, found.columns, found.truncated)


def test_there_are_no_more_rows_than_the_limit_and_that_is_told() -> None:
    """A cut answer must not look like a whole one."""
    found = answer(GRAPH, NAMES, limit=1)

    assert (1, True) == (len(found.rows), found.truncated)


def test_asking_constructing_and_describing() -> None:
    """All four forms that only read."""
    yes = answer(GRAPH, "ASK { <urn:t:a> dcterms:requires <urn:t:b> }")
    made = answer(GRAPH, "CONSTRUCT { ?b tg:before ?a } WHERE { ?a dcterms:requires ?b }")
    told = answer(GRAPH, "DESCRIBE <urn:t:b>", limit=2)
    blank = answer(GRAPH, "SELECT ?x ?y WHERE { BIND(BNODE() AS ?x) }")

    assert (True, ()) == (yes.value, yes.rows)
    assert [("urn:t:b", "https://w3id.org/tool-gateway/ns#before", "urn:t:a")] == [
        tuple(each.value for each in row if each) for row in made.rows
    ]
    assert ("describe", 2, True) == (told.kind, len(told.rows), told.truncated)
    assert [("blank", None)] == [(x and x.kind, y and y.kind) for x, y in blank.rows]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "no SPARQL query"),
        ("DELETE WHERE { ?s ?p ?o }", "no SPARQL query"),
        ("DROP ALL", "no SPARQL query"),
        ("LOAD <https://e.org/x.ttl>", "no SPARQL query"),
        ("SELECT * FROM <https://e.org/x.ttl> WHERE { ?s ?p ?o }", "FROM is refused"),
        ("SELECT * FROM NAMED <file:///etc/passwd> WHERE { ?s ?p ?o }", "FROM is refused"),
        ("DESCRIBE <urn:a> FROM <https://e.org/x.ttl>", "FROM is refused"),
        ("ASK { GRAPH <https://e.org/x> { ?s ?p ?o } }", "GRAPH is refused"),
        ("ASK { SERVICE <https://e.org/s> { ?s ?p ?o } }", "SERVICE https://e.org/s is refused"),
        ("ASK { SERVICE SILENT ?where { ?s ?p ?o } }", "SERVICE where is refused"),
        ("ASK { ?s ?p ?o FILTER EXISTS { SERVICE <urn:x> { ?s ?p ?o } } }", "SERVICE urn:x"),
        ("ASK { { SELECT ?s { OPTIONAL { SERVICE <urn:x> { ?s ?p ?o } } } } }", "SERVICE urn:x"),
        ("ASK { ?s nobody:knows ?o }", "the prefix nobody is unknown"),
        ("ASK { ?s ?p ", "no SPARQL query"),
        ("", "no SPARQL query"),
        ("ASK " + "{" * 60_000, "nested too deeply"),
        ("ASK { ?s ?p ?o } #" + "x" * 70_000, "longer than 64 kB"),
        ("SELECT (SUM(?x) AS ?x) { ?x ?p ?o }", "no SPARQL query|cannot be answered"),
        ("SELECT ?o { ?s ?p ?o FILTER REGEX(?o, '(') }", "cannot be answered"),
    ],
)
def test_what_writes_leads_elsewhere_or_is_broken_is_refused(text: str, reason: str) -> None:
    """The reason is part of the refusal, and nothing foreign is raised."""
    with pytest.raises(QueryError, match=reason):
        answer(GRAPH, text)


def test_a_query_stops_at_its_time_limit() -> None:
    """A join of everything with everything must not hold a host."""
    everything = " ".join(f"?s{n} ?p{n} ?o{n} ." for n in range(6))

    with pytest.raises(QueryTimeoutError) as caught:
        answer(GRAPH, f"SELECT * {{ {everything} }}", limit=10**9, timeout_s=0.05)
    assert 0.05 == caught.value.timeout_s


def said(*cells: Mapping[str, str]) -> Mapping[str, object]:
    return {
        "head": {"vars": ["n", "x"]},
        "results": {
            "bindings": [{"n": {"type": "uri", "value": "urn:t:a"}, "x": cell} for cell in cells]
        },
    }


def test_an_endpoint_that_the_host_named_is_asked_and_joined() -> None:
    """Federation is by allow-list alone."""
    asked: list[tuple[str, str]] = []

    def send(endpoint: str, text: str) -> Mapping[str, object]:
        asked.append((endpoint, text))
        return said(
            {"type": "literal", "value": "far", "xml:lang": "en"},
            {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#int"},
            {"type": "bnode", "value": "b0"},
        )

    found = answer(GRAPH, FEDERATED, endpoints=[REMOTE], send=send)

    assert {"far", "1", "b0"} == {x.value for x in found.column("x") if x}
    ((endpoint, text),) = asked
    assert REMOTE == endpoint
    assert "?n schema:x ?x" in text
    assert "PREFIX schema:" in text


@pytest.mark.parametrize("found", [{}, {"results": {"bindings": 1}}])
def test_an_endpoint_that_answers_nonsense_is_told(found: Mapping[str, object]) -> None:
    """The other side is a stranger."""
    with pytest.raises(QueryError, match="answers no SPARQL results"):
        answer(GRAPH, FEDERATED, endpoints=[REMOTE], send=lambda *_: found)


def test_the_graph_is_only_read() -> None:
    """Two queries see the same graph."""
    before = set(GRAPH)
    answer(GRAPH, "CONSTRUCT WHERE { ?s ?p ?o }")

    assert before == set(GRAPH)
