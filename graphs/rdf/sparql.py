"""Read-only SPARQL over facts: SELECT, ASK, CONSTRUCT and DESCRIBE. Nothing is fetched.

Each query runs in a process of its own, which ends itself at its time limit whatever the query
does. Answers are plain values: rdflib is loaded there alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact
from graphs.parameters import QUERY_LIMIT, QUERY_START_TIMEOUT_S, QUERY_TIMEOUT_S

_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from graphs.rdf.sparql_process import serve
serve(sys.stdin, sys.stdout)
"""
"""The package may lie outside the path of a fresh interpreter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One RDF term."""

    kind: Literal["iri", "literal", "blank"]
    value: str
    """The IRI, the text of the literal, or the blank node's own name."""
    language: str = ""
    """The language of a literal; empty if it has none."""
    datatype: str = ""
    """The datatype IRI of a literal; empty for plain text."""


Row: TypeAlias = tuple[Term | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a query."""

    kind: Literal["select", "ask", "construct", "describe"]
    columns: tuple[str, ...] = ()
    """The variables in order; subject, predicate and object of a described graph."""
    rows: tuple[Row, ...] = ()
    """The solutions, None where a variable is not bound; or the triples."""
    value: bool | None = None
    """The answer to an ASK; None otherwise."""
    truncated: bool = False
    """Whether there were more rows than the limit."""


def query_sparql(
    facts: Iterable[Fact],
    text: str,
    *,
    limit: int = QUERY_LIMIT,
    timeout_s: float = QUERY_TIMEOUT_S,
) -> Answer:
    """Answer a SPARQL query over *facts*.

    Args:
        facts: The graph.
        text: SPARQL; the prefixes of the vocabulary are known without being declared. Updates,
            FROM, GRAPH and SERVICE are refused.
        limit: How many rows or triples at most.
        timeout_s: How long the query may take, in seconds, without starting the process.

    Raises:
        QueryTimeoutError: The query took too long.
        QueryError: The query is refused, is no SPARQL, or cannot be answered.
    """
    request = {
        "facts": [asdict(fact) for fact in facts],
        "text": text,
        "limit": limit,
        "timeout_s": timeout_s,
    }
    try:
        done = subprocess.run(  # noqa: S603  (our own program)
            [sys.executable, "-c", _PROGRAM, str(Path(__file__).parents[2])],
            input=json.dumps(request),
            capture_output=True,
            encoding="utf-8",
            timeout=QUERY_START_TIMEOUT_S + timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise QueryTimeoutError(timeout_s) from error
    # The words of the standard library's watchdog, see `serve`.
    if done.stderr.startswith("Timeout"):
        raise QueryTimeoutError(timeout_s)
    if done.returncode:
        raise QueryError("the query cannot be answered: its process ended")
    reply = json.loads(done.stdout)
    if "error" in reply:
        raise QueryError(reply["error"])
    return _answer(reply)


def _answer(reply: dict[str, Any]) -> Answer:
    """Read an answer that our own process has written as JSON."""
    rows = (tuple(term and Term(**term) for term in row) for row in reply["rows"])
    return Answer(**{**reply, "columns": tuple(reply["columns"]), "rows": tuple(rows)})
