"""SPARQL in a process of its own, so that a time limit holds whatever the query does.

The process starts with the first query, keeps the graph between queries, and is ended when a
query takes too long; the next query starts another. Answers are plain values: no rdflib here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact

TermKind = Literal["iri", "literal", "blank"]
AnswerKind = Literal["select", "ask", "construct", "describe"]
_START_TIMEOUT_S = 120.0
_GRACE_S = 1.0
"""The process may notice the limit itself first, and then it need not be started again."""
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from graphs.rdf.sparql import serve
serve(sys.stdin, sys.stdout)
"""
"""The package may lie outside the path of a fresh interpreter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One RDF term."""

    kind: TermKind
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

    kind: AnswerKind
    columns: tuple[str, ...] = ()
    """The variables in order; subject, predicate and object of a described graph."""
    rows: tuple[Row, ...] = ()
    """The solutions, None where a variable is not bound; or the triples."""
    value: bool | None = None
    """The answer to an ASK; None otherwise."""
    truncated: bool = False
    """Whether there were more rows than the limit."""

    def column(self, name: str) -> tuple[Term | None, ...]:
        """Return the values of one column; empty if there is no such column."""
        if name not in self.columns:
            return ()
        number = self.columns.index(name)
        return tuple(row[number] for row in self.rows)


AskSparql: TypeAlias = Callable[[str], Answer]
"""Answers a SPARQL text; raises `QueryError` for one that it refuses."""


class SparqlProcess:
    """A graph that answers SPARQL; close it, or use it in a ``with`` statement.

    Queries of several threads are answered one after another.
    """

    def __init__(self, facts: Iterable[Fact], *, endpoints: Collection[str] = ()) -> None:
        self._facts = tuple(facts)
        self._endpoints = tuple(endpoints)
        self._process: subprocess.Popen[str] | None = None
        self._lock = Lock()

    def __call__(self, text: str, *, limit: int = 1000, timeout_s: float = 10.0) -> Answer:
        """Answer *text*.

        Args:
            text: A read-only SPARQL query; see `graphs.rdf.sparql`.
            limit: How many rows or triples at most.
            timeout_s: How long the query may take, in seconds, without starting the process.

        Raises:
            QueryTimeoutError: The query took too long.
            QueryError: The query is refused, is no SPARQL, or cannot be answered.
        """
        with self._lock:
            process = self._started()
            request = {"text": text, "limit": limit, "timeout_s": timeout_s}
            reply = _exchange(process, request, timeout_s + _GRACE_S)
            if reply is None:
                was_killed = process.poll() is not None and process.returncode < 0
                self._stop()
                if was_killed:
                    raise QueryTimeoutError(timeout_s)
                raise QueryError("the query cannot be answered: its process ended")
        if "timeout" in reply:
            raise QueryTimeoutError(timeout_s)
        if "error" in reply:
            raise QueryError(str(reply["error"]))
        return _answer(reply["answer"])

    def close(self) -> None:
        """End the process; another query would start one again."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(  # noqa: S603  (our own program)
                [sys.executable, "-c", _PROGRAM, str(Path(__file__).parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
            first = {"facts": [asdict(fact) for fact in self._facts], "endpoints": self._endpoints}
            if _exchange(self._process, first, _START_TIMEOUT_S) is None:
                self._stop()
                raise QueryError("the process for queries did not start")
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
            self._process = None


def _exchange(
    process: subprocess.Popen[str], request: object, timeout_s: float
) -> Mapping[str, Any] | None:
    """Send a line and return the reply; None if the process ends or has to be ended."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError
    timer = Timer(timeout_s, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        line = ""
    finally:
        timer.cancel()
    if not line.endswith("\n"):
        process.wait()
        return None
    reply: Mapping[str, Any] = json.loads(line)
    return reply


def _answer(reply: Mapping[str, Any]) -> Answer:
    """Read an answer that our own process has written as JSON."""
    rows = (tuple(term and Term(**term) for term in row) for row in reply["rows"])
    return Answer(**{**reply, "columns": tuple(reply["columns"]), "rows": tuple(rows)})
