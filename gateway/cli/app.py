"""The root of the command line.

A command's module is imported when the command is typed. ``--help`` and ``--version`` therefore
load neither the catalog nor a model. ``--help`` also loads plugins of other distributions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gateway.cli.exit_codes import EPILOG, INTERRUPTED
from gateway.runtime import PLUGIN_GROUP, VERSION

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Base class of usage errors, whose module differs between versions of typer."""

_MODULES = {
    **dict.fromkeys(("tools", "call", "index", "prepare"), "search"),
    **dict.fromkeys(("approve", "login"), "trust"),
    **dict.fromkeys(("import", "install", "uninstall"), "clients"),
    "console": "serve",
    "discover": "provision",
    "eval": "evaluation",
    "graph": "graph_edges",
}
"""Modules in `gateway.cli.commands`, keyed by commands with another name."""
COMMANDS: Mapping[str, str] = {
    "search": (
        "Search the tools of the configured servers, or other entries of the catalog (--kind)."
    ),
    "tools": "List the tools of the configured servers.",
    "check": "Check whether tools can be called, before an unattended run.",
    "call": "Call one tool. With an id, only its server is started.",
    "index": (
        "Build the index of the configured servers' tools, or print the place, size and number of "
        "the stored vectors."
    ),
    "prepare": "Prepare the embedding model and the index before their first use.",
    "attention": "List issues that need a person, the most urgent first.",
    "approve": "Approve tools and command lines that changed since they were approved.",
    "login": "Sign in to a server that uses OAuth; its tokens are stored and refreshed.",
    "demo": "Show three conversations with real servers. Needs no key and no network.",
    "serve": "Serve the configured servers' tools as one MCP server.",
    "console": (
        "Open the console in a browser: the catalog, its searches and its calls. This machine only."
    ),
    "discover": ("List the servers, tools and schemas of the configuration. No registry is asked."),
    "provision": "Find and add a server for tasks that the configured servers cannot do.",
    "import": "Import the servers of another client. Secrets become references, never copies.",
    "install": ("Add this gateway to another client's file, after a dated backup of the file."),
    "uninstall": (
        "Remove this gateway from another client's file, and restore the servers that it took over."
    ),
    "doctor": "Check everything that this gateway needs on this machine, and suggest remedies.",
    "graph": "Show, draw, query, check and edit the graph of the tools.",
    "usage": "Show, export and delete the outcomes of recorded calls.",
    "eval": "Measure whether your own tools are found: make requests, run them, compare runs.",
    "tune": "Learn which tools serve which requests; keep the result if other requests improve.",
    "lint": "Report problems of your tools' definitions, their cost and possible fixes.",
    "catalog": "Manage agents, skills, servers and your own kinds of entries, next to the tools.",
    "audit": "Show or export the log of decisions and changes.",
    "servers": "Add, list, test and remove the servers of your configuration.",
    "plugins": "List the plugins with their origin, hooks and load errors.",
    "programs": "List the programs that wait for an approval, and decide about them.",
    "dashboards": "Write dashboards for Grafana and alerts for Prometheus as files.",
}
"""Summaries, keyed by command."""


def load_command(name: str) -> Any:
    """Return the typer command or group of a command's module."""
    return _load(name, f"gateway.cli.commands.{_MODULES.get(name, name)}")


def _load_own(name: str) -> Any:
    try:
        return load_command(name)
    except ModuleNotFoundError as error:
        from gateway.errors import uninstalled_plugin  # noqa: PLC0415  (loads asyncio)

        if not (message := uninstalled_plugin(f"gateway {name}", error)):
            raise
        raise UsageError(message) from None


def _load(name: str, module: str) -> Any:
    loaded = typer.main.get_command(import_module(module).app)
    return getattr(loaded, "commands", {}).get(name, loaded)


def _plugin_commands() -> Mapping[str, Any]:
    """Return the commands of plugins, keyed by name. Empty if a plugin is faulty."""
    if not entry_points(group=PLUGIN_GROUP):
        return {}
    from gateway.errors import Failed, attempt_call  # noqa: PLC0415  (loads asyncio)
    from gateway.options.environment import environment  # noqa: PLC0415  (few have plugins)
    from gateway.plugin_manager import load_plugins  # noqa: PLC0415  (loads numpy)

    commands = attempt_call(lambda: load_plugins(environment().plugins).tables("register_commands"))
    return {} if isinstance(commands, Failed) else commands


@contextmanager
def _report_usage_errors(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if as_json:
            from gateway.cli.tables import to_json  # noqa: PLC0415  (loads rich and the gateway's types)

            message = getattr(error, "format_message", error.__str__)()
            context: typer.Context | None = getattr(error, "ctx", None)
            hint = f"see {context.command_path if context else 'gateway'} --help"
            error_data = {"type": "UsageError", "message": message, "hint": hint}
            typer.echo(to_json({"error": error_data}))
        raise


class JsonAwareGroup(TyperGroup):
    """The root group: loads commands when needed, and prints usage errors as JSON too.

    With ``--json`` before any ``--``, standard output is then one JSON document.
    """

    as_json = False

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # type: ignore[no-untyped-def,override]  # noqa: ANN201  (typer's own class of contexts is private)
        """Load the command that is first in *args*."""
        name = args[0]
        if name in COMMANDS:
            self.commands[name] = _load_own(name)
        elif added := _plugin_commands().get(name):
            self.commands[name] = _load(name, added.module)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all commands, including commands of plugins."""
        for name, command in _plugin_commands().items():
            listed = typer.Typer(add_completion=False)
            listed.command(name, help=command.summary)(lambda: None)
            self.commands.setdefault(name, typer.main.get_command(listed))
        return super().list_commands(ctx)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """Parse the options before the command."""
        self.as_json = wants_json(args)
        with _report_usage_errors(as_json=self.as_json):
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _report_usage_errors(as_json=self.as_json):
            return super().invoke(ctx)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether *arguments* contain ``--json`` before any ``--``."""
    return "--json" in arguments[: [*arguments, "--"].index("--")]


app = typer.Typer(
    name="gateway",
    cls=JsonAwareGroup,
    help="Find and call the tools of many MCP servers.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with *arguments*, or those of the process, and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A small character set of the terminal must not end a command.
            stream.reconfigure(errors="replace")
    try:
        app(args=arguments)
    except KeyboardInterrupt:
        # While the command line was being parsed.
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
