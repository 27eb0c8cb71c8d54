"""What the commands do, but for the demo. Each prints its data and gives its exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gateway.cli import explain, show
from gateway.cli.exits import NOTHING, OK
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, out, printable, warn
from gateway.cli.settings import Opened, chosen, opened
from gateway.cli.stored import forget, held, store
from gateway.errors import InvalidRequestError, UnknownToolError, UpstreamError
from gateway.types import Diagnostic, Filters, InvokeResult, JsonObject, RankingPolicy, Strategy


def search(  # noqa: PLR0913  (one for each option)
    query: str,
    *,
    config: Path | None,
    documents: Path | None,
    strategy: Strategy | None,
    limit: int,
    filters: Filters,
    why: bool,
    as_json: bool,
) -> int:
    """Search the configured servers' tools, or what *filters* say."""
    # Other things than tools may be there without any server.
    bare = filters.kinds != Filters().kinds
    with opened(config, strategy=chosen(strategy), documents=documents, bare=bare) as session:
        # The graph holds no servers: what a catalog is searched for, words and vectors rank.
        ranking: RankingPolicy = "hybrid" if bare else "strategy"
        result = session.gateway.search(query, limit=limit, filters=filters, ranking=ranking)
    told = {each.code for each in session.report.diagnostics}
    warn(each for each in result.diagnostics if each.code not in told)
    if as_json:
        data = {"query": query, "strategy": session.strategy, "result": jsonable(result)}
        emit({**data, "index": jsonable(session.report)})
    elif why:
        out().print(explain.explained(result, with_notes=_notes(session, result.diagnostics)))
    else:
        out().print(show.found(result))
    return session.code or (OK if result.matches else NOTHING)


def _notes(session: Opened, own: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    return tuple(dict.fromkeys((*session.report.diagnostics, *own)))


def tools(*, config: Path | None, as_json: bool) -> int:
    """List the configured servers' tools."""
    with opened(config, strategy="graph", anew=True) as session:
        entities = session.gateway.list_tools()
    if as_json:
        emit({"tools": jsonable(entities), "index": jsonable(session.report)})
    else:
        out().print(show.listed(entities))
    return session.code or (OK if entities else NOTHING)


def call(tool: str, arguments: str, *, config: Path | None, as_json: bool) -> int:
    """Call one tool."""
    given = _arguments(arguments)
    with opened(config, strategy="graph", only=tool) as session:
        result = _invoke(session, tool, given)
    if as_json:
        emit(jsonable(result))
    else:
        out().print(printable(show.answered(result)), soft_wrap=True)
    return NOTHING if result.is_error else session.code


def _invoke(session: Opened, tool: str, given: JsonObject) -> InvokeResult:
    try:
        return session.gateway.invoke(tool, given)
    except UnknownToolError as error:
        if not session.unusable:
            raise
        raise UpstreamError(
            tool,
            f"no such tool was listed, but {session.unusable} of the configured servers could "
            "not be used: mend them first",
        ) from error


def _arguments(text: str) -> JsonObject:
    try:
        given = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise InvalidRequestError(f"the arguments are not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidRequestError('the arguments must be a JSON object, like \'{"path": "/tmp"}\'')
    return given


def index_build(*, config: Path | None, rebuild: bool, as_json: bool) -> int:
    """List the configured servers' tools and embed what is new."""
    if rebuild:
        forget()
    with opened(config, strategy=chosen(None), anew=True) as session:
        report = session.report
    if as_json:
        emit({"strategy": session.strategy, "store": str(store().path), **_object(report)})
    else:
        out().print(show.built(report, store().path))
    return session.code or (OK if report.tools else NOTHING)


def index_show(*, as_json: bool) -> int:
    """Say what the vector store holds; no server is started."""
    vectors, size = held()
    path = store().path
    if as_json:
        emit({"store": str(path), "bytes": size, "vectors": vectors})
    else:
        out().print(show.stored(path, size, vectors))
    return OK if vectors else NOTHING


def _object(report: object) -> dict[str, object]:
    told = jsonable(report)
    return told if isinstance(told, dict) else {}
