"""A command line that was mistyped: for whoever asked for JSON, as JSON too.

* Where ``--json`` stands before a ``--``, standard output is one document, as `gateway.cli.screen`
  has it of other errors. What people read stays on standard error, and the exit code stays.
* It sits in the outermost group alone, so that no command can forget it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from gateway.cli.screen import emit

P = ParamSpec("P")
T = TypeVar("T")
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Under which of its modules this stands differs between typer's versions."""


def _told(step: Callable[P, T]) -> Callable[P, T]:
    def done(*given: P.args, **named: P.kwargs) -> T:
        try:
            return step(*given, **named)
        except UsageError as error:
            if getattr(given[0], "as_json", False):
                emit({"error": usage_error(error)})
            raise

    return done


_make_context = _told(TyperGroup.make_context)
_invoke = _told(TyperGroup.invoke)


class Commands(TyperGroup):
    """The outermost group of commands."""

    as_json = False

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: object,
    ) -> object:
        """Run the command line: *args*, or the process's own."""
        self.as_json = wants_json(sys.argv[1:] if args is None else args)
        return super().main(
            args, prog_name, complete_var, standalone_mode, windows_expand_args, **extra
        )

    make_context = _make_context
    invoke = _invoke


def wants_json(arguments: Sequence[str]) -> bool:
    """Say whether *arguments* ask for JSON; those after ``--`` are somebody else's."""
    return "--json" in arguments[: [*arguments, "--"].index("--")]


def usage_error(error: Exception) -> dict[str, str]:
    """Say what was mistyped, and where it is told what may be typed."""
    message = getattr(error, "format_message", error.__str__)()
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "gateway"
    return {"type": "UsageError", "message": message, "hint": f"see {command} --help"}
