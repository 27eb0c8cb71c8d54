"""The declaration of commands: groups, exit codes and the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from gateway.cli.exit_codes import EPILOG
from gateway.cli.output import report_errors
from gateway.types import Strategy

P = ParamSpec("P")


def command_group(name: str | None = None, *, help_text: str = "") -> typer.Typer:
    """Return a group of commands; one without a name holds commands of the top level."""
    return typer.Typer(
        name=name, help=help_text, epilog=EPILOG, no_args_is_help=True, add_completion=False
    )


def command(
    group: typer.Typer, name: str | None = None
) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Register a function as a command of *group*.

    The function returns its exit code. Errors become messages and exit codes; with ``--json``
    (the parameter ``as_json``) they are printed as JSON too.

    Args:
        group: The group.
        name: How the command is typed; None is the function's own name.
    """

    def register(function: Callable[P, int]) -> Callable[P, int]:
        @wraps(function)
        def run(*args: P.args, **options: P.kwargs) -> None:
            with report_errors(as_json=bool(options.get("as_json"))):
                code = function(*args, **options)
            raise typer.Exit(code)

        group.command(name, epilog=EPILOG)(run)
        return function

    return register


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="An mcp.json; default: the one in this folder."),
]
GraphOption = Annotated[
    Path | None,
    typer.Option("--graph", "-g", help="Your Markdown-LD documents: a folder, file or bundle."),
]
StrategyOption = Annotated[
    Strategy | None,
    typer.Option(help="Default: auto with the embedded model installed, else graph."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output.")
]
KindOption = Annotated[
    list[str] | None, typer.Option("--kind", "-k", help="Only of this kind; repeat it for more.")
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", "-t", help="With this tag; repeat it for more.")
]
StatusOption = Annotated[
    list[str] | None,
    typer.Option("--status", help="active (without any), draft or deprecated; repeat it."),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")
]
FolderOption = Annotated[Path | None, typer.Option("--out", "-o", help="A folder to write to.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
RegistryOption = Annotated[
    str, typer.Option("--registry", help="An MCP registry's URL; without one, nothing is fetched.")
]
TrustOption = Annotated[
    list[str] | None,
    typer.Option("--trust", help="A registry's namespace/*, or namespace/name, that you trust."),
]
