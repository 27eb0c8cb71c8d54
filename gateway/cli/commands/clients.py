"""`gateway import` and `gateway install`: servers from other clients, and this gateway in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Group
from typer import Argument, Option

from gateway.cli import options
from gateway.cli.client_files import (
    Client,
    Conversion,
    client_files,
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
from gateway.manifests.json_edit import parse, with_member, without_member

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")

app = command_group()
Outcome = Literal["imported", "replaced", "there", "conflict", "skipped"]
ClientArgument = Annotated[Client, Argument(help="Whose file.")]


@dataclass(slots=True, kw_only=True)
class ServerImport:
    """One import: the text of our file, as it changes."""

    text: str
    where: str
    """The name of our file, for messages."""
    replace: bool
    """Whether servers of the same name are overwritten."""
    conversion: Conversion = field(default_factory=Conversion)

    def add(self, name: str, original: object) -> tuple[Outcome, str, Mapping[str, object]]:
        """Import one server; return what happened, why, and our entry if one was written."""
        if is_this_gateway(original):
            return "skipped", "it is this gateway", {}
        conversion = deepcopy(self.conversion)
        try:
            entry = conversion.entry(name, original)
        except ConfigError as error:
            return "skipped", str(error), {}
        present = server_table(self.text, where=self.where)[1].get(name)
        if present not in (None, entry) and not self.replace:
            return "conflict", "another server of this name is there: rename one, or --replace", {}
        self.conversion = conversion
        if present == entry:
            return "there", "", {}
        self.text = set_server(self.text, name, entry, where=self.where)
        return "imported" if present is None else "replaced", "", entry


@command(app, "import")
def import_(
    client: ClientArgument,
    *,
    source: Annotated[Path | None, Option("--from", help="This file alone.")] = None,
    replace: Annotated[bool, Option("--replace", help="Overwrite servers of that name.")] = False,
    dry_run: options.DryRun = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Take over the servers of another client. Secrets become references, never copies."""
    before = read_text(config)
    run = ServerImport(text=before, where=config.name, replace=replace)
    folder, servers = Path.cwd(), []
    for path, project in _files(client, source, folder):
        document = parse(read_text(path), where=str(path))
        run.conversion.inputs, run.conversion.project = input_descriptions(document), project
        for theirs, original in server_entries(document, folder):
            name = valid_name(theirs)
            outcome, detail, entry = run.add(name, original)
            if name != theirs:
                detail = detail or f"called {theirs!r} there"
            row = {"name": name, "source": str(path), "outcome": outcome, "detail": detail}
            servers.append({**row, "entry": entry})
    if run.text != before and not dry_run:
        write_text(config, run.text, expected=before)
    variables, notes = run.conversion.required, run.conversion.notes
    data = {
        "config": str(config),
        "dry_run": dry_run,
        "servers": servers,
        "variables": variables,
        "notes": notes,
    }
    if not servers:
        return Output(data, "No servers were found. Name a file with --from PATH.", found=False)
    view = Group(
        table(servers, "server=name", "outcome", "source", "detail"),
        *([table(variables, "set=variable", "server", "where")] if variables else []),
    )
    return Output(data, view, notes=(*notes, "nothing was written") if dry_run else notes)


def _files(client: Client, source: Path | None, folder: Path) -> list[tuple[Path, Path | None]]:
    """Return the files to read, each with the folder of its project; None for a user's own."""
    if source is None:
        *own, of_project = client_files(client, folder)
        files: dict[Path, tuple[Path, Path | None]] = {path.resolve(): (path, None) for path in own}
        # In the home folder a project's file may be the user's own.
        files.setdefault(of_project.resolve(), (of_project, folder))
        return [file for path, file in files.items() if path.is_file()]
    if not source.is_file():
        raise ConfigError(f"there is no file {str(source)!r}")
    parent = source.resolve().parent
    is_hidden = parent.name in {".vscode", ".cursor"}
    project = parent.parent if is_hidden else parent if source.name == ".mcp.json" else None
    return [(source, project)]


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
    path = to or client_files(client, Path.cwd())[-1 if project else 0]
    before = text = read_text(path)
    place = ("servers" if client == "vscode" else "mcpServers", name)
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
    command = Path(sys.executable).parent / f"gateway{'.exe' * (sys.platform == 'win32')}"
    arguments = ["serve", "--config", str(config.absolute())]
    if not command.is_file():
        command, arguments = Path(sys.executable), ["-m", "gateway", *arguments]
    entry: dict[str, object] = {"command": str(command), "args": arguments}
    return {"type": "stdio", **entry} if client == "vscode" else entry
