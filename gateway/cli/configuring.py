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


servers = typer.Typer(
    name="servers",
    help="Add, list, test and remove the servers of your configuration.",
    epilog=EPILOG,
    no_args_is_help=True,
)


@servers.command(epilog=EPILOG)
def add(  # noqa: PLR0913  (one for each option)
    name: Annotated[str, typer.Argument(help="How it shall be called here.")],
    command: Annotated[
        list[str] | None, typer.Argument(help="After '--': the program and its arguments.")
    ] = None,
    *,
    url: Annotated[str, typer.Option(help="Instead of a program: where it listens.")] = "",
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", help="NAME=VALUE for the program.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="'Name: value' for the address.")
    ] = None,
    cwd: Annotated[str, typer.Option(help="The program's folder.")] = "",
    bearer_env: Annotated[
        str, typer.Option(metavar="NAME", help="Sign in with the token in this variable.")
    ] = "",
    oauth: Annotated[bool, typer.Option("--oauth", help="Sign in by OAuth.")] = False,
    oauth_set: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE of it, such as scope=read.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite one of that name.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a server into your configuration. Secrets become references, never copies."""
    with reported(as_json=as_json):
        from gateway.cli import serverauth, serveredit  # noqa: PLC0415  (the door)

        settings = oauth_set or []
        auth = serverauth.auth_of(url=url, bearer_env=bearer_env, oauth=oauth, settings=settings)
        entry = serveredit.entry_of(
            command or [], url=url, env=env or [], headers=header or [], cwd=cwd
        )
        code = serveredit.add(
            name, entry, auth=auth, config=config, replace_it=replace, as_json=as_json
        )
    raise typer.Exit(code)


@servers.command("list", epilog=EPILOG)
def list_(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Say what is known of each server: state, tools, pins. None is started."""
    with reported(as_json=as_json):
        from gateway.cli import servers as run  # noqa: PLC0415  (the door)

        code = run.list_(config=config, as_json=as_json)
    raise typer.Exit(code)


@servers.command("test", epilog=EPILOG)
def try_(
    names: Annotated[list[str] | None, typer.Argument(help="Which; none is all.")] = None,
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start servers, list their tools, time it, and say what is wrong."""
    with reported(as_json=as_json):
        from gateway.cli import servers as run  # noqa: PLC0415  (the door)

        code = run.try_(names or [], config=config, as_json=as_json)
    raise typer.Exit(code)


@servers.command(epilog=EPILOG)
def remove(
    names: Annotated[list[str], typer.Argument(help="Which.")],
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take servers out of your configuration."""
    with reported(as_json=as_json):
        from gateway.cli import serveredit  # noqa: PLC0415  (the door)

        code = serveredit.remove(names, config=config, as_json=as_json)
    raise typer.Exit(code)


def doctor(
    *,
    connect: Annotated[
        bool, typer.Option("--connect", help="Start each server too, and ask the network.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at everything that this gateway needs here, and say what to do."""
    with reported(as_json=as_json):
        from gateway.cli.doctor import doctor as run  # noqa: PLC0415  (the door)

        code = run(config=config, connect=connect, as_json=as_json)
    raise typer.Exit(code)


def attach(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("import", epilog=EPILOG)(import_)
    app.command(epilog=EPILOG)(install)
    app.add_typer(servers)
    app.command(epilog=EPILOG)(doctor)
