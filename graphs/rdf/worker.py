"""What runs in the process that answers SPARQL for `graphs.rdf.sparql_process`.

One JSON line in (the facts and the endpoints), then a line in and a line out for each query. What
goes wrong with a query is told; what goes wrong with this process ends it.
"""

from __future__ import annotations

import json
from typing import IO

from graphs.errors import QueryError, QueryTimeoutError
from graphs.facts.fact import Fact
from graphs.rdf.answer import to_json
from graphs.rdf.convert import to_rdf
from graphs.rdf.sparql import answer


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer each line of *requests* with a line of *replies*."""
    first = json.loads(requests.readline())
    graph = to_rdf(Fact(**row) for row in first["facts"])
    _say({"ready": len(graph)}, replies)
    for line in requests:
        asked = json.loads(line)
        try:
            found = answer(graph, endpoints=first["endpoints"], **asked)
        except QueryTimeoutError as error:
            _say({"timeout": error.timeout_s}, replies)
        except QueryError as error:
            _say({"error": str(error)}, replies)
        else:
            _say({"answer": to_json(found)}, replies)


def _say(found: object, replies: IO[str]) -> None:
    replies.write(json.dumps(found) + "\n")
    replies.flush()
