"""`gateway graph path`, `order`, `accept` and `reject`; the others are in `graph`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Option

from gateway.cli import options
from gateway.cli.command import Output, command, note
from gateway.cli.commands.graph import EDGE_COLUMNS, app, open_view
from gateway.cli.session import open_session
from gateway.cli.tables import table
from gateway.plugins.graph_tools.edge_proposals import Verdict
from gateway.types import Caller

Name = Annotated[str, "Id or name of a tool, or id or label of another node."]


@command(app)
def path(
    start: Name,
    end: Name,
    *,
    limit: Annotated[
        int, Option("--limit", "-n", min=1, max=20, help="Maximum number of paths.")
    ] = 3,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Find the shortest paths between two tools, along edges in either direction."""
    with open_session(config, documents=documents) as session:
        paths = open_view(session, documents, caller).paths(start, end, limit=limit)
    rows = [{"path": number, **{key: getattr(edge, key) for key in EDGE_COLUMNS}}
            for number, edges in enumerate(paths, 1) for edge in edges]  # fmt: skip
    return Output(
        {"paths": paths}, table(rows, "path", *EDGE_COLUMNS), found=paths, code=session.code
    )


@command(app)
def order(
    tool: Name,
    *,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """List all prerequisites of a tool in the order of their use, and report cycles."""
    with open_session(config, documents=documents) as session:
        prerequisites = open_view(session, documents, caller).order(tool)
    for cycle in prerequisites.cycles:
        note(f"these prerequisites need each other, so they have no order: {', '.join(cycle)}")
    return Output(prerequisites, table(prerequisites.nodes, "id", "kind"), code=session.code)


def _decision(verdict: Verdict, summary: str) -> Callable[..., Output]:
    def decide(
        subject: Name,
        predicate: Annotated[
            str, "Predicate of the edge, such as requires, nextStep or relatedTo."
        ],
        target: Name,
        *,
        documents: Annotated[Path, "--graph", "-g", "Folder of your documents."],
        dry_run: options.DryRun = False,
        config: options.Config = options.DEFAULT_CONFIG,
        caller: Caller | None = None,
    ) -> Output:
        with open_session(config, documents=documents) as session:
            view = open_view(session, documents, caller)
            edit = view.plan_edit(verdict, subject, predicate, target, folder=documents)
        if not dry_run:
            edit.write()
        data = {"path": edit.path, "diff": edit.diff, "written": bool(edit.diff) and not dry_run}
        return Output(data, edit.diff, code=session.code)

    decide.__doc__ = summary
    return decide


command(app, "accept")(
    _decision("accept", "Declare an edge in your documents, such as a proposed edge.")
)
command(app, "reject")(
    _decision("reject", "Forbid an edge in your documents, so that rules no longer derive it.")
)
