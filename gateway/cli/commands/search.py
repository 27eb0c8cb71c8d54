"""`gateway search`, `gateway tools` and `gateway call`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import NOTHING
from gateway.cli.output import Output, warn
from gateway.cli.session import CatalogSession, choose_strategy, open_session, parse_statuses
from gateway.cli.tables import explanation, result_text, search_table, tool_table
from gateway.errors import InvalidRequestError, UnknownToolError, UpstreamError
from gateway.types import Filters, InvokeResult, JsonObject

app = command_group()


@command(app)
def search(  # noqa: PLR0913  (one for each option)
    query: Annotated[str, Argument(help="What is wanted, in any language; '' browses.")],
    *,
    config: options.Config = None,
    documents: options.Graph = None,
    strategy: options.Strategy = None,
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Matches, up to 50.")] = 5,
    kind: options.Kind = None,
    tag: options.Tag = None,
    status: options.Status = None,
    explain: Annotated[bool, Option("--explain", help="Show why; --json always does.")] = False,
) -> Output:
    """Search the tools of the configured servers, or what else the catalog holds (--kind)."""
    defaults = Filters()
    filters = Filters(
        kinds=frozenset(kind or defaults.kinds),
        tags=frozenset(tag or ()),
        statuses=parse_statuses(status) if status else defaults.statuses,
    )
    # Entities that are no tools may exist without any server.
    is_catalog = filters.kinds != defaults.kinds
    with open_session(
        config, strategy=choose_strategy(strategy), documents=documents, optional=is_catalog
    ) as session:
        # The graph holds no servers: words and vectors rank a search of the catalog.
        result = session.gateway.search(
            query, limit=limit, filters=filters, ranking="hybrid" if is_catalog else "strategy"
        )
    shown = {item.code for item in session.report.diagnostics}
    warn(item for item in result.diagnostics if item.code not in shown)
    diagnostics = tuple(dict.fromkeys((*session.report.diagnostics, *result.diagnostics)))
    return Output(
        {"query": query, "strategy": session.strategy, "result": result, "index": session.report},
        explanation(result, diagnostics=diagnostics) if explain else search_table(result),
        session.code_for(result.matches),
    )


@command(app)
def tools(*, config: options.Config = None) -> Output:
    """List the tools of the configured servers."""
    with open_session(config, relist=True) as session:
        entities = session.gateway.list_tools()
    return Output(
        {"tools": entities, "index": session.report},
        tool_table(entities),
        session.code_for(entities),
    )


@command(app)
def call(
    tool: Annotated[str, Argument(help="Its id (server/name) or its name.")],
    arguments: Annotated[
        str, Argument(help="A JSON object; '-' reads it from standard input.")
    ] = "{}",
    *,
    config: options.Config = None,
) -> Output:
    """Call one tool. With an id, only its server is started."""
    parsed = _parse_arguments(arguments)
    with open_session(config, only=tool) as session:
        result = _invoke(session, tool, parsed)
    return Output(result, result_text(result), NOTHING if result.is_error else session.code)


def _invoke(session: CatalogSession, tool: str, arguments: JsonObject) -> InvokeResult:
    try:
        return session.gateway.invoke(tool, arguments)
    except UnknownToolError as error:
        if not session.unusable:
            raise
        raise UpstreamError(
            tool,
            f"no such tool was listed, but {session.unusable} of the configured servers could "
            "not be used: mend them first",
        ) from error


def _parse_arguments(text: str) -> JsonObject:
    try:
        arguments = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise InvalidRequestError(f"the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise InvalidRequestError('the arguments must be a JSON object, like \'{"path": "/tmp"}\'')
    return arguments
