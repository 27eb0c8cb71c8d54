"""SPARQL in a process of its own, so that a time limit holds whatever the query does.

The process starts with the first query, keeps the graph between queries, and is ended when a
query takes too long; the next query starts another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import Any, Self

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact
from graphs.rdf.answer import Answer, from_json

_START_S = 120.0
_GRACE_S = 1.0
"""The process may notice the limit itself first, and then it need not be started again."""


class Sparql:
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
            asked = {"text": text, "limit": limit, "timeout_s": timeout_s}
            found = _say(process, asked, timeout_s + _GRACE_S)
            if found is None:
                late = process.poll() is not None and process.returncode < 0
                self._stop()
                if late:
                    raise QueryTimeoutError(timeout_s)
                raise QueryError("the query cannot be answered: its process ended")
        if "timeout" in found:
            raise QueryTimeoutError(timeout_s)
        if "error" in found:
            raise QueryError(str(found["error"]))
        return from_json(found["answer"])

    def close(self) -> None:
        """End the process; another query would start one again."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        """Give itself."""
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
            if _say(self._process, first, _START_S) is None:
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


# The package may lie outside the path of a fresh interpreter.
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from graphs.rdf.worker import serve
serve(sys.stdin, sys.stdout)
"""


def _say(
    process: subprocess.Popen[str], said: object, timeout_s: float
) -> Mapping[str, Any] | None:
    """Send a line and give the reply; None if the process ends or has to be ended."""
    if process.stdin is None or process.stdout is None:
        raise AssertionError
    timer = Timer(timeout_s, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(said) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        line = ""
    finally:
        timer.cancel()
    if not line.endswith("\n"):
        process.wait()
        return None
    found: Mapping[str, Any] = json.loads(line)
    return found
