"""`gateway search`, `gateway tools` and `gateway call`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from gateway.cli.command import (
    ConfigOption,
    GraphOption,
    JsonOption,
    KindOption,
    StatusOption,
    StrategyOption,
    TagOption,
    command,
    command_group,
)
from gateway.cli.exit_codes import NOTHING
from gateway.cli.output import print_result, to_jsonable, warn
from gateway.cli.session import Session, choose_strategy, open_session, parse_statuses
from gateway.cli.tables import explanation, result_text, search_table, tool_table
from gateway.errors import InvalidRequestError, UnknownToolError, UpstreamError
from gateway.types import Filters, InvokeResult, JsonObject

app = command_group()


@command(app)
def search(  # noqa: PLR0913  (one for each option)
    query: Annotated[str, typer.Argument(help="What is wanted, in any language; '' browses.")],
    *,
    config: ConfigOption = None,
    documents: GraphOption = None,
    strategy: StrategyOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Matches, up to 50.")] = 5,
    kind: KindOption = None,
    tag: TagOption = None,
    status: StatusOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why; --json always does.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
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
    print_result(
        {"query": query, "strategy": session.strategy, "result": result, "index": session.report},
        explanation(result, diagnostics=diagnostics) if explain else search_table(result),
        as_json=as_json,
    )
    return session.code_for(result.matches)


@command(app)
def tools(*, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """List the tools of the configured servers."""
    with open_session(config, relist=True) as session:
        entities = session.gateway.list_tools()
    print_result(
        {"tools": entities, "index": session.report}, tool_table(entities), as_json=as_json
    )
    return session.code_for(entities)


@command(app)
def call(
    tool: Annotated[str, typer.Argument(help="Its id (server/name) or its name.")],
    arguments: Annotated[
        str, typer.Argument(help="A JSON object; '-' reads it from standard input.")
    ] = "{}",
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Call one tool. With an id, only its server is started."""
    parsed = _parse_arguments(arguments)
    with open_session(config, only=tool) as session:
        result = _invoke(session, tool, parsed)
    print_result(to_jsonable(result), result_text(result), as_json=as_json)
    return NOTHING if result.is_error else session.code


def _invoke(session: Session, tool: str, arguments: JsonObject) -> InvokeResult:
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
