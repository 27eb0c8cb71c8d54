"""The command line, as typed. What a command does stands behind a door: ``--version`` and
``--help`` load neither the catalog nor a model.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Literal

import typer

from gateway.cli import configuring
from gateway.cli.catalog import catalog
from gateway.cli.exits import EPILOG, INTERRUPTED
from gateway.cli.graph import graph
from gateway.cli.mistyped import Commands
from gateway.cli.options import (
    ConfigOption,
    GraphOption,
    JsonOption,
    KindOption,
    StatusOption,
    StrategyOption,
    TagOption,
)
from gateway.cli.provisioning import discover, provision
from gateway.cli.screen import reported
from gateway.cli.serving import serve
from gateway.cli.using import usage
from gateway.runtime import VERSION

app = typer.Typer(
    name="gateway",
    cls=Commands,
    help="Find and call the tools of many MCP servers.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(graph)
app.add_typer(usage)
app.add_typer(catalog)
app.command(epilog=EPILOG)(serve)
app.command(epilog=EPILOG)(discover)
app.command(epilog=EPILOG)(provision)
configuring.attach(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        arguments: What stands after the program's name; None is the process's own.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal of few characters must not end a command.
            stream.reconfigure(errors="replace")
    try:
        app(args=arguments)
    except KeyboardInterrupt:
        # While the command is still being put together nobody else looks.
        raise SystemExit(INTERRUPTED) from None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tool-gateway {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    _version_wanted: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Say which version."),
    ] = False,
) -> None:
    """Find and call the tools of many MCP servers."""


@app.command(epilog=EPILOG)
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
        bool, typer.Option("--explain", help="Say why; --json always does.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search the tools of the configured servers, or what else the catalog holds (--kind)."""
    with reported(as_json=as_json):
        from gateway.cli import commands  # noqa: PLC0415  (the door)
        from gateway.cli.filtering import filters_of  # noqa: PLC0415  (the door)

        code = commands.search(
            query,
            config=config,
            documents=documents,
            strategy=strategy,
            limit=limit,
            filters=filters_of(kind, tag, status),
            why=explain,
            as_json=as_json,
        )
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def tools(*, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the tools of the configured servers."""
    with reported(as_json=as_json):
        from gateway.cli import commands  # noqa: PLC0415  (the door)

        code = commands.tools(config=config, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def call(
    tool: Annotated[str, typer.Argument(help="Its id (server/name) or its name.")],
    arguments: Annotated[
        str, typer.Argument(help="A JSON object; '-' reads it from standard input.")
    ] = "{}",
    *,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call one tool. With an id, only its server is started."""
    with reported(as_json=as_json):
        from gateway.cli import commands  # noqa: PLC0415  (the door)

        code = commands.call(tool, arguments, config=config, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def index(
    action: Annotated[
        Literal["build", "show"],
        typer.Argument(help="build: list and embed; show: what is stored, without servers."),
    ] = "build",
    *,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Forget all stored vectors first.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build the index of the configured servers' tools, or show what is stored."""
    if rebuild and action == "show":
        raise typer.BadParameter("--rebuild goes with build, not with show")
    with reported(as_json=as_json):
        from gateway.cli import commands  # noqa: PLC0415  (the door)

        if action == "show":
            code = commands.index_show(as_json=as_json)
        else:
            code = commands.index_build(config=config, rebuild=rebuild, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def approve(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="A server, or a tool as server/tool; none lists what changed."),
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Approve all that changed.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve tools and command lines that changed since they were approved."""
    with reported(as_json=as_json):
        from gateway.cli.approve import approve as run  # noqa: PLC0415  (the door)

        code = run(names or [], config=config, everything=everything, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def login(
    server: Annotated[str, typer.Argument(help="Its name in the configuration.")],
    *,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open one, or only say where to go.")
    ] = True,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the sign-in instead.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in to a server that wants it (OAuth); its tokens are kept and refreshed."""
    with reported(as_json=as_json):
        from gateway.cli.login import login as run  # noqa: PLC0415  (the door)

        code = run(server, config=config, browser=browser, forget=forget, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=EPILOG)
def demo(
    *,
    trace: Annotated[bool, typer.Option("--trace", help="Print the tree of spans.")] = False,
    as_json: JsonOption = False,
) -> None:
    """See it work: real servers, three conversations. Needs no key and no network.

    With OPENAI_API_KEY or OPENAI_BASE_URL set it talks to that model (GATEWAY_MODEL names it).
    """
    with reported(as_json=as_json):
        from gateway.cli.demo.command import demo as run  # noqa: PLC0415  (the door)

        code = run(with_trace=trace, as_json=as_json)
    raise typer.Exit(code)
