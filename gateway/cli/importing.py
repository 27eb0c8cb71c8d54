"""`gateway import`: servers of other clients -> our configuration file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from gateway.cli.clients.converting import Conversion, Wanted, is_ours, usable_name
from gateway.cli.clients.places import Client, Place, inputs, places, tables
from gateway.cli.exits import NOTHING, OK
from gateway.cli.files import replace_text, text_of
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import DEFAULT_CONFIG
from gateway.cli.show import plain_table
from gateway.errors import ConfigError
from gateway.manifests.json_edit import with_member
from gateway.manifests.jsonc import parse

Outcome = Literal["imported", "replaced", "there", "conflict", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one server."""

    name: str
    source: str
    """The client's file."""
    outcome: Outcome
    detail: str = ""
    entry: Mapping[str, object] = field(default_factory=dict)
    """As it stands in our file; empty if it does not."""


@dataclass(slots=True, kw_only=True)
class Import:
    """One run: our file's text as it grows, and what is to be told."""

    text: str
    where: str
    replace: bool
    rows: list[Row] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    def read(self, place: Place, folder: Path) -> None:
        """Take the servers of a client's file.

        Raises:
            ConfigError: It cannot be read.
        """
        whole = parse(text_of(place.path), where=str(place.path))
        conversion = Conversion(
            inputs=inputs(whole),
            project=place.project,
            wanted=self.wanted,
            notes=self.notes,
            values=self.values,
        )
        for table in tables(whole, folder):
            for name, given in table.items():
                self._take(place, name, given, conversion)

    def _take(self, place: Place, name: str, given: object, conversion: Conversion) -> None:
        ours = usable_name(name)
        detail = "" if ours == name else f"called {name!r} there"
        row = Row(name=ours, source=str(place.path), outcome="skipped", detail=detail)
        if is_ours(given):
            self._add(row, "skipped", "it is this gateway")
            return
        before = list(self.wanted), list(self.notes), dict(self.values)
        try:
            entry = conversion.entry(ours, given)
        except ConfigError as error:
            self._add(row, "skipped", str(error))
            return
        known = servers_of(self.text, self.where)[1]
        if ours in known and (known[ours] == entry or not self.replace):
            same = known[ours] == entry
            if not same:
                self.wanted[:], self.notes[:] = before[0], before[1]
                self.values.clear()
                self.values.update(before[2])
            told = (
                detail if same else "another server of this name is there: rename one, or --replace"
            )
            self._add(row, "there" if same else "conflict", told)
            return
        self.text = with_server(self.text, ours, entry, where=self.where)
        outcome: Outcome = "replaced" if ours in known else "imported"
        self.rows.append(
            Row(name=ours, source=row.source, outcome=outcome, detail=detail, entry=entry)
        )

    def _add(self, row: Row, outcome: Outcome, detail: str) -> None:
        self.rows.append(Row(name=row.name, source=row.source, outcome=outcome, detail=detail))


def import_servers(
    client: Client,
    *,
    source: Path | None,
    config: Path | None,
    replace: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take over the servers of *client*, or of the file *source*.

    Raises:
        ConfigError: A file cannot be read or written.
    """
    path = config or DEFAULT_CONFIG
    was = text_of(path)
    run = Import(text=was, where=path.name, replace=replace)
    folder = Path.cwd()
    found = list(_found(client, source, folder))
    for place in found:
        run.read(place, folder)
    if run.text != was and not dry_run:
        replace_text(path, run.text, was=was)
    _told(run, path, dry_run=dry_run, as_json=as_json)
    return OK if run.rows else NOTHING


def _found(client: Client, source: Path | None, folder: Path) -> Iterator[Place]:
    if source is not None:
        if not source.is_file():
            raise ConfigError(f"there is no file {str(source)!r}")
        inside = source.resolve().parent
        hidden = inside.name in {".vscode", ".cursor"}
        project = inside.parent if hidden else inside if source.name == ".mcp.json" else None
        yield Place(label=source.name, path=source, project=project)
        return
    # Whoever stands in the home folder meets a file twice.
    every = {place.path.resolve(): place for place in reversed(places(client, folder))}
    yield from (place for place in reversed(every.values()) if place.path.is_file())


def servers_of(text: str, where: str) -> tuple[str, Mapping[str, object]]:
    """Give the key of the table of servers in our file, and the table; empty if there is none.

    Raises:
        ConfigError: The file is no such one.
    """
    whole = parse(text, where=where) if text.strip() else {}
    if not isinstance(whole, dict):
        raise ConfigError(f"{where!r} needs an object 'mcpServers' (or 'servers') at its top")
    key = "servers" if "servers" in whole and "mcpServers" not in whole else "mcpServers"
    table = whole.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{where!r}: {key!r} must be an object")
    return key, table


def with_server(text: str, name: str, entry: Mapping[str, object], *, where: str) -> str:
    """Give our file with *entry* under *name*."""
    return with_member(text, (servers_of(text, where)[0], name), dict(entry), where=where)


def _told(run: Import, path: Path, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        emit(
            {
                "config": str(path),
                "dry_run": dry_run,
                "servers": jsonable(run.rows),
                "variables": jsonable(run.wanted),
                "notes": run.notes,
            }
        )
        return
    for each in run.notes:
        note(each)
    out().print(_shown(run, path, dry_run=dry_run), soft_wrap=True)


def _shown(run: Import, path: Path, *, dry_run: bool) -> RenderableType:
    if not run.rows:
        return Text("No servers were found. Name a file with --from PATH.")
    table = plain_table("server", "", "from", "")
    for row in run.rows:
        table.add_row(
            *(printable(each) for each in (row.name, row.outcome, row.source, row.detail))
        )
    parts: list[RenderableType] = [table]
    if run.wanted:
        parts.append(Text("\nSecrets are not copied. Set these variables to what stands there:"))
        parts += [
            Text(printable(f"  {each.variable}  ({each.server}: {each.where})"))
            for each in run.wanted
        ]
    parts.append(Text(f"\nNothing was written to {path}." if dry_run else f"\nwritten to {path}"))
    return Group(*parts)
