"""The decorator that declares commands, and the printing of their results and errors.

Data goes to standard output, all else to standard error. With ``--json`` standard output is one
JSON document, even if the command fails.
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
from gateway.runtime.text import counted
from gateway.types import CODES, Caller, Diagnostic, Status
from graphs.errors import GraphError

_NAME_CODES = frozenset({"name_qualified", "name_similar", "name_withheld"})
"""Codes that `gateway doctor` and `gateway approve` report, so commands do not print them."""


def stderr() -> Console:
    """Return a console for standard error."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command."""

    data: object
    """Result that ``--json`` prints."""
    view: RenderableType | None = None
    """Text or table printed without ``--json``. "" prints nothing; None prints *data* as tables.
    Control characters are removed from a string."""
    _: KW_ONLY
    found: object = True
    """If false or empty, the exit code is 1."""
    code: int = OK
    """Exit code, which overrides *found* unless it is 0."""
    notes: Sequence[str] = ()
    """Remarks printed to standard error after the view."""

    def print(self, *, as_json: bool) -> None:
        """Print the data as JSON, or the view and the notes."""
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
"""Options that describe the caller: (annotation, default), keyed by parameter."""
_SELECTION_OPTIONS: dict[str, tuple[object, object]] = {
    "text": (options.Words, ""),
    "enabled": (options.Enabled, None),
    "kind": (options.Kind, None),
    "server": (options.Server, None),
    "tag": (options.Tag, None),
    "status": (options.AnyStatus, None),
}
"""Options that select entities: (annotation, default), keyed by parameter."""


def command_group(name: str = "") -> typer.Typer:
    """Return a group of commands, which are top-level commands if *name* is empty."""
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
    """Register a function as a command of *group*, which prints the output and ends the process.

    ``Annotated[Path, "--out", "-o", "A file."]`` declares names and help of a parameter. A
    keyword-only parameter is an option, any other one an argument. A flag without names has an
    opposite (``--no-…``) only if it is on by default.

    A parameter ``caller`` adds the options --scope, --tenant and --user, and is None without them.
    A parameter ``selection`` adds --text, --kind, --server, --tag, --status and --only-enabled.
    *has_set* adds ``--set`` if there is a parameter ``config``. *name* None is the function's name.
    """

    def register(function: F) -> F:
        signature = inspect.signature(function, eval_str=True)
        parameters = dict(signature.parameters)
        combined = _COMBINED_PARAMETERS.items()
        shared = {key: item for key, item in combined if parameters.pop(key, None)}

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

        added = {name: item for items, _ in shared.values() for name, item in items.items()}
        added |= _common_options(has_set=has_set and "config" in parameters, has_json=has_json)
        parameters |= {key: _option(key, *declaration) for key, declaration in added.items()}
        parameters = {key: _declared(parameter) for key, parameter in parameters.items()}
        run.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {key: parameter.annotation for key, parameter in parameters.items()}
        group.command(name, epilog=EPILOG)(run)
        return function

    return register


def _common_options(*, has_set: bool, has_json: bool) -> dict[str, tuple[object, object]]:
    chosen: dict[str, tuple[object, object]] = {"chosen": (options.Set, None)} if has_set else {}
    json: dict[str, tuple[object, object]] = {"as_json": (options.Json, False)} if has_json else {}
    return {**chosen, "verbose": (options.Verbose, False), **json}


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _declared(parameter: inspect.Parameter) -> inspect.Parameter:
    """Convert the texts in a parameter's annotation to a typer annotation."""
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
        raise errors.InvalidRequestError(
            f"--status {min(unknown)!r} is unknown; use one of {choices}"
        )
    return Selection(
        text=text, kinds=kinds, servers=servers, tags=tags, statuses=statuses, enabled=enabled
    )


_COMBINED_PARAMETERS: Mapping[
    str, tuple[dict[str, tuple[object, object]], Callable[..., object]]
] = {"caller": (_CALLER_OPTIONS, _caller), "selection": (_SELECTION_OPTIONS, _selection)}
"""Parameters built from several options: (the options, function that builds the value)."""


def note(text: str) -> None:
    """Print a remark to standard error."""
    stderr().print(Text.assemble(("note: ", "cyan"), printable(text)))


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Print warnings to standard error, equal lines once."""
    lines = (
        f"{printable(item.detail or CODES.get(item.code, ''))} [{item.code}]"
        for item in diagnostics
        if item.code not in _NAME_CODES
    )
    for line in dict.fromkeys(lines):
        stderr().print(Text.assemble(("warning: ", "yellow"), line))


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        stderr().print(Text(printable(f"{record.name}: {record.getMessage()}"), "dim"))


@contextmanager
def show_log(*, shown: bool) -> Iterator[None]:
    """Print the log of the gateway and its servers to standard error, if *shown*."""
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
    """End the command with a message and an exit code if the block fails or is interrupted.

    Raises:
        typer.Exit: After an error of the gateway or of a graph, or an interruption.
    """
    try:
        yield
    except (errors.GatewayError, GraphError) as error:
        text = error.with_stderr if isinstance(error, errors.UpstreamError) else str(error)
        stderr().print(Text.assemble(("error: ", "bold red"), printable(text)))
        # The schema helps to correct the arguments.
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
    """Return graph documents as a bundle that ``--graph`` reads, or write them to *folder*.

    *force* overwrites existing files. *more* has additional members of the bundle.

    Raises:
        ConfigError: If a file exists without *force*, or the folder cannot be written.
    """
    texts = [{"path": item.path, "content": graphs.render(item)} for item in documents]
    data = {"version": 1, "documents": texts, **(more or {})}
    if folder is None:
        text = "\n".join(f"<!-- {item['path']} -->\n{item['content']}" for item in texts)
        return Output(data, text, found=documents, code=code)
    try:
        existing = [item.path for item in documents if (folder / item.path).exists()]
        if existing and not force:
            raise ConfigError(
                f"{str(folder / existing[0])!r} already exists, so nothing was written: name "
                "another folder, or overwrite with --force"
            )
        graphs.write(documents, folder)
    except OSError as error:
        raise ConfigError(f"cannot write to {str(folder)!r}: {error.strerror}") from error
    count = counted(len(documents), "document")
    remark = f"{count} written to {folder}: read and edit, then use with --graph {folder}"
    return Output(data, "", found=documents, code=code, notes=(remark,))


def parse_pairs(items: Sequence[str], separator: str, message: str) -> dict[str, str]:
    """Return values keyed by name, parsed from items such as ``NAME=VALUE``.

    Raises:
        InvalidRequestError: With *message*, if an item has no name or no *separator*.
    """
    pairs = [item.partition(separator) for item in items]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise InvalidRequestError(message)
    return {name.strip(): value.strip() for name, _, value in pairs}
