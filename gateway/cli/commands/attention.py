"""`gateway attention`: what wants a person's attention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Group
from rich.text import Text

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.exit_codes import NEEDS_PERSON, OK
from gateway.cli.session import ONE_COMMAND, command_options, open_gateway, read_config
from gateway.cli.tables import printable, table
from gateway.options.environment import catalog_store_path
from gateway.sync import SyncGateway

app = command_group()


@command(app)
def attention(
    *,
    live: Annotated[bool, "Start every server and list its tools first."] = False,
    reports: Annotated[
        Path | None, "A folder of evaluation reports, if not that of the console."
    ] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Show what wants a person's attention, the most urgent first.

    Changed definitions, servers that fail or want a sign-in, and the like; exit code 11 if there
    is any. Without --live only servers are started that have no recent tool list.
    """
    manifest = read_config(config)
    own = command_options(manifest, ONE_COMMAND)
    with open_gateway(manifest, strategy="graph", options=own) as gateway:
        sync = SyncGateway(gateway)
        if live:
            sync.refresh()
        issues = sync.issues(reports=reports or catalog_store_path(own).parent / "reports")
    differences = (
        Text(f"\n{printable(issue.id)}\n{printable(chr(10).join(issue.difference))}")
        for issue in issues
        if issue.difference
    )
    view = Group(table(issues, "kind", "id", "detail", "what to do=command"), *differences)
    return Output(
        {"issues": issues},
        view if issues else "nothing wants attention",
        code=NEEDS_PERSON if issues else OK,
    )
