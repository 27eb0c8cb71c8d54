"""Where words go: data to standard output, everything else to standard error.

* Text of upstreams is data: no markup, no control characters.
* ``NO_COLOR``, ``COLUMNS`` and pipes are honoured by rich.
* With ``--json`` standard output holds one JSON document, also when something went wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from gateway.cli.exits import INTERRUPTED, exit_code
from gateway.errors import GatewayError, InvalidArgumentsError
from gateway.types import CODES, Diagnostic

_UNSEEN = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def out() -> Console:
    """Give standard output, for people."""
    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """Give standard error."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Drop what could steer a terminal."""
    return text.translate(_UNSEEN).encode("utf-8", "replace").decode()


def emit(value: object) -> None:
    """Print *value* as JSON."""
    typer.echo(document(value, encoding=sys.stdout.encoding or "utf-8"))


def document(value: object, *, encoding: str) -> str:
    """Write *value* as JSON, escaped as a whole if *encoding* cannot hold it as it is."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def note(text: str) -> None:
    """Say something on the side."""
    err().print(Text.assemble(("note: ", "cyan"), printable(text)))


def warn(notes: Iterable[Diagnostic]) -> None:
    """Say what went wrong on the way, each thing once."""
    told = (f"{printable(each.detail or CODES.get(each.code, ''))} [{each.code}]" for each in notes)
    for line in dict.fromkeys(told):
        err().print(Text.assemble(("warning: ", "yellow"), line))


@contextmanager
def reported(*, as_json: bool) -> Iterator[None]:
    """End the command with a message and its exit code when the block raises an error of ours, or
    somebody stops it.
    """
    try:
        yield
    except GatewayError as error:
        code = exit_code(error)
        err().print(Text.assemble(("error: ", "bold red"), printable(str(error))))
        shown = _shown(error)
        if as_json:
            emit({"error": {"type": type(error).__name__, "message": str(error), **shown}})
        elif shown:
            err().print(json.dumps(shown, ensure_ascii=False, indent=2))
        raise typer.Exit(code) from None
    except KeyboardInterrupt as stopped:
        told = f"stopped: {stopped}" if str(stopped) else "stopped"
        err().print(told)
        if as_json:
            emit({"error": {"type": "Interrupted", "message": told}})
        raise typer.Exit(INTERRUPTED) from None


def _shown(error: GatewayError) -> dict[str, object]:
    """Give what one needs to mend a call: the tool's schema."""
    return {"schema": dict(error.schema)} if isinstance(error, InvalidArgumentsError) else {}
