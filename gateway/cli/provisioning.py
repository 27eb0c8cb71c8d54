"""`gateway discover` and `gateway provision`, as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.options import ConfigOption, GraphOption, JsonOption, StrategyOption
from gateway.cli.screen import reported


def discover(
    intent: Annotated[
        str, typer.Argument(help="What is wanted, in any language; none tells of everything.")
    ] = "",
    *,
    config: ConfigOption = None,
    documents: GraphOption = None,
    strategy: StrategyOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Tools, up to 50.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Tell what the configured servers can do: servers, tools, schemas. Asks no registry."""
    with reported(as_json=as_json):
        from gateway.cli import provisioned  # noqa: PLC0415  (the door)

        code = provisioned.discover(
            intent,
            config=config,
            documents=documents,
            strategy=strategy,
            limit=limit,
            as_json=as_json,
        )
    raise typer.Exit(code)


def provision(  # noqa: PLR0913  (one for each option)
    intent: Annotated[str, typer.Argument(help="What tools are wanted for.")],
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it, after consent; without it, only plan.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Agree where no gate has a doubt; else agree to nothing."),
    ] = False,
    registry: Annotated[
        str, typer.Option(help="An MCP registry's URL; without one, nothing is fetched.")
    ] = "",
    trust: Annotated[
        list[str] | None,
        typer.Option(help="A registry's namespace/*, or namespace/name, that you trust."),
    ] = None,
    pick: Annotated[str, typer.Option(help="The server that is wanted, by its whole name.")] = "",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE that the server needs; secrets as NAME=env:NAME."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="The folder of all packages; default: in your data folder.")
    ] = None,
    known: Annotated[
        bool, typer.Option("--known/--no-known", help="Look at the bundled list as well.")
    ] = True,
    config: ConfigOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find a server for what the configured ones cannot do, and bring it in.

    The tools at hand come first, then well-known servers, then a registry if you name one.
    """
    with reported(as_json=as_json):
        from gateway.cli import provisioned  # noqa: PLC0415  (the door)

        code = provisioned.provision(
            intent,
            wish=provisioned.Wish(
                apply=apply,
                yes=yes,
                registry=registry,
                trust=tuple(trust or ()),
                pick=pick,
                values=tuple(values or ()),
                into=into,
                known=known,
            ),
            config=config,
            strategy=strategy,
            as_json=as_json,
        )
    raise typer.Exit(code)
