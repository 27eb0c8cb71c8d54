"""The commands around configuration files, as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.clients.places import Client
from gateway.cli.exits import EPILOG
from gateway.cli.options import ConfigOption, DryRunOption, JsonOption
from gateway.cli.screen import reported

ClientArgument = Annotated[Client, typer.Argument(help="Whose file.")]


def import_(
    client: ClientArgument,
    *,
    source: Annotated[
        Path | None, typer.Option("--from", help="This file, instead of those the client has.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite servers of the same name.")
    ] = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take over the servers of another client. Secrets become references, never copies."""
    with reported(as_json=as_json):
        from gateway.cli.importing import import_servers  # noqa: PLC0415  (the door)

        code = import_servers(
            client,
            source=source,
            config=config,
            replace=replace,
            dry_run=dry_run,
            as_json=as_json,
        )
    raise typer.Exit(code)


def install(  # noqa: PLR0913  (one for each option)
    client: ClientArgument,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="This file, instead of the user's own.")
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="The file of the project in this folder.")
    ] = False,
    name: Annotated[str, typer.Option(help="How the client shall call us.")] = "gateway",
    remove: Annotated[bool, typer.Option("--remove", help="Take us out again.")] = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write this gateway into another client's file, with a dated copy of what was there."""
    with reported(as_json=as_json):
        from gateway.cli.installing import install as run  # noqa: PLC0415  (the door)

        code = run(
            client,
            config=config,
            to=to,
            project=project,
            name=name,
            remove=remove,
            dry_run=dry_run,
            as_json=as_json,
        )
    raise typer.Exit(code)


def attach(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("import", epilog=EPILOG)(import_)
    app.command(epilog=EPILOG)(install)
