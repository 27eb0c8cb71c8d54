"""`gateway import` and `gateway install`: servers from other clients, and this gateway in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Group
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.client_files import (
    SERVERS_KEY,
    Client,
    ClientConfig,
    Conversion,
    client_configs,
    input_descriptions,
    is_this_gateway,
    member,
    server_entries,
    valid_name,
)
from gateway.cli.command import Output, command, command_group
from gateway.cli.session import read_config
from gateway.cli.tables import table
from gateway.errors import ConfigError
from gateway.manifests.config_file import read_text, server_table, set_server, write_text
from gateway.manifests.json_edit import with_member, without_member
from gateway.manifests.jsonc import parse

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")

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
        for name, entry in server_entries(document, folder):
            self.servers.append(self._import(str(config.path), name, entry))

    def _import(self, source: str, original_name: str, original: object) -> ImportedServer:
        name = valid_name(original_name)
        detail = "" if name == original_name else f"called {original_name!r} there"
        result = partial(ImportedServer, name=name, source=source)
        if is_this_gateway(original):
            return result(outcome="skipped", detail="it is this gateway")
        conversion = deepcopy(self.conversion)
        try:
            entry = conversion.entry(name, original)
        except ConfigError as error:
            return result(outcome="skipped", detail=str(error))
        servers = server_table(self.text, where=self.where)[1]
        is_taken = name in servers and servers[name] != entry
        if is_taken and not self.replace:
            message = "another server of this name is there: rename one, or --replace"
            return result(outcome="conflict", detail=message)
        self.conversion = conversion
        if name in servers and not is_taken:
            return result(outcome="there", detail=detail)
        self.text = set_server(self.text, name, entry, where=self.where)
        return result(outcome="replaced" if is_taken else "imported", detail=detail, entry=entry)


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
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Take over the servers of another client. Secrets become references, never copies."""
    before = read_text(config)
    run = ServerImport(text=before, where=config.name, replace=replace)
    folder = Path.cwd()
    for client_config in _client_files(client, source, folder):
        run.read(client_config, folder)
    if run.text != before and not dry_run:
        write_text(config, run.text, expected=before)
    variables, notes = run.conversion.required, run.conversion.notes
    data = {
        "config": str(config),
        "dry_run": dry_run,
        "servers": run.servers,
        "variables": variables,
        "notes": notes,
    }
    if not run.servers:
        return Output(data, "No servers were found. Name a file with --from PATH.", found=False)
    view = Group(
        table(run.servers, "server=name", "outcome", "source", "detail"),
        *([table(variables, "set=variable", "server", "where")] if variables else []),
    )
    return Output(data, view, notes=(*notes, "nothing was written") if dry_run else notes)


def _client_files(client: Client, source: Path | None, folder: Path) -> Iterator[ClientConfig]:
    if source is not None:
        if not source.is_file():
            raise ConfigError(f"there is no file {str(source)!r}")
        parent = source.resolve().parent
        is_hidden = parent.name in {".vscode", ".cursor"}
        project = parent.parent if is_hidden else parent if source.name == ".mcp.json" else None
        yield ClientConfig(path=source, project=project)
        return
    # In the home folder a project's file may be the user's own.
    configs = {item.path.resolve(): item for item in reversed(client_configs(client, folder))}
    yield from (item for item in reversed(configs.values()) if item.path.is_file())


@command(app)
def install(  # noqa: PLR0913  (one for each option)
    client: ClientArgument,
    *,
    to: Annotated[Path | None, Option("--to", help="This file, instead of the user's own.")] = None,
    project: Annotated[
        bool, Option("--project", help="The file of the project in this folder.")
    ] = False,
    name: Annotated[str, Option(help="The gateway's name in that file.")] = "gateway",
    remove: Annotated[bool, Option("--remove", help="Remove the gateway again.")] = False,
    dry_run: options.DryRun = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Write this gateway into another client's file, with a dated copy of what was there."""
    path = to or client_configs(client, Path.cwd())[-1 if project else 0].path
    before = text = read_text(path)
    place = (SERVERS_KEY[client], name)
    document = parse(before, where=str(path)) if before.strip() else {}
    present = member(member(document, place[0]), name)
    if present is not None and not is_this_gateway(present):
        raise ConfigError(
            f"{str(path)!r} has another server {name!r}: take another name with --name"
        )
    entry = None if remove else _own_entry(client, config)
    if present == entry:
        outcome = "absent" if remove else "there"
    elif entry is None:
        outcome, text = "removed", without_member(before, place, where=str(path))
    else:
        outcome = "installed" if present is None else "replaced"
        text = with_member(before, place, entry, where=str(path))
    backup = None
    if text != before and not dry_run:
        backup = write_text(path, text, expected=before, backup_at=datetime.now(UTC))
    variables = [] if remove else _VARIABLE.findall(read_text(config))
    data = {
        "path": path,
        "name": name,
        "done": outcome,
        "backup": backup,
        "dry_run": dry_run,
        "variables": tuple(dict.fromkeys(variables)),
    }
    advice = "nothing was written" if dry_run else "restart the client"
    return Output(data, notes=(advice,) if text != before else ())


def _own_entry(client: Client, config: Path) -> dict[str, object]:
    read_config(config)
    program = Path(sys.executable).parent / (
        "gateway.exe" if sys.platform == "win32" else "gateway"
    )
    serve = ["serve", "--config", str((config).absolute())]
    entry: dict[str, object] = {"command": str(program), "args": serve}
    if not program.is_file():
        entry = {"command": sys.executable, "args": ["-m", "gateway", *serve]}
    return {"type": "stdio", **entry} if client == "vscode" else entry
