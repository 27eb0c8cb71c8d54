"""Output of commands: data to standard output, everything else to standard error.

* Text of servers is data: it is printed without markup and without control characters.
* rich honours ``NO_COLOR``, ``COLUMNS`` and pipes.
* With ``--json`` standard output holds one JSON document, also when the command fails.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from gateway.cli.exit_codes import INTERRUPTED, OK, UNAVAILABLE, USAGE
from gateway.errors import ConfigError, GatewayError, InvalidArgumentsError, InvalidRequestError
from gateway.types import CODES, Diagnostic, SearchResult

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def stdout() -> Console:
    """Return a console on standard output."""
    return Console(markup=False, highlight=False, emoji=False)


def stderr() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return *text* without the characters that could steer a terminal."""
    return text.translate(_CONTROLS).encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command."""

    data: object
    """What ``--json`` prints."""
    view: RenderableType | None
    """What is printed otherwise: a string as it is, but for control characters; "" for nothing;
    None for *data* in any case."""
    code: int = OK
    """The exit code."""
    notes: Sequence[str] = ()
    """Remarks after the view."""
    is_wrapped: bool = True
    """Whether long lines of a view that is no string are folded."""

    def print(self, *, as_json: bool) -> None:
        """Print the data, or the view and the notes."""
        if as_json or self.view is None:
            print_json(self.data)
            return
        if not isinstance(self.view, str):
            stdout().print(self.view, soft_wrap=not self.is_wrapped)
        elif self.view:
            typer.echo(printable(self.view), nl=not self.view.endswith("\n"))
        for text in self.notes:
            note(text)


def print_json(value: object) -> None:
    """Print *value* as one JSON document."""
    typer.echo(format_json(to_jsonable(value), encoding=sys.stdout.encoding or "utf-8"))


def format_json(value: object, *, encoding: str) -> str:
    """Return *value* as indented JSON, escaped to ASCII if *encoding* cannot hold it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def to_jsonable(value: object) -> Any:
    """Return *value* as objects, lists, strings, numbers, booleans and null.

    A diagnostic gets the meaning of its code. Sets are sorted. A number that JSON lacks becomes
    null.
    """
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if is_dataclass(value) and not isinstance(value, type):
        item = {part.name: to_jsonable(getattr(value, part.name)) for part in fields(value)}
        if isinstance(value, Diagnostic):
            item["meaning"] = CODES.get(value.code, "")
        if isinstance(value, SearchResult):
            item["degraded"] = value.degraded
        return item
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        items = sorted(value, key=str) if isinstance(value, AbstractSet) else value
        return [to_jsonable(item) for item in items]
    return str(value)


def note(text: str) -> None:
    """Print a remark to standard error."""
    stderr().print(Text.assemble(("note: ", "cyan"), printable(text)))


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Print *diagnostics* to standard error, equal ones once."""
    lines = (
        f"{printable(item.detail or CODES.get(item.code, ''))} [{item.code}]"
        for item in diagnostics
    )
    for line in dict.fromkeys(lines):
        stderr().print(Text.assemble(("warning: ", "yellow"), line))


@contextmanager
def report_errors(*, as_json: bool) -> Iterator[None]:
    """End the command with a message and an exit code when the block raises a `GatewayError`.

    Raises:
        typer.Exit: The block failed or was interrupted.
    """
    try:
        yield
    except GatewayError as error:
        stderr().print(Text.assemble(("error: ", "bold red"), printable(str(error))))
        # The schema shows how to correct a call.
        extra = {"schema": dict(error.schema)} if isinstance(error, InvalidArgumentsError) else {}
        if as_json:
            print_json({"error": {"type": type(error).__name__, "message": str(error), **extra}})
        elif extra:
            stderr().print(json.dumps(extra, ensure_ascii=False, indent=2))
        is_usage = isinstance(error, ConfigError | InvalidRequestError)
        raise typer.Exit(USAGE if is_usage else UNAVAILABLE) from None
    except KeyboardInterrupt as interrupt:
        message = f"stopped: {interrupt}" if str(interrupt) else "stopped"
        stderr().print(message)
        if as_json:
            print_json({"error": {"type": "Interrupted", "message": message}})
        raise typer.Exit(INTERRUPTED) from None
