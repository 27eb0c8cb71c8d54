"""SPARQL in a process of its own."""

from __future__ import annotations

import io
import json

import pytest

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.extraction import extract_facts
from graphs.markdown.document import Document
from graphs.rdf.sparql import serve
from graphs.rdf.sparql_process import SparqlProcess

FACTS = extract_facts([Document(id=f"urn:t:{n}", title=f"tool {n}") for n in range(9)])
COUNT = "SELECT (COUNT(?s) AS ?n) { ?s a tg:Document }"
SLOW = f"""SELECT ?x {{ BIND("{"a" * 40}!" AS ?x) FILTER REGEX(?x, "^(a+)+$") }}"""


def test_a_query_is_answered_refused_and_stopped_and_the_next_one_answered() -> None:
    """A hostile regular expression never touches the graph; the end of the process stops it."""
    with SparqlProcess(FACTS) as ask:
        assert ["9"] == [each.value for each in ask(COUNT).column("n") if each]
        with pytest.raises(QueryError, match="is refused"):
            ask("ASK { SERVICE <https://e.org/> { ?s ?p ?o } }")
        with pytest.raises(QueryTimeoutError):
            ask(
                "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", limit=10**9, timeout_s=0.1
            )
        with pytest.raises(QueryTimeoutError):
            ask(SLOW, timeout_s=0.2)
        assert 1 == len(ask(COUNT).rows)


def test_a_process_that_ends_by_itself_is_told() -> None:
    """And is no time limit."""
    ask = SparqlProcess(FACTS)
    try:
        with pytest.raises(QueryError, match="its process ended"):
            ask(5)  # type: ignore[arg-type]  # breaks the worker
        assert 1 == len(ask(COUNT).rows)
    finally:
        ask.close()
    ask.close()


def test_a_process_that_does_not_start_is_told() -> None:
    """A fact that is none breaks the worker at once."""
    ask = SparqlProcess(FACTS, endpoints=[b"x"])  # type: ignore[list-item]  # no JSON
    with pytest.raises(TypeError):
        ask(COUNT)
    ask.close()


def test_the_worker_speaks_in_lines() -> None:
    """Its protocol is small enough to be read."""
    first: dict[str, list[str]] = {"facts": [], "endpoints": []}
    asked = {"limit": 1, "timeout_s": 5.0}
    lines: list[object] = [
        first,
        {"text": "ASK { ?s ?p ?o }"} | asked,
        {"text": "DROP ALL"} | asked,
        {"text": "SELECT * { ?s ?p ?o }", "limit": 1, "timeout_s": 5.0},
    ]
    replies = io.StringIO()

    serve(io.StringIO("".join(json.dumps(line) + "\n" for line in lines)), replies)

    told = [next(iter(json.loads(line))) for line in replies.getvalue().splitlines()]
    assert ["ready", "answer", "error", "answer"] == told
