"""Read-only SPARQL: SELECT, ASK, CONSTRUCT and DESCRIBE over one graph.

* A query is parsed and looked through before it runs: updates, FROM, GRAPH, and SERVICE other than
  the endpoints that the host has named, are refused. Nothing is fetched because a query says so.
* The time limit here is cooperative: it is looked at whenever the query touches the graph. What
  never touches it (a hostile regular expression) is stopped by `graphs.Sparql` alone.
* This file imports rdflib; `graphs` itself does not import this file.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from types import MappingProxyType
from typing import IO, Any

from rdflib import BNode, Graph, Literal, URIRef, Variable
from rdflib.plugins.sparql.algebra import translateQuery, traverse
from rdflib.plugins.sparql.evaluate import ParseException  # type: ignore[attr-defined]  # pyparsing is rdflib's own affair
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query, SPARQLError
from rdflib.query import Result
from rdflib.store import Store
from rdflib.term import Identifier

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import NAMESPACES
from graphs.rdf.convert import to_rdf
from graphs.rdf.federation import post
from graphs.rdf.sparql_process import Answer, AnswerKind, Row, Term

MAX_CHARS = 64 * 1024
MAX_DEPTH = 64
LIMIT = 1000
TIMEOUT_S = 10.0

Post = Callable[[str, str], Mapping[str, object]]
"""Sends a query to an endpoint and gives its SPARQL JSON results."""

_KINDS: Mapping[str, AnswerKind] = MappingProxyType(
    {"SELECT": "select", "ASK": "ask", "CONSTRUCT": "construct", "DESCRIBE": "describe"}
)
_INSIDE = re.compile(r"\{(.*)\}", re.DOTALL)
_FAULTS = (
    SPARQLError, NotImplementedError, ValueError, TypeError, LookupError, AttributeError, re.error
)  # fmt: skip
"""What rdflib raises over a query that makes no sense."""
_TRIPLE = ("subject", "predicate", "object")


def answer(
    graph: Graph,
    text: str,
    *,
    limit: int = LIMIT,
    timeout_s: float = TIMEOUT_S,
    endpoints: Collection[str] = (),
    send: Post | None = None,
) -> Answer:
    """Answer *text* over *graph*.

    Args:
        graph: What `graphs.rdf.convert.to_rdf` has built; it is only read.
        text: SPARQL; the prefixes of the vocabulary are known without being declared.
        limit: How many rows or triples at most.
        timeout_s: How long the query may take, in seconds; see the laws of this file.
        endpoints: The addresses that a SERVICE clause may name.
        send: How an endpoint is asked; None for HTTP.

    Raises:
        QueryTimeoutError: The query took too long.
        QueryError: The query is refused, is no SPARQL, or cannot be answered.
    """
    deadline = time.monotonic() + timeout_s
    query = parse(text, endpoints=endpoints)
    send = send or (lambda endpoint, asked: post(endpoint, asked, timeout_s=timeout_s))
    _federate(query, send, limit)
    watched = Graph(store=_Watched(graph, deadline, timeout_s), bind_namespaces="none")
    try:
        return _answer(watched.query(query), limit)
    except RecursionError as error:
        raise QueryError("the query is nested too deeply: flatten it") from error
    except _FAULTS as error:
        raise QueryError(f"the query cannot be answered: {error}") from error


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer queries in a process of their own, for `graphs.SparqlProcess`.

    The first line of *requests* holds the facts and the endpoints; each further line is a query
    and gets a line of *replies*. A fault of this process ends it.
    """
    first = json.loads(requests.readline())
    graph = to_rdf(Fact(**row) for row in first["facts"])
    _reply({"ready": len(graph)}, replies)
    for line in requests:
        try:
            found = answer(graph, endpoints=first["endpoints"], **json.loads(line))
        except QueryTimeoutError as error:
            _reply({"timeout": error.timeout_s}, replies)
        except QueryError as error:
            _reply({"error": str(error)}, replies)
        else:
            _reply({"answer": asdict(found)}, replies)


def _reply(reply: object, replies: IO[str]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def parse(text: str, *, endpoints: Collection[str] = ()) -> Query:
    """Parse *text*, and refuse what is not read-only or leads elsewhere.

    Raises:
        QueryError: *text* is refused, or no SPARQL.
    """
    if len(text) > MAX_CHARS:
        raise QueryError("the query is longer than 64 kB: shorten it")
    if _depth(text) > MAX_DEPTH:
        raise QueryError("the query is nested too deeply: flatten it")
    try:
        parsed = parseQuery(text)
        _refuse(parsed, frozenset(endpoints))
        return translateQuery(parsed, initNs=dict(NAMESPACES))
    except ParseException as error:
        raise QueryError(
            f"the query is no SPARQL query (an update is none): line {error.lineno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise QueryError("the query is nested too deeply: flatten it") from error
    except _FAULTS as error:
        raise QueryError(f"the query is no SPARQL query: {error}") from error


def _depth(text: str) -> int:
    deepest = depth = 0
    for mark in text:
        depth += (mark in "({[") - (mark in ")}]")
        deepest = max(deepest, depth)
    return deepest


def _refuse(parsed: Iterable[Any], endpoints: Collection[str]) -> None:
    prefixes = set(NAMESPACES)
    for part in _parts(parsed):
        if part.name == "PrefixDecl":
            prefixes.add(str(part.get("prefix") or ""))
        if part.name == "DatasetClause":
            raise QueryError("FROM is refused: there is one graph, and nothing is fetched")
        if part.name == "GraphGraphPattern":
            raise QueryError("GRAPH is refused: there is one graph")
        if part.name == "ServiceGraphPattern" and str(part.term) not in endpoints:
            raise QueryError(f"SERVICE {part.term!s} is refused: the host has not named it")
        if part.name == "pname" and (part.get("prefix") or "") not in prefixes:
            raise QueryError(f"the prefix {part.get('prefix')!s} is unknown: declare it")


def _parts(found: Any) -> Iterator[CompValue]:
    left = [found]
    while left:
        each = left.pop(0)
        if isinstance(each, CompValue):
            yield each
            left += each.values()
        elif isinstance(each, Iterable) and not isinstance(each, str):
            left += list(each)


def _federate(query: Query, send: Post, limit: int) -> None:
    """Ask each endpoint first, and put what it says where its clause stands."""

    def asked(part: Any) -> CompValue | None:
        if not isinstance(part, CompValue) or part.name != "ServiceGraphPattern":
            return None
        inside = _INSIDE.search(str(part.get("service_string") or ""))
        prefixes = "".join(
            f"PREFIX {prefix}: <{iri}>\n"
            for prefix, iri in query.prologue.namespace_manager.namespaces()
        )
        text = f"{prefixes}SELECT * WHERE {{{inside[1] if inside else ''}}} LIMIT {limit}"
        rows = list(_bindings(send(str(part.term), text)))
        return CompValue("ToMultiSet", p=CompValue("values", res=rows), _vars=set())

    query.algebra = traverse(query.algebra, visitPost=asked)


def _bindings(found: Mapping[str, Any]) -> Iterator[dict[Variable, Identifier]]:
    results = found.get("results")
    rows = results.get("bindings") if isinstance(results, dict) else None
    if not isinstance(rows, list):
        raise QueryError("an endpoint answers no SPARQL results")
    for row in rows:
        yield {Variable(name): _identifier(cell) for name, cell in row.items()}


def _identifier(cell: Mapping[str, str]) -> Identifier:
    value = str(cell.get("value", ""))
    if cell.get("type") == "uri":
        return URIRef(value)
    if cell.get("type") == "bnode":
        return BNode(value)
    datatype = cell.get("datatype")
    return Literal(
        value, lang=cell.get("xml:lang"), datatype=URIRef(datatype) if datatype else None
    )


def _answer(result: Result, limit: int) -> Answer:
    kind = _KINDS[result.type]
    if kind == "ask":
        return Answer(kind=kind, value=bool(result.askAnswer))
    found: Iterable[Any] = result if kind == "select" else result.graph or ()
    rows = [_row(each) for each in islice(found, limit + 1)]
    names = tuple(map(str, result.vars or ())) if kind == "select" else _TRIPLE
    if kind != "select":
        rows.sort(key=lambda row: [each.value if each else "" for each in row])
    return Answer(kind=kind, columns=names, rows=tuple(rows[:limit]), truncated=len(rows) > limit)


def _row(found: Iterable[Identifier | None]) -> Row:
    return tuple(each if each is None else _term(each) for each in found)


def _term(found: Identifier) -> Term:
    if isinstance(found, Literal):
        return Term(
            kind="literal",
            value=str(found),
            language=found.language or "",
            datatype=str(found.datatype or ""),
        )
    return Term(kind="blank" if isinstance(found, BNode) else "iri", value=str(found))


class _Watched(Store):
    """A store that another graph fills, read under a deadline, and never written."""

    def __init__(self, graph: Graph, deadline: float, timeout_s: float) -> None:
        super().__init__()
        self._graph = graph
        self._deadline = deadline
        self._timeout_s = timeout_s

    def triples(self, triple_pattern: Any, context: Any = None) -> Iterator[Any]:  # noqa: ARG002
        """Yield the matching triples, as long as there is time."""
        for triple in self._graph.store.triples(triple_pattern, self._graph):
            if time.monotonic() > self._deadline:
                raise QueryTimeoutError(self._timeout_s)
            yield triple

    def __len__(self, context: Any = None) -> int:
        """Count the triples."""
        return len(self._graph)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        """Return the prefixes of the graph."""
        return iter(self._graph.namespaces())

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        """Leave the prefixes as they are."""

    def namespace(self, prefix: str) -> URIRef | None:
        """Return the namespace of a prefix."""
        return dict(self.namespaces()).get(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        """Return the prefix of a namespace."""
        return next((name for name, iri in self.namespaces() if iri == namespace), None)
