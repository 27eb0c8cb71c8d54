"""`gateway graph`: paths between tools, prerequisites in order, and decisions on edges.

The other commands stand in `graph`; this module is the one that the command line loads.
"""

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

Name = Annotated[str, "A tool's id or name, or another node's id or label."]


@command(app)
def path(
    start: Name,
    end: Name,
    *,
    limit: Annotated[int, Option("--limit", "-n", min=1, max=20, help="Paths at most.")] = 3,
    config: options.Config = options.DEFAULT_CONFIG,
    documents: options.Graph = None,
    caller: Caller | None = None,
) -> Output:
    """Find the shortest paths between two tools, along edges of any direction."""
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
    """Put all that must be used before a tool in order; what waits for each other is named."""
    with open_session(config, documents=documents) as session:
        found = open_view(session, documents, caller).order(tool)
    for cycle in found.cycles:
        note(f"no order meets these prerequisites, which need each other: {', '.join(cycle)}")
    return Output(found, table(found.nodes, "id", "kind"), code=session.code)


def _decision(verdict: Verdict, summary: str) -> Callable[..., Output]:
    def decide(
        subject: Name,
        predicate: Annotated[str, "Such as requires, nextStep, relatedTo."],
        target: Name,
        *,
        documents: Annotated[Path, "--graph", "-g", "The folder of your documents."],
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
    _decision("accept", "Declare an edge in your documents, such as one that is only proposed.")
)
command(app, "reject")(
    _decision("reject", "Forbid an edge in your documents: no rule derives it any more.")
)
