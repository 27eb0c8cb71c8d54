"""`gateway install`: ourselves as a server in another client's file, and out of it again."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rich.text import Text

from gateway.cli.clients.converting import is_ours
from gateway.cli.clients.places import TABLES, Client, Place, places
from gateway.cli.exits import OK
from gateway.cli.files import replace_text, text_of
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable
from gateway.cli.settings import DEFAULT_CONFIG, manifest_at
from gateway.errors import ConfigError
from gateway.manifests.json_edit import with_member, without_member
from gateway.manifests.jsonc import parse

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
Done = Literal["installed", "replaced", "removed", "there", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What was done, or would be."""

    path: Path
    name: str
    done: Done
    backup: Path | None = None
    dry_run: bool = False
    variables: tuple[str, ...] = ()
    """What the client must give us, since our configuration refers to it."""


def install(  # noqa: PLR0913  (one for each option)
    client: Client,
    *,
    config: Path | None,
    to: Path | None,
    project: bool,
    name: str,
    remove: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write ourselves into the file of *client*, or take us out.

    Raises:
        ConfigError: A file cannot be used, or has another server of that name.
    """
    path = to or _place(client, project=project).path
    was = text_of(path)
    key = TABLES[client]
    known = _entry(was, key, name, path)
    if known is not None and not is_ours(known):
        raise ConfigError(
            f"{str(path)!r} has another server {name!r}: take another name with --name"
        )
    variables: tuple[str, ...] = ()
    done: Done
    if remove:
        text = without_member(was, (key, name), where=str(path)) if known is not None else was
        done = "removed" if known is not None else "absent"
    else:
        wanted = _ourselves(client, config)
        variables = _variables(config)
        text = was if known == wanted else with_member(was, (key, name), wanted, where=str(path))
        done = "there" if known == wanted else "installed" if known is None else "replaced"
    backup = None
    if text != was and not dry_run:
        backup = replace_text(path, text, was=was, backup_at=datetime.now(UTC))
    _told(
        Installed(
            path=path, name=name, done=done, backup=backup, dry_run=dry_run, variables=variables
        ),
        as_json=as_json,
    )
    return OK


def _place(client: Client, *, project: bool) -> Place:
    every = places(client, Path.cwd())
    return every[-1] if project else every[0]


def _entry(text: str, key: str, name: str, path: Path) -> object:
    whole = parse(text, where=str(path)) if text.strip() else {}
    table = whole.get(key) if isinstance(whole, dict) else None
    return table.get(name) if isinstance(table, dict) else None


def _ourselves(client: Client, config: Path | None) -> dict[str, object]:
    manifest_at(config)
    folder = Path(sys.executable).parent
    program = folder / ("gateway.exe" if sys.platform == "win32" else "gateway")
    found = program.is_file()
    command = str(program) if found else sys.executable
    before = [] if found else ["-m", "gateway"]
    serve = ["serve", "--config", str((config or DEFAULT_CONFIG).absolute())]
    entry: dict[str, object] = {"command": command, "args": [*before, *serve]}
    return {"type": "stdio", **entry} if client == "vscode" else entry


def _variables(config: Path | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_VARIABLE.findall(text_of(config or DEFAULT_CONFIG))))


def _told(done: Installed, *, as_json: bool) -> None:
    if as_json:
        emit(jsonable(done))
        return
    verb = "would be" if done.dry_run else "is"
    words = {
        "installed": f"{verb} installed in",
        "replaced": f"{verb} installed anew in",
        "removed": f"{verb} taken out of",
        "there": "was there already, in",
        "absent": "is not in",
    }
    if done.variables and done.done != "there":
        note(f"the client must start us with these variables set: {', '.join(done.variables)}")
    would = "dry run: " if done.dry_run else ""
    told = f"{would}{done.name!r} {words[done.done]} {done.path}"
    if done.backup is not None:
        told += f"\nwhat it held before: {done.backup}"
    if done.done in {"installed", "replaced", "removed"} and not done.dry_run:
        told += "\nrestart the client, or have it read its servers again"
    out().print(Text(printable(told)), soft_wrap=True)
