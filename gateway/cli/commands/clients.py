"""`gateway import`, `install` and `uninstall`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Group

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.session import read_config
from gateway.cli.tables import table
from gateway.config import config_file
from gateway.config.json_edit import parse, with_member, without_member
from gateway.errors import ConfigError
from gateway.plugins.manifests.client_files import (
    Client,
    Conversion,
    client_files,
    input_descriptions,
    is_this_gateway,
    member,
    server_entries,
    stdio_entry,
    table_key,
)
from gateway.runtime.json_schema import as_object
from gateway.runtime.naming import to_server_name

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")

app = command_group()
Outcome = Literal["imported", "replaced", "there", "conflict", "skipped"]
ClientArgument = Annotated[Client, "Client whose file is used."]
ToFile = Annotated[Path | None, "--to", "Use this file instead of the user's own file."]
ProjectFile = Annotated[bool, "--project", "Use the file of the project in the current folder."]
OwnName = Annotated[str, "--name", "Name of the gateway in that file."]
_BACKUPS = "GATEWAY_TAKEN_OVER"
"""Variable in the gateway's entry: paths of backups made before servers were moved."""


@dataclass(slots=True, kw_only=True)
class ServerImport:
    """Import of another client's servers into *text*, the gateway's configuration."""

    text: str
    where: str
    """Configuration file, for messages."""
    replace: bool
    """True to overwrite servers with the same name."""
    conversion: Conversion = field(default_factory=Conversion)

    def add(self, name: str, original: object) -> tuple[Outcome, str, Mapping[str, object]]:
        """Import one server; return (outcome, reason, entry). An unwritten entry is empty."""
        if is_this_gateway(original):
            return "skipped", "this entry is the gateway itself", {}
        conversion = deepcopy(self.conversion)
        try:
            entry = conversion.entry(name, original)
        except ConfigError as error:
            return "skipped", str(error), {}
        present = config_file.server_table(self.text, where=self.where)[1].get(name)
        if present not in (None, entry) and not self.replace:
            return "conflict", "another server has this name: rename one, or use --replace", {}
        self.conversion = conversion
        if present == entry:
            return "there", "", {}
        self.text = config_file.set_server(self.text, name, entry, where=self.where)
        return "imported" if present is None else "replaced", "", entry


@command(app, "import")
def import_(
    client: ClientArgument,
    *,
    source: Annotated[Path | None, "--from", "Read only this file."] = None,
    replace: Annotated[bool, "Overwrite servers with the same name."] = False,
    dry_run: options.DryRun = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Import the servers of another client. Secrets become references, never copies."""
    before = config_file.read_text(config)
    run = ServerImport(text=before, where=config.name, replace=replace)
    folder, servers = Path.cwd(), []
    for path, project in _files(client, source, folder):
        document = parse(config_file.read_text(path), where=str(path))
        run.conversion.inputs, run.conversion.project = input_descriptions(document), project
        for theirs, original in server_entries(document, folder):
            name = to_server_name(theirs)
            outcome, detail, entry = run.add(name, original)
            if name != theirs:
                detail = detail or f"its name in the client is {theirs!r}"
            row = {"name": name, "source": str(path), "outcome": outcome, "detail": detail}
            servers.append({**row, "entry": entry})
    if run.text != before and not dry_run:
        config_file.write_text(config, run.text, expected=before)
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
    """Return the files of *client* and their project folders; None for the user's own file."""
    if source is None:
        *own_files, of_project = client_files(client, folder)
        files: dict[Path, tuple[Path, Path | None]] = {
            path.resolve(): (path, None) for path in own_files
        }
        # If *folder* is the home folder, the project's file may be the user's own file.
        files.setdefault(of_project.resolve(), (of_project, folder))
        return [file for path, file in files.items() if path.is_file()]
    if not source.is_file():
        raise ConfigError(f"file {str(source)!r} was not found")
    parent = source.resolve().parent
    is_hidden = parent.name in {".vscode", ".cursor"}
    project = parent.parent if is_hidden else parent if source.name == ".mcp.json" else None
    return [(source, project)]


@command(app)
def install(
    client: ClientArgument,
    *,
    to: ToFile = None,
    project: ProjectFile = False,
    name: OwnName = "gateway",
    take_over: Annotated[
        bool, "Move the client's servers into the gateway's configuration."
    ] = False,
    dry_run: options.DryRun = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Add this gateway to another client's file, after a dated backup of the file."""
    file = ClientFile.read(client, name, to=to, project=project)
    ours = before = config_file.read_text(config)
    copy, moved, env = config_file.backup_path(file.path, datetime.now(UTC)), [], file.env
    if take_over:
        folder = Path.cwd() if project else None
        conversion = Conversion(inputs=input_descriptions(file.document), project=folder)
        run = ServerImport(text=before, where=config.name, replace=False, conversion=conversion)
        rows = [(theirs, run.add(to_server_name(theirs), entry)) for theirs, entry in file.others]
        moved = [theirs for theirs, (outcome, *_) in rows if outcome in {"imported", "there"}]
        stay = [f"{theirs!r} was not moved: {detail}" for theirs, (_, detail, _) in rows if detail]
        ours, notes = run.text, [*stay, *run.conversion.notes]
        copies = [*filter(None, [env.get(_BACKUPS)]), str(copy)]
        # Secrets stay in the client's file, as variables of the gateway.
        env |= {**run.conversion.secrets, _BACKUPS: os.pathsep.join(copies)} if moved else {}
    else:
        read_config(config)
        names = ", ".join(theirs for theirs, _ in file.others)
        remark = f"{client} still shows its own servers ({names}) next to the gateway; "
        notes = [f"{remark}--take-over moves them into its configuration"] if names else []
    entry = {**stdio_entry(client, config), **({"env": env} if env else {})}
    outcome = "there" if file.present == entry else "replaced" if file.present else "installed"
    text = file.without(moved)
    if outcome != "there":
        text = with_member(text, file.place, entry, where=str(file.path))
    if ours != before and not dry_run:
        config_file.write_text(config, ours, expected=before)
    data = {"moved": moved, "variables": _variables(ours, env)}
    return file.write(text, outcome, data, notes, copy=copy, dry_run=dry_run)


@command(app)
def uninstall(
    client: ClientArgument,
    *,
    to: ToFile = None,
    project: ProjectFile = False,
    name: OwnName = "gateway",
    dry_run: options.DryRun = False,
) -> Output:
    """Remove this gateway from another client's file, and restore the servers that it took over."""
    file = ClientFile.read(client, name, to=to, project=project)
    text, restored, notes = file.without([name]), list[str](), []
    for copy in map(Path, filter(None, file.env.get(_BACKUPS, "").split(os.pathsep))):
        former = config_file.read_text(copy)
        if not former:
            notes.append(
                f"the backup {str(copy)!r} is missing; its servers are still in our configuration"
            )
        for theirs, entry in ClientFile(file.path, former, (file.place[0], name)).others:
            if theirs not in {name for name, _ in file.others}:
                text = with_member(text, (file.place[0], theirs), entry, where=str(file.path))
                restored.append(theirs)
        if former and parse(text, where=str(file.path)) == parse(former, where=str(copy)):
            # The saved text also contains the comments and the order of the keys.
            text = former
    copy = config_file.backup_path(file.path, datetime.now(UTC))
    outcome = "removed" if file.present else "absent"
    return file.write(text, outcome, {"restored": restored}, notes, copy=copy, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's file, and the position of this gateway's entry in it."""

    path: Path
    text: str
    place: tuple[str, str]
    """Key of the table of servers, and the gateway's name in that table."""

    @classmethod
    def read(cls, client: Client, name: str, *, to: Path | None, project: bool) -> ClientFile:
        """Read the file selected by the options.

        Raises:
            ConfigError: If the file is invalid, or has another server called *name*.
        """
        path = to or client_files(client, Path.cwd())[-1 if project else 0]
        place = (table_key(client), name)
        file = cls(path, config_file.read_text(path), place)
        if file.present is not None and not is_this_gateway(file.present):
            raise ConfigError(
                f"{str(path)!r} has another server {name!r}: choose another name with --name"
            )
        return file

    @property
    def document(self) -> object:
        """Parsed content; an empty object if the file is blank."""
        return parse(self.text, where=str(self.path)) if self.text.strip() else {}

    @property
    def present(self) -> object:
        """The gateway's entry; None if it is missing."""
        return member(member(self.document, self.place[0]), self.place[1])

    @property
    def others(self) -> list[tuple[str, object]]:
        """Names and entries of all other servers."""
        table = as_object(member(self.document, self.place[0]))
        return [(name, entry) for name, entry in table.items() if not is_this_gateway(entry)]

    @property
    def env(self) -> dict[str, str]:
        """Environment variables in the gateway's entry."""
        env = as_object(member(self.present, "env"))
        return {name: str(value) for name, value in env.items()}

    def without(self, names: Iterable[str]) -> str:
        """Return the file's text without the servers *names*."""
        text = self.text
        for name in names:
            text = without_member(text, (self.place[0], name), where=str(self.path))
        return text

    def write(
        self,
        text: str,
        outcome: str,
        data: Mapping[str, object],
        notes: Iterable[str],
        *,
        copy: Path,
        dry_run: bool,
    ) -> Output:
        """Write *text* if it changed, unless *dry_run*; return the command's output."""
        backup = None
        if text != self.text and not dry_run:
            backup = config_file.write_text(self.path, text, expected=self.text, backup=copy)
        advice = "nothing was written" if dry_run else "restart the client"
        return Output(
            {
                "path": self.path,
                "name": self.place[1],
                "done": outcome,
                "backup": backup,
                "dry_run": dry_run,
                **data,
            },
            notes=(*notes, advice) if text != self.text else tuple(notes),
        )


def _variables(config: str, env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(_VARIABLE.findall(config)) if name not in env)
