"""`gateway install`: write this gateway into another client's file, or remove it."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from gateway.cli import options
from gateway.cli.command import command, command_group
from gateway.cli.import_clients.conversion import is_this_gateway
from gateway.cli.import_clients.paths import SERVERS_KEY, Client, client_configs
from gateway.cli.output import Output
from gateway.cli.session import DEFAULT_CONFIG, read_config
from gateway.errors import ConfigError
from gateway.manifests.config_file import read_text, write_text
from gateway.manifests.json_edit import with_member, without_member
from gateway.manifests.jsonc import parse

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
Outcome = Literal["installed", "replaced", "removed", "there", "absent"]

app = command_group()


@command(app)
def install(  # noqa: PLR0913  (one for each option)
    client: Annotated[Client, Argument(help="Whose file.")],
    *,
    to: Annotated[Path | None, Option("--to", help="This file, instead of the user's own.")] = None,
    project: Annotated[
        bool, Option("--project", help="The file of the project in this folder.")
    ] = False,
    name: Annotated[str, Option(help="The gateway's name in that file.")] = "gateway",
    remove: Annotated[bool, Option("--remove", help="Remove the gateway again.")] = False,
    dry_run: options.DryRun = False,
    config: options.Config = None,
) -> Output:
    """Write this gateway into another client's file, with a dated copy of what was there."""
    path = to or client_configs(client, Path.cwd())[-1 if project else 0].path
    before = text = read_text(path)
    key = SERVERS_KEY[client]
    present = _find_entry(before, key, name, path)
    if present is not None and not is_this_gateway(present):
        raise ConfigError(
            f"{str(path)!r} has another server {name!r}: take another name with --name"
        )
    entry = None if remove else _own_entry(client, config)
    outcome = _outcome(present, entry)
    if outcome == "removed":
        text = without_member(before, (key, name), where=str(path))
    elif entry is not None and outcome != "there":
        text = with_member(before, (key, name), entry, where=str(path))
    config_text = "" if remove else read_text(config or DEFAULT_CONFIG)
    variables = tuple(dict.fromkeys(_VARIABLE.findall(config_text)))
    backup = None
    if text != before and not dry_run:
        backup = write_text(path, text, expected=before, backup_at=datetime.now(UTC))
    notes = []
    if variables and outcome != "there":
        names = ", ".join(variables)
        notes.append(f"the client must start the gateway with these variables: {names}")
    return Output(
        {
            "path": path,
            "name": name,
            "done": outcome,
            "backup": backup,
            "dry_run": dry_run,
            "variables": variables,
        },
        _message(path, name, outcome, backup, is_dry_run=dry_run),
        notes=notes,
    )


def _find_entry(text: str, key: str, name: str, path: Path) -> object:
    document = parse(text, where=str(path)) if text.strip() else {}
    table = document.get(key) if isinstance(document, dict) else None
    return table.get(name) if isinstance(table, dict) else None


def _outcome(present: object, entry: object) -> Outcome:
    """Return what happens to the entry *present* if it shall be *entry*; None is no entry."""
    if entry is None:
        return "absent" if present is None else "removed"
    if present is None:
        return "installed"
    return "there" if present == entry else "replaced"


def _own_entry(client: Client, config: Path | None) -> dict[str, object]:
    read_config(config)
    program = Path(sys.executable).parent / (
        "gateway.exe" if sys.platform == "win32" else "gateway"
    )
    serve = ["serve", "--config", str((config or DEFAULT_CONFIG).absolute())]
    entry: dict[str, object] = {"command": str(program), "args": serve}
    if not program.is_file():
        entry = {"command": sys.executable, "args": ["-m", "gateway", *serve]}
    return {"type": "stdio", **entry} if client == "vscode" else entry


def _message(
    path: Path, name: str, outcome: Outcome, backup: Path | None, *, is_dry_run: bool
) -> str:
    verb = "would be" if is_dry_run else "is"
    phrases = {
        "installed": f"{verb} installed in",
        "replaced": f"{verb} installed anew in",
        "removed": f"{verb} taken out of",
        "there": "was there already, in",
        "absent": "is not in",
    }
    lines = [f"{'dry run: ' if is_dry_run else ''}{name!r} {phrases[outcome]} {path}"]
    if backup is not None:
        lines.append(f"what it held before: {backup}")
    if outcome in {"installed", "replaced", "removed"} and not is_dry_run:
        lines.append("restart the client, or have it read its servers again")
    return "\n".join(lines)
