"""`gateway import`: take over the servers of another client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.import_clients.conversion import Conversion, is_this_gateway, valid_name
from gateway.cli.import_clients.paths import (
    Client,
    ClientConfig,
    client_configs,
    input_descriptions,
    server_tables,
)
from gateway.cli.output import Output, printable
from gateway.cli.session import DEFAULT_CONFIG
from gateway.cli.tables import plain_table
from gateway.errors import ConfigError
from gateway.manifests.config_file import read_text, server_table, set_server, write_text
from gateway.manifests.jsonc import parse

app = command_group()
ClientArgument = Annotated[Client, Argument(help="Whose file.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedServer:
    """What happened to one server of a client."""

    name: str
    source: str
    """The client's file."""
    outcome: Literal["imported", "replaced", "there", "conflict", "skipped"]
    detail: str = ""
    entry: Mapping[str, object] = field(default_factory=dict)
    """The entry in our file; empty if it was not written."""


@dataclass(slots=True, kw_only=True)
class ServerImport:
    """One import: the text of our file, and what happened to each server."""

    text: str
    where: str
    """The name of our file, for messages."""
    replace: bool
    """Whether servers of the same name are overwritten."""
    conversion: Conversion = field(default_factory=Conversion)
    servers: list[ImportedServer] = field(default_factory=list)

    def read(self, config: ClientConfig, folder: Path) -> None:
        """Import the servers of a client's file.

        Raises:
            ConfigError: The file cannot be read.
        """
        document = parse(read_text(config.path), where=str(config.path))
        self.conversion.inputs = input_descriptions(document)
        self.conversion.project = config.project
        for table in server_tables(document, folder):
            for name, entry in table.items():
                self.servers.append(self._import(str(config.path), name, entry))

    def _import(self, source: str, original_name: str, original: object) -> ImportedServer:
        name = valid_name(original_name)
        detail = "" if name == original_name else f"called {original_name!r} there"

        def result(outcome: Literal["there", "conflict", "skipped"], detail: str) -> ImportedServer:
            return ImportedServer(name=name, source=source, outcome=outcome, detail=detail)

        if is_this_gateway(original):
            return result("skipped", "it is this gateway")
        before = self.conversion.save()
        try:
            entry = self.conversion.entry(name, original)
        except ConfigError as error:
            return result("skipped", str(error))
        table = server_table(self.text, where=self.where)[1]
        if table.get(name) == entry:
            return result("there", detail)
        if name in table and not self.replace:
            self.conversion.restore(before)
            message = "another server of this name is there: rename one, or --replace"
            return result("conflict", message)
        self.text = set_server(self.text, name, entry, where=self.where)
        return ImportedServer(
            name=name,
            source=source,
            outcome="replaced" if name in table else "imported",
            detail=detail,
            entry=entry,
        )


@command(app, "import")
def import_(
    client: ClientArgument,
    *,
    source: Annotated[
        Path | None, Option("--from", help="This file, instead of those the client has.")
    ] = None,
    replace: Annotated[
        bool, Option("--replace", help="Overwrite servers of the same name.")
    ] = False,
    dry_run: options.DryRun = False,
    config: options.Config = None,
) -> Output:
    """Take over the servers of another client. Secrets become references, never copies."""
    path = config or DEFAULT_CONFIG
    before = read_text(path)
    run = ServerImport(text=before, where=path.name, replace=replace)
    folder = Path.cwd()
    for client_config in _client_files(client, source, folder):
        run.read(client_config, folder)
    if run.text != before and not dry_run:
        write_text(path, run.text, expected=before)
    conversion = run.conversion
    return Output(
        {
            "config": str(path),
            "dry_run": dry_run,
            "servers": run.servers,
            "variables": conversion.required,
            "notes": conversion.notes,
        },
        _import_table(run, path, is_dry_run=dry_run),
        OK if run.servers else NOTHING,
        notes=conversion.notes,
        is_wrapped=False,
    )


def _client_files(client: Client, source: Path | None, folder: Path) -> Iterator[ClientConfig]:
    if source is not None:
        if not source.is_file():
            raise ConfigError(f"there is no file {str(source)!r}")
        parent = source.resolve().parent
        is_hidden = parent.name in {".vscode", ".cursor"}
        project = parent.parent if is_hidden else parent if source.name == ".mcp.json" else None
        yield ClientConfig(label=source.name, path=source, project=project)
        return
    # In the home folder a project's file may be the user's own.
    configs = {item.path.resolve(): item for item in reversed(client_configs(client, folder))}
    yield from (item for item in reversed(configs.values()) if item.path.is_file())


def _import_table(run: ServerImport, path: Path, *, is_dry_run: bool) -> RenderableType:
    if not run.servers:
        return Text("No servers were found. Name a file with --from PATH.")
    rows = ((item.name, item.outcome, item.source, item.detail) for item in run.servers)
    parts: list[RenderableType] = [plain_table("server", "", "from", "", rows=rows)]
    if run.conversion.required:
        parts.append(Text("\nSecrets are not copied. Set these variables to what stands there:"))
        parts += [
            Text(printable(f"  {item.variable}  ({item.server}: {item.where})"))
            for item in run.conversion.required
        ]
    parts.append(
        Text(f"\nNothing was written to {path}." if is_dry_run else f"\nwritten to {path}")
    )
    return Group(*parts)
