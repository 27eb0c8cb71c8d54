"""The process that answers a SPARQL query; see `graphs.rdf.sparql`.

A query is parsed and looked through before it runs: updates, FROM, GRAPH and SERVICE are refused.
"""

from __future__ import annotations

import faulthandler
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from types import MappingProxyType
from typing import IO, Any

from rdflib import BNode, Graph, Literal
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.evaluate import ParseException  # type: ignore[attr-defined]  # pyparsing is rdflib's own affair
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query, SPARQLError
from rdflib.query import Result
from rdflib.term import Identifier

from graphs.errors import QueryError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import NAMESPACES
from graphs.parameters import MAX_QUERY_CHARS, MAX_QUERY_DEPTH, QUERY_LIMIT
from graphs.rdf.exporter import to_rdf
from graphs.rdf.sparql import Answer, Row, Term

_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "DatasetClause": "FROM is refused: there is one graph, and nothing is fetched",
        "GraphGraphPattern": "GRAPH is refused: there is one graph",
        "ServiceGraphPattern": "SERVICE is refused: nothing is fetched",
    }
)
_FAULTS = (
    SPARQLError, NotImplementedError, ValueError, TypeError, LookupError, AttributeError, re.error
)  # fmt: skip
"""What rdflib raises over a query that makes no sense."""


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer the one request of `graphs.rdf.sparql.query_sparql`.

    A watchdog outside of Python's own threads ends the process at the time limit, in the midst of
    a hostile regular expression too.
    """
    request = json.load(requests)
    graph = to_rdf(Fact(**row) for row in request["facts"])
    faulthandler.dump_traceback_later(request["timeout_s"], exit=True)
    try:
        reply = asdict(answer(graph, request["text"], limit=request["limit"]))
    except QueryError as error:
        reply = {"error": str(error)}
    finally:
        faulthandler.cancel_dump_traceback_later()
    json.dump(reply, replies)


def answer(graph: Graph, text: str, *, limit: int = QUERY_LIMIT) -> Answer:
    """Answer *text* over *graph*, without a time limit; see `graphs.rdf.sparql.query_sparql`."""
    try:
        return _answer(graph.query(_parse(text)), limit)
    except RecursionError as error:
        raise QueryError("the query is nested too deeply: flatten it") from error
    except ParseException as error:
        raise QueryError(
            f"the query is no SPARQL query (an update is none): line {error.lineno}: {error.msg}"
        ) from error
    except _FAULTS as error:
        raise QueryError(f"the query cannot be answered: {error}") from error


def _parse(text: str) -> Query:
    if len(text) > MAX_QUERY_CHARS:
        raise QueryError("the query is longer than 64 kB: shorten it")
    if _depth(text) > MAX_QUERY_DEPTH:
        raise QueryError("the query is nested too deeply: flatten it")
    parsed = parseQuery(text)
    prefixes = set(NAMESPACES)
    for part in _parts(parsed):
        if part.name in _REFUSED:
            raise QueryError(_REFUSED[part.name])
        if part.name == "PrefixDecl":
            prefixes.add(str(part.get("prefix") or ""))
        if part.name == "pname" and (part.get("prefix") or "") not in prefixes:
            raise QueryError(f"the prefix {part.get('prefix')!s} is unknown: declare it")
    return translateQuery(parsed, initNs=dict(NAMESPACES))


def _depth(text: str) -> int:
    deepest = depth = 0
    for mark in text:
        depth += (mark in "({[") - (mark in ")}]")
        deepest = max(deepest, depth)
    return deepest


def _parts(parsed: Any) -> Iterator[CompValue]:
    waiting = [parsed]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, CompValue):
            yield part
            waiting += part.values()
        elif isinstance(part, Iterable) and not isinstance(part, str):
            waiting += list(part)


def _answer(result: Result, limit: int) -> Answer:
    if result.type == "ASK":
        return Answer(kind="ask", value=bool(result.askAnswer))
    if result.type == "SELECT":
        rows = [_row(row) for row in islice(result, limit + 1)]
        columns = tuple(map(str, result.vars or ()))
        return Answer(
            kind="select", columns=columns, rows=tuple(rows[:limit]), truncated=len(rows) > limit
        )
    rows = sorted(map(_row, result.graph or ()), key=repr)
    return Answer(
        kind="construct" if result.type == "CONSTRUCT" else "describe",
        columns=("subject", "predicate", "object"),
        rows=tuple(rows[:limit]),
        truncated=len(rows) > limit,
    )


def _row(terms: Any) -> Row:
    return tuple(term if term is None else _term(term) for term in terms)


def _term(term: Identifier) -> Term:
    if isinstance(term, Literal):
        return Term(
            kind="literal",
            value=str(term),
            language=term.language or "",
            datatype=str(term.datatype or ""),
        )
    return Term(kind="blank" if isinstance(term, BNode) else "iri", value=str(term))
