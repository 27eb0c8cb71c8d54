"""The command line. A command's module is imported when the command is typed, so that ``--help``
and ``--version`` load neither the catalog nor a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, ParamSpec, Protocol, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from gateway.cli.exit_codes import EPILOG, INTERRUPTED
from gateway.runtime import VERSION

P = ParamSpec("P")
T = TypeVar("T")
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base class of usage errors; its module differs between versions of typer."""

COMMANDS: Mapping[str, tuple[str, str]] = {
    "search": (
        "search",
        "Search the tools of the configured servers, or what else the catalog holds (--kind).",
    ),
    "tools": ("search", "List the tools of the configured servers."),
    "call": ("search", "Call one tool. With an id, only its server is started."),
    "index": ("index", "Build the index of the configured servers' tools, or show what is stored."),
    "approve": (
        "approve",
        "Approve tools and command lines that changed since they were approved.",
    ),
    "login": (
        "login",
        "Sign in to a server that wants it (OAuth); its tokens are kept and refreshed.",
    ),
    "demo": (
        "demo",
        "See it work: real servers, three conversations. Needs no key and no network.",
    ),
    "serve": ("serve", "Serve the configured servers' tools as one MCP server."),
    "discover": (
        "provision",
        "Show what the configured servers can do: servers, tools, schemas. Asks no registry.",
    ),
    "provision": (
        "provision",
        "Find a server for what the configured ones cannot do, and bring it in.",
    ),
    "import": (
        "import_",
        "Take over the servers of another client. Secrets become references, never copies.",
    ),
    "install": (
        "install",
        "Write this gateway into another client's file, with a dated copy of what was there.",
    ),
    "doctor": ("doctor", "Check everything that this gateway needs here, and say what to do."),
    "graph": ("graph", "See, draw, ask, check and write down the graph of the tools."),
    "usage": ("usage", "See, write down and forget what calls have shown."),
    "catalog": ("catalog", "Keep agents, skills, servers and things of your own beside the tools."),
    "servers": ("servers", "Add, list, test and remove the servers of your configuration."),
}
"""Each command: its module in `gateway.cli.commands` and its summary."""


class Command(Protocol):
    """A command or a group of commands, as typer has it."""

    name: str | None


def load_command(name: str) -> Command:
    """Import the module of a command and return the command."""
    module = import_module(f"gateway.cli.commands.{COMMANDS[name][0]}")
    loaded = typer.main.get_command(module.app)
    command: Command = getattr(loaded, "commands", {}).get(name, loaded)
    return command


def _print_usage_errors(step: Callable[P, T]) -> Callable[P, T]:
    def run(*args: P.args, **options: P.kwargs) -> T:
        try:
            return step(*args, **options)
        except UsageError as error:
            if getattr(args[0], "as_json", False):
                from gateway.cli.output import print_json  # noqa: PLC0415  (loads rich and the gateway's types)

                print_json({"error": describe_usage_error(error)})
            raise

    return run


_make_context = _print_usage_errors(TyperGroup.make_context)
_invoke = _print_usage_errors(TyperGroup.invoke)


class JsonAwareGroup(TyperGroup):
    """The outermost group: loads commands late, and prints usage errors as JSON too.

    Where ``--json`` stands before a ``--``, standard output is one JSON document also after a
    usage error. The message for people stays on standard error, and the exit code is the same.
    """

    as_json = False

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # (typer's own class of contexts is private)
        """Return the names of the commands."""
        del ctx
        for name, (_, summary) in COMMANDS.items():
            self.commands.setdefault(name, TyperCommand(name, help=summary))
        return list(COMMANDS)

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[no-untyped-def,override]  # noqa: ANN201  (as above)
        """Load the command that *args* begin with."""
        self.list_commands(ctx)
        if args[0] in COMMANDS:
            self.commands[args[0]] = load_command(args[0])  # type: ignore[assignment]
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: object,
    ) -> object:
        """Run the command line *args*; None is the process's own."""
        self.as_json = wants_json(sys.argv[1:] if args is None else args)
        return super().main(
            args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra
        )

    make_context = _make_context
    invoke = _invoke


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether *arguments* ask for JSON; those after ``--`` belong to another program."""
    return "--json" in arguments[: [*arguments, "--"].index("--")]


def describe_usage_error(error: Exception) -> dict[str, str]:
    """Return what was typed wrongly, and which help text shows what may be typed."""
    message = getattr(error, "format_message", error.__str__)()
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "gateway"
    return {"type": "UsageError", "message": message, "hint": f"see {command} --help"}


app = typer.Typer(
    name="gateway",
    cls=JsonAwareGroup,
    help="Find and call the tools of many MCP servers.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
        # Raised while the command line was still being read.
        raise SystemExit(INTERRUPTED) from None


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"tool-gateway {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find and call the tools of many MCP servers."""
