"""Commands: how they are declared, and what they print.

Data goes to standard output, everything else to standard error. With ``--json`` standard output
holds one JSON document, also when the command fails.

Graph documents as the output of a command.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from rich.console import Console, RenderableType
from rich.text import Text

import graphs
from gateway import errors
from gateway.catalog.selection import Selection
from gateway.cli import options
from gateway.cli.app import COMMANDS
from gateway.cli.exit_codes import EPILOG, INTERRUPTED, NOTHING, OK, UNAVAILABLE, USAGE
from gateway.cli.tables import document, printable, to_json
from gateway.errors import ConfigError, InvalidRequestError
from gateway.types import CODES, Caller, Diagnostic, Status
from graphs.errors import GraphError

_ABOUT_NAMES = frozenset({"name_qualified", "name_similar", "name_withheld"})
"""Codes that `gateway doctor` and `gateway approve` report, which know the whole configuration."""


def stderr() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command."""

    data: object
    """What ``--json`` prints."""
    view: RenderableType | None = None
    """What is printed otherwise: a string as it is, but for control characters; "" for nothing;
    None for *data* as tables."""
    _: KW_ONLY
    found: object = True
    """Whether there is anything to show."""
    code: int = OK
    """The exit code, if another one than *found* means."""
    notes: Sequence[str] = ()
    """Remarks after the view."""

    def print(self, *, as_json: bool) -> None:
        """Print the data, or the view and the notes."""
        if as_json:
            typer.echo(to_json(self.data))
            return
        if isinstance(self.view, str):
            if self.view:
                typer.echo(printable(self.view), nl=not self.view.endswith("\n"))
        else:
            console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
            console.print(document(self.data) if self.view is None else self.view)
        for text in self.notes:
            note(text)


F = TypeVar("F", bound=Callable[..., Output])
_CALLER_OPTIONS: dict[str, tuple[object, object]] = {
    "scope": (options.Scope, None),
    "tenant": (options.Tenant, ""),
    "user": (options.User, ""),
}
"""Annotation and default of each option that names the caller."""
_SELECTION_OPTIONS: dict[str, tuple[object, object]] = {
    "text": (options.Words, ""),
    "enabled": (options.Enabled, None),
    "kind": (options.Kind, None),
    "server": (options.Server, None),
    "tag": (options.Tag, None),
    "status": (options.AnyStatus, None),
}
"""The same of each option that selects entities."""


def command_group(name: str = "") -> typer.Typer:
    """Return a group of commands; one without a name holds commands of the top level."""
    return typer.Typer(
        name=name or None,
        help=COMMANDS.get(name),
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
    )


def command(
    group: typer.Typer, name: str | None = None, *, has_json: bool = True, has_set: bool = True
) -> Callable[[F], F]:
    """Register a function as a command of *group*; its output is printed and ends the process.

    A parameter declares its help as ``Annotated[Path, "--out", "-o", "A file."]``: the last
    text is the help, and the texts before it are names that replace the parameter's own. A
    keyword-only parameter is an option, any other parameter an argument. A flag without names has
    an opposite only if it is on by default.

    A parameter ``caller`` is filled by the options --scope, --tenant and --user; None without any.
    A parameter ``selection`` is filled by --text, --kind, --server, --tag, --status and so on.
    Every command takes --verbose.

    Args:
        group: The group.
        name: How the command is typed; None is the function's own name.
        has_json: Add the option ``--json``.
        has_set: Add the option ``--set``, if there is a parameter ``config``.
    """

    def register(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        parameters = dict(signature.parameters)
        shared = {key: made for key, made in _SHARED.items() if parameters.pop(key, None)}

        @wraps(function)
        def run(
            *,
            as_json: bool = False,
            verbose: bool = False,
            chosen: Sequence[str] | None = None,
            **values: Any,
        ) -> None:
            options.CHOSEN.set(tuple(chosen or ()))
            with report_errors(as_json=as_json), show_log(shown=verbose), _needs_plugins():
                for key, (names, make) in shared.items():
                    values[key] = make(*map(values.pop, names))
                output = function(**values)
                output.print(as_json=as_json)
            raise typer.Exit(output.code or (OK if output.found else NOTHING))

        added = {name: made for own, _ in shared.values() for name, made in own.items()}
        takes_set = has_set and "config" in parameters
        added |= {"chosen": (options.Set, None)} if takes_set else {}
        added |= {"verbose": (options.Verbose, False)}
        added |= {"as_json": (options.Json, False)} if has_json else {}
        parameters |= {key: _option(key, *made) for key, made in added.items()}
        parameters = {key: _declared(each) for key, each in parameters.items()}
        run.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {key: each.annotation for key, each in parameters.items()}
        group.command(name, epilog=EPILOG)(run)
        return function

    return register


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _declared(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return *parameter* as typer reads it: the texts of its annotation become names and help."""
    if get_origin(parameter.annotation) is not Annotated:
        return parameter
    kind, *names, summary = get_args(parameter.annotation)
    if not isinstance(summary, str):
        return parameter
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return parameter.replace(annotation=Annotated[kind, typer.Argument(help=summary)])
    if parameter.default is False and not names:
        names = [f"--{parameter.name.replace('_', '-')}"]
    return parameter.replace(annotation=Annotated[kind, typer.Option(*names, help=summary)])


def _caller(scope: Sequence[str] | None, tenant: str, user: str) -> Caller | None:
    if not (scope or tenant or user):
        return None
    return Caller(user=user, tenant=tenant, scopes=frozenset(scope or ()))


def _selection(text: str, enabled: bool | None, *chosen: Sequence[Any] | None) -> Selection:
    kinds, servers, tags, statuses = (frozenset(values or ()) for values in chosen)
    if unknown := statuses - {*get_args(Status)}:
        choices = ", ".join(get_args(Status))
        raise errors.InvalidRequestError(f"--status {min(unknown)!r} is none of {choices}")
    return Selection(
        text=text, kinds=kinds, servers=servers, tags=tags, statuses=statuses, enabled=enabled
    )


_SHARED: Mapping[str, tuple[dict[str, tuple[object, object]], Callable[..., object]]] = {
    "caller": (_CALLER_OPTIONS, _caller),
    "selection": (_SELECTION_OPTIONS, _selection),
}
"""Parameters that several options fill: the options, and what makes a value of theirs."""


def note(text: str) -> None:
    """Print a remark to standard error."""
    stderr().print(Text.assemble(("note: ", "cyan"), printable(text)))


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Print *diagnostics* that are warnings to standard error, equal ones once."""
    lines = (
        f"{printable(item.detail or CODES.get(item.code, ''))} [{item.code}]"
        for item in diagnostics
        if item.code not in _ABOUT_NAMES
    )
    for line in dict.fromkeys(lines):
        stderr().print(Text.assemble(("warning: ", "yellow"), line))


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        stderr().print(Text(printable(f"{record.name}: {record.getMessage()}"), "dim"))


@contextmanager
def show_log(*, shown: bool) -> Iterator[None]:
    """Print what the gateway logs to standard error while the block runs, if it is to be *shown*.

    Servers' own standard error is in it.
    """
    log, lines = logging.getLogger("gateway"), _LogLines()
    level = log.level
    if shown:
        log.addHandler(lines)
        log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


@contextmanager
def _needs_plugins() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if not (message := errors.uninstalled_plugin("this", error)):
            raise
        raise errors.ConfigError(message) from None


@contextmanager
def report_errors(*, as_json: bool) -> Iterator[None]:
    """End the command with a message and an exit code when the block raises an error
    of the gateway or of a graph.

    Raises:
        typer.Exit: The block failed or was interrupted.
    """
    try:
        yield
    except (errors.GatewayError, GraphError) as error:
        text = error.with_stderr if isinstance(error, errors.UpstreamError) else str(error)
        stderr().print(Text.assemble(("error: ", "bold red"), printable(text)))
        # The schema shows how to correct a call.
        extra = {"schema": error.schema} if isinstance(error, errors.InvalidArgumentsError) else {}
        if as_json:
            error_data = {"type": type(error).__name__, "message": text, **extra}
            typer.echo(to_json({"error": error_data}))
        elif extra:
            stderr().print(to_json(extra))
        is_usage = isinstance(error, errors.ConfigError | errors.InvalidRequestError | GraphError)
        raise typer.Exit(USAGE if is_usage else UNAVAILABLE) from None
    except KeyboardInterrupt:
        stderr().print("stopped")
        if as_json:
            typer.echo(to_json({"error": {"type": "Interrupted", "message": "stopped"}}))
        raise typer.Exit(INTERRUPTED) from None


def document_output(
    documents: Sequence[graphs.Document],
    folder: Path | None,
    *,
    force: bool,
    code: int = OK,
    more: Mapping[str, object] | None = None,
) -> Output:
    """Return documents as a bundle that ``--graph`` reads, and as text.

    Args:
        documents: The documents.
        folder: Where they are written instead of being printed, if anywhere.
        force: Overwrite files that are there.
        code: The exit code.
        more: Further members of the bundle.

    Raises:
        ConfigError: A file exists and *force* is not given, or the folder cannot be written.
    """
    texts = [{"path": item.path, "content": graphs.render(item)} for item in documents]
    data = {"version": 1, "documents": texts, **(more or {})}
    if folder is None:
        shown = "\n".join(f"<!-- {item['path']} -->\n{item['content']}" for item in texts)
        return Output(data, shown, found=documents, code=code)
    try:
        existing = [item.path for item in documents if (folder / item.path).exists()]
        if existing and not force:
            raise ConfigError(
                f"{str(folder / existing[0])!r} is there already; nothing was written: name "
                "another folder, or overwrite with --force"
            )
        graphs.write(documents, folder)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
    remark = f"{len(documents)} documents written to {folder}: read them, then --graph {folder}"
    return Output(data, "", found=documents, code=code, notes=(remark,))


def parse_pairs(items: Sequence[str], separator: str, message: str) -> dict[str, str]:
    """Return names and values from items such as ``NAME=VALUE``.

    Raises:
        InvalidRequestError: An item has no name or no *separator*; with *message*.
    """
    pairs = [item.partition(separator) for item in items]
    if not all(name.strip() and found for name, found, _ in pairs):
        raise InvalidRequestError(message)
    return {name.strip(): value.strip() for name, _, value in pairs}
