"""Read-only SPARQL queries over facts: SELECT, ASK, CONSTRUCT and DESCRIBE.

* Nothing is fetched, except from endpoints that the caller allows for SERVICE. The caller's
  functions query them.
* `query_sparql` runs each query in its own process, which ends itself at its time limit. `answer`
  runs in the process of its caller.
* A query is checked before it runs. Updates, FROM, GRAPH and SERVICE with other endpoints are
  refused.
"""

from __future__ import annotations

import faulthandler
import json
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate, chain, islice
from pathlib import Path
from threading import Timer
from typing import IO, Any, Literal, TypeAlias, cast

from rdflib import BNode, Graph
from rdflib import Literal as RdfLiteral
from rdflib.plugins.sparql import CUSTOM_EVALS
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.evaluate import (  # type: ignore[attr-defined]  # pyparsing is rdflib's own affair
    ParseException,
    _buildQueryStringForServiceCall,
    _yieldBindingsFromServiceCallResult,
)
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, Query, QueryContext, SPARQLError
from rdflib.term import Identifier

from graphs import parameters
from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import NAMESPACES
from graphs.rdf.serialization import to_rdf

_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from graphs.rdf.sparql import serve
serve(sys.stdin, sys.stdout)
"""
"""Program of the query process. A new interpreter may not find the package without its path."""
_REFUSED_PARTS: Mapping[str, str] = {
    "DatasetClause": "FROM is refused: there is only one graph, and nothing is fetched",
    "GraphGraphPattern": "GRAPH is refused: there is only one graph",
}
_SERVICE = re.compile(r"service\s*<(.*?)>\s*\{(.*)\}\s*", re.DOTALL | re.IGNORECASE)
AskService: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Sends a query to an endpoint and returns SPARQL results in JSON, or raises `QueryError`."""
NO_SERVICES: Mapping[str, AskService] = {}
_RDFLIB_ERRORS = (
    SPARQLError, NotImplementedError, ValueError, TypeError, LookupError, AttributeError, re.error
)  # fmt: skip
Kind: TypeAlias = Literal["select", "ask", "construct", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One RDF term."""

    kind: Literal["iri", "literal", "blank"]
    value: str
    """The IRI, the text of the literal, or the name of the blank node."""
    language: str = ""
    """Language of a literal; empty if it has none."""
    datatype: str = ""
    """Datatype IRI of a literal; empty for plain text."""


Row: TypeAlias = tuple[Term | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer to a SPARQL query."""

    kind: Kind
    columns: tuple[str, ...] = ()
    """Names of the variables in order; for CONSTRUCT and DESCRIBE, subject, predicate, object."""
    rows: tuple[Row, ...] = ()
    """Solutions, with None for unbound variables; for CONSTRUCT and DESCRIBE, the triples."""
    value: bool | None = None
    """Answer to an ASK query; otherwise None."""
    truncated: bool = False
    """True if there were more rows than the limit."""


def query_sparql(
    facts: Iterable[Fact],
    text: str,
    *,
    limit: int = parameters.QUERY_LIMIT,
    timeout_s: float = parameters.QUERY_TIMEOUT_S,
    services: Mapping[str, AskService] = NO_SERVICES,
) -> Answer:
    """Answer a SPARQL query over *facts*.

    Args:
        facts: The graph.
        text: SPARQL without updates, FROM and GRAPH. The prefixes of the vocabulary are predefined.
        limit: Maximum number of rows or triples.
        timeout_s: Time limit in seconds, without the start of the process.
        services: Functions that query the endpoints allowed for SERVICE, keyed by IRI.

    Raises:
        QueryTimeoutError: If the query exceeds the time limit.
        QueryError: If the query is refused, is not SPARQL, or cannot be answered.

    Example:
        >>> from graphs import extract_facts, parse
        >>> facts = extract_facts([parse("# Book a flight")])
        >>> answer = query_sparql(facts, "SELECT ?name { ?tool schema:name ?name }")
        >>> answer.rows[0][0].value
        'Book a flight'
    """
    request = [list(map(asdict, facts)), text, limit, timeout_s, list(services)]
    child = subprocess.Popen(  # noqa: S603  (our own program)
        [sys.executable, "-c", _PROGRAM, str(Path(__file__).parents[2])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    timer = Timer(parameters.QUERY_START_TIMEOUT_S + timeout_s, child.kill)
    timer.start()
    try:
        reply = _exchange(child, request, services)
    finally:
        is_late = not timer.is_alive()
        timer.cancel()
        child.kill()
        _, errors = child.communicate()
    # The standard library's watchdog in `serve` prints this word.
    if is_late or errors.startswith("Timeout"):
        raise QueryTimeoutError(timeout_s)
    if reply is None:
        raise QueryError("the query cannot be answered: its process ended")
    if isinstance(reply, str):
        raise QueryError(reply)
    rows = (tuple(term and Term(**term) for term in row) for row in reply["rows"])
    return Answer(**{**reply, "columns": tuple(reply["columns"]), "rows": tuple(rows)})


def _exchange(
    child: subprocess.Popen[str], request: object, services: Mapping[str, AskService]
) -> Any:
    """Return the reply of the query process, or None if it ended without one.

    Meanwhile, requests of the process to endpoints are answered.
    """
    requests, replies = cast("IO[str]", child.stdin), cast("IO[str]", child.stdout)
    with suppress(BrokenPipeError):
        _write(requests, request)
        for line in replies:
            message = json.loads(line)
            if "reply" in message:
                return message["reply"]
            _write(requests, services[message["endpoint"]](message["query"]))
    return None


def _write(file: IO[str], message: object) -> None:
    file.write(json.dumps(message) + "\n")
    file.flush()


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer one request of `query_sparql` inside the query process, maybe with an error text.

    A watchdog outside Python's own threads ends the process at the time limit, even during a
    hostile regular expression.
    """
    facts, text, limit, timeout_s, endpoints = json.loads(requests.readline())

    def ask(endpoint: str, query: str) -> Mapping[str, Any]:
        _write(replies, {"endpoint": endpoint, "query": query})
        results: Mapping[str, Any] = json.loads(requests.readline())
        return results

    services = {endpoint: partial(ask, endpoint) for endpoint in endpoints}
    graph = to_rdf(Fact(**row) for row in facts)
    faulthandler.dump_traceback_later(timeout_s, exit=True)
    try:
        reply: object = asdict(answer(graph, text, limit=limit, services=services))
    except QueryError as error:
        reply = str(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
    _write(replies, {"reply": reply})


def answer(
    graph: Graph,
    text: str,
    *,
    limit: int = parameters.QUERY_LIMIT,
    services: Mapping[str, AskService] = NO_SERVICES,
) -> Answer:
    """Answer the SPARQL query *text* over *graph* like `query_sparql`, but without a time limit."""
    CUSTOM_EVALS["service"] = partial(_evaluate_service, services)
    try:
        result = graph.query(_parse(text, services))
        kind = cast("Kind", result.type.lower())
        if kind == "ask":
            return Answer(kind=kind, value=bool(result.askAnswer))
        if kind == "select":
            columns = tuple(map(str, result.vars or ()))
            rows = [_row(row) for row in islice(result, limit + 1)]
        else:
            columns = ("subject", "predicate", "object")
            rows = sorted(map(_row, result.graph or ()), key=repr)
    except RecursionError as error:
        raise QueryError("the query is nested too deeply: flatten it") from error
    except ParseException as error:
        raise QueryError(
            f"not a SPARQL query (updates are refused): line {error.lineno}: {error.msg}"
        ) from error
    except _RDFLIB_ERRORS as error:
        raise QueryError(f"the query cannot be answered: {error}") from error
    finally:
        del CUSTOM_EVALS["service"]
    return Answer(kind=kind, columns=columns, rows=tuple(rows[:limit]), truncated=len(rows) > limit)


def _evaluate_service(
    services: Mapping[str, AskService], context: QueryContext, part: CompValue
) -> Iterator[FrozenBindings]:
    """Evaluate a SERVICE part of a query with the caller's functions.

    This replaces the function of rdflib, which would fetch any URL in a query.
    """
    if part.name != "ServiceGraphPattern":
        # This error makes rdflib evaluate the part as usual.
        raise NotImplementedError
    written = _SERVICE.fullmatch(str(part.service_string))
    if written is None or written[1] not in services:
        raise QueryError("SERVICE is written as: SERVICE <endpoint> { … }")
    results = services[written[1]](_buildQueryStringForServiceCall(context, written[2]))
    names = results["head"]["vars"]
    return chain.from_iterable(
        _yieldBindingsFromServiceCallResult(context, row, names)
        for row in results["results"]["bindings"]
    )


def _parse(text: str, services: Collection[str]) -> Query:
    if len(text) > parameters.MAX_QUERY_CHARS:
        raise QueryError("the query is longer than 64 kB: shorten it")
    steps = ((mark in "({[") - (mark in ")}]") for mark in text)
    if max(accumulate(steps, initial=0)) > parameters.MAX_QUERY_DEPTH:
        raise QueryError("the query is nested too deeply: flatten it")
    parsed = parseQuery(text)
    prefixes = set(NAMESPACES)
    for part in _walk(parsed):
        if part.name in _REFUSED_PARTS:
            raise QueryError(_REFUSED_PARTS[part.name])
        if part.name == "ServiceGraphPattern" and str(part.term) not in services:
            raise QueryError("SERVICE is refused: only endpoints that you allow are queried")
        if part.name == "PrefixDecl":
            prefixes.add(str(part.get("prefix") or ""))
        if part.name == "pname" and (part.get("prefix") or "") not in prefixes:
            raise QueryError(f"the prefix {part.get('prefix')!s} is unknown: declare it")
    return translateQuery(parsed, initNs=dict(NAMESPACES))


def _walk(parsed: Any) -> Iterator[CompValue]:
    waiting = [parsed]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, CompValue):
            yield part
            waiting += part.values()
        elif isinstance(part, Iterable) and not isinstance(part, str):
            waiting += list(part)


def _row(terms: Any) -> Row:
    return tuple(term if term is None else _term(term) for term in terms)


def _term(term: Identifier) -> Term:
    if not isinstance(term, RdfLiteral):
        return Term(kind="blank" if isinstance(term, BNode) else "iri", value=str(term))
    language, datatype = term.language or "", str(term.datatype or "")
    return Term(kind="literal", value=str(term), language=language, datatype=datatype)
