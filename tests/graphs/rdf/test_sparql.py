from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from graphs import parse
from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts import extract_facts
from graphs.rdf import Term, answer, query_sparql, serve, to_rdf

TEXTS = [
    "---\nid: urn:t:a\ntitle: create invoice\nlanguage: en\nrequires: urn:t:b\n---\n",
    "---\nid: urn:t:b\ntitle: login\ndate_published: 2026-11-21\n---\n",
]
GRAPH = to_rdf(extract_facts([parse(text) for text in TEXTS]))
NAMES = "SELECT ?name WHERE { ?node schema:name ?name } ORDER BY STR(?name)"


def test_select_query_returns_plain_values_up_to_the_limit() -> None:
    """The query uses the prefixes of the vocabulary without declaring them."""
    result = answer(GRAPH, NAMES)

    expected = (
        Term(kind="literal", value="create invoice", language="en"),
        Term(kind="literal", value="login"),
    )
    assert expected == tuple(term for (term,) in result.rows)
    assert ("select", ("name",), False) == (result.kind, result.columns, result.truncated)
    cut = answer(GRAPH, NAMES, limit=1)
    assert (1, True) == (len(cut.rows), cut.truncated)


def test_ask_construct_and_describe_queries_are_answered() -> None:
    yes = answer(GRAPH, "ASK { <urn:t:a> dcterms:requires <urn:t:b> }")
    constructed = answer(GRAPH, "CONSTRUCT { ?b tg:before ?a } WHERE { ?a dcterms:requires ?b }")
    described = answer(GRAPH, "DESCRIBE <urn:t:b>", limit=2)
    blank = answer(GRAPH, "SELECT ?x ?y WHERE { BIND(BNODE() AS ?x) }")

    assert (True, ()) == (yes.value, yes.rows)
    assert [("urn:t:b", "https://w3id.org/tool-gateway/ns#before", "urn:t:a")] == [
        tuple(term.value for term in row if term) for row in constructed.rows
    ]
    assert ("describe", 2, True) == (described.kind, len(described.rows), described.truncated)
    assert [("blank", None)] == [(x and x.kind, y and y.kind) for x, y in blank.rows]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "not a SPARQL query"),
        ("DELETE WHERE { ?s ?p ?o }", "not a SPARQL query"),
        ("DROP ALL", "not a SPARQL query"),
        ("LOAD <https://e.org/x.ttl>", "not a SPARQL query"),
        ("SELECT * FROM <https://e.org/x.ttl> WHERE { ?s ?p ?o }", "FROM is refused"),
        ("SELECT * FROM NAMED <file:///etc/passwd> WHERE { ?s ?p ?o }", "FROM is refused"),
        ("DESCRIBE <urn:a> FROM <https://e.org/x.ttl>", "FROM is refused"),
        ("ASK { GRAPH <https://e.org/x> { ?s ?p ?o } }", "GRAPH is refused"),
        ("ASK { SERVICE <https://e.org/s> { ?s ?p ?o } }", "SERVICE is"),
        ("ASK { SERVICE SILENT ?where { ?s ?p ?o } }", "SERVICE is"),
        ("ASK { ?s ?p ?o FILTER EXISTS { SERVICE <urn:x> { ?s ?p ?o } } }", "SERVICE is"),
        ("ASK { { SELECT ?s { OPTIONAL { SERVICE <urn:x> { ?s ?p ?o } } } } }", "SERVICE is"),
        ("ASK { ?s nobody:knows ?o }", "the prefix nobody is unknown"),
        ("ASK { ?s ?p ", "not a SPARQL query"),
        ("", "not a SPARQL query"),
        ("ASK " + "{" * 60_000, "nested too deeply"),
        ("ASK { ?s ?p ?o } #" + "x" * 70_000, "longer than 64 kB"),
        ("SELECT (SUM(?x) AS ?x) { ?x ?p ?o }", "not a SPARQL query|cannot be answered"),
        ("SELECT ?o { ?s ?p ?o FILTER REGEX(?o, '(') }", "cannot be answered"),
    ],
)
def test_updates_fetching_queries_and_invalid_queries_are_refused(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        answer(GRAPH, text)


FACTS = extract_facts([parse(text) for text in TEXTS])
HOSTILE = f"""SELECT ?x {{ BIND("{"a" * 40}!" AS ?x) FILTER REGEX(?x, "^(a+)+$") }}"""


def test_query_process_returns_an_answer_or_a_refusal() -> None:
    answered = query_sparql(FACTS, NAMES, limit=1)

    (row,) = answered.rows
    assert ("create invoice", True) == (row[0] and row[0].value, answered.truncated)
    with pytest.raises(QueryError, match="SERVICE is refused"):
        query_sparql(FACTS, "ASK { SERVICE <https://e.org/> { ?s ?p ?o } }")


def test_query_with_a_hostile_regular_expression_ends_at_the_time_limit() -> None:
    """Matching the expression never returns to Python, so its process must be ended."""
    with pytest.raises(QueryTimeoutError) as caught:
        query_sparql(FACTS, HOSTILE, timeout_s=0.2)

    assert 0.2 == caught.value.timeout_s


def test_crash_of_the_query_process_is_not_reported_as_a_timeout() -> None:
    with pytest.raises(QueryError, match="its process ended"):
        query_sparql([replace(FACTS[0], subject=5)], NAMES)  # type: ignore[arg-type]


def test_serve_replies_with_an_answer_or_an_error() -> None:
    for text, reply in (
        ("ASK { ?s ?p ?o }", '"value": false'),
        ("DROP ALL", '"not a SPARQL query '),
    ):
        replies = io.StringIO()

        serve(io.StringIO(json.dumps([[], text, 1, 60.0, []])), replies)

        assert reply in replies.getvalue()


SERVICE = (
    "SELECT ?name ?said WHERE { ?a schema:name ?name SERVICE <https://e.org/> { ?a ?b ?said } }"
)


def test_service_part_queries_only_allowed_endpoints() -> None:
    """The caller's function for the endpoint sends the query, with the variables bound so far."""
    queries: list[str] = []

    def ask(query: str) -> dict[str, object]:
        queries.append(query)
        binding = {"said": {"type": "literal", "value": "paid"}}
        return {"head": {"vars": ["said"]}, "results": {"bindings": [binding]}}

    services = {"https://e.org/": ask}
    result = query_sparql(FACTS, SERVICE, services=services)

    assert result == answer(GRAPH, SERVICE, services=services)
    assert {"paid"} == {row[1].value for row in result.rows if row[1]}
    assert "?a ?b ?said" in queries[0]
    assert "<urn:t:" in queries[0]
    with pytest.raises(QueryError, match="only endpoints that you allow"):
        query_sparql(FACTS, SERVICE.replace("e.org", "other.org"), services=services)


def test_service_part_with_a_failing_or_variable_endpoint_raises_an_error() -> None:
    """The error of the caller's function is raised, and the query process ends."""

    def refuse(_query: str) -> dict[str, object]:
        raise QueryError("it is down")

    services = {"https://e.org/": refuse}
    with pytest.raises(QueryError, match="it is down"):
        query_sparql(FACTS, SERVICE, services=services)
    with pytest.raises(QueryError, match="SERVICE is refused"):
        query_sparql(FACTS, "ASK { ?s ?p ?o SERVICE ?o { ?a ?b ?c } }", services=services)
