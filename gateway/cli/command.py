"""The declaration of commands: groups, error messages, output and exit codes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import typer

from gateway.cli import options
from gateway.cli.exit_codes import EPILOG
from gateway.cli.output import Output, report_errors

F = TypeVar("F", bound=Callable[..., Output])


def command_group(name: str | None = None, *, help_text: str = "") -> typer.Typer:
    """Return a group of commands; one without a name holds commands of the top level."""
    return typer.Typer(
        name=name, help=help_text, epilog=EPILOG, no_args_is_help=True, add_completion=False
    )


def command(
    group: typer.Typer, name: str | None = None, *, has_json: bool = True
) -> Callable[[F], F]:
    """Register a function as a command of *group*; its output is printed and ends the process.

    Args:
        group: The group.
        name: How the command is typed; None is the function's own name.
        has_json: Add the option ``--json``. A function with a parameter ``as_json`` gets its value.
    """

    def register(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        wants_value = "as_json" in signature.parameters

        @wraps(function)
        def run(**values: Any) -> None:
            as_json = bool(values.get("as_json") if wants_value else values.pop("as_json", False))
            with report_errors(as_json=as_json):
                output = function(**values)
                output.print(as_json=as_json)
            raise typer.Exit(output.code)

        if has_json and not wants_value:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameter = inspect.Parameter("as_json", kind, default=False, annotation=options.Json)
            parameters = [*signature.parameters.values(), parameter]
            run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
            run.__annotations__ = {**function.__annotations__, "as_json": options.Json}
        group.command(name, epilog=EPILOG)(run)
        return function

    return register
