"""`gateway attention`: issues that need a person."""

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
        Path | None, "Folder of evaluation reports; by default that of the console."
    ] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """List issues that need a person, the most urgent first.

    Issues are changed definitions, failing servers, missing sign-ins and the like. The exit code is
    11 if there are issues. Without --live, only servers without a recent tool list are started.
    """
    manifest = read_config(config)
    own_options = command_options(manifest, ONE_COMMAND)
    with open_gateway(manifest, strategy="graph", options=own_options) as gateway:
        sync = SyncGateway(gateway)
        if live:
            sync.refresh()
        issues = sync.issues(reports=reports or catalog_store_path(own_options).parent / "reports")
    differences = (
        Text(f"\n{printable(issue.id)}\n{printable(chr(10).join(issue.difference))}")
        for issue in issues
        if issue.difference
    )
    view = Group(table(issues, "kind", "id", "detail", "what to do=command"), *differences)
    return Output(
        {"issues": issues},
        view if issues else "there are no issues",
        code=NEEDS_PERSON if issues else OK,
    )
