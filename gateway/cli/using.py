"""`gateway usage`, as typed. What a command does stands behind a door, as in `gateway.cli.app`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.exits import EPILOG
from gateway.cli.options import ConfigOption, GraphOption, JsonOption, StrategyOption
from gateway.cli.screen import reported

usage = typer.Typer(
    name="usage",
    help="See, write down and forget what calls have shown.",
    epilog=EPILOG,
    no_args_is_help=True,
)


@usage.command(epilog=EPILOG)
def show(
    tool: Annotated[str, typer.Argument(help="Its id, server/name; without one: all.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Tell how calls ended, what that does to scores, and what follows what."""
    with reported(as_json=as_json):
        from gateway.cli import usage as door  # noqa: PLC0415  (the door)

        code = door.show(tool, as_json=as_json)
    raise typer.Exit(code)


@usage.command(epilog=EPILOG)
def export(
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder to write to.")] = None,
    min_count: Annotated[int, typer.Option(min=1, help="Tasks a pair needs.")] = 2,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write next steps that use has shown as Markdown-LD, to read, edit and commit."""
    with reported(as_json=as_json):
        from gateway.cli import usage as door  # noqa: PLC0415  (the door)

        code = door.export(target=out, min_count=min_count, force=force, as_json=as_json)
    raise typer.Exit(code)


@usage.command(epilog=EPILOG)
def report(
    *,
    config: ConfigOption = None,
    documents: GraphOption = None,
    strategy: StrategyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what the signals would have changed, by the tools that were really called next."""
    with reported(as_json=as_json):
        from gateway.cli import usage as door  # noqa: PLC0415  (the door)

        code = door.report(config=config, documents=documents, strategy=strategy, as_json=as_json)
    raise typer.Exit(code)


@usage.command(epilog=EPILOG)
def forget(
    *,
    tool: Annotated[str, typer.Option(help="The calls of one tool, server/name.")] = "",
    tenant: Annotated[str, typer.Option(help="The calls of one tenant.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All calls.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget calls that were noted."""
    with reported(as_json=as_json):
        from gateway.cli import usage as door  # noqa: PLC0415  (the door)

        code = door.forget(tool=tool, tenant=tenant, everything=everything, as_json=as_json)
    raise typer.Exit(code)
