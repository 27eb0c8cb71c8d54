"""`gateway install`: write this gateway into another client's file, or remove it."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from gateway.cli.command import ConfigOption, DryRunOption, JsonOption, command, command_group
from gateway.cli.exit_codes import OK
from gateway.cli.import_clients.conversion import is_this_gateway
from gateway.cli.import_clients.paths import SERVERS_KEY, Client, client_configs
from gateway.cli.output import note, print_result
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
    client: Annotated[Client, typer.Argument(help="Whose file.")],
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="This file, instead of the user's own.")
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="The file of the project in this folder.")
    ] = False,
    name: Annotated[str, typer.Option(help="The gateway's name in that file.")] = "gateway",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the gateway again.")] = False,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
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
    if variables and outcome != "there" and not as_json:
        note(f"the client must start the gateway with these variables: {', '.join(variables)}")
    print_result(
        {
            "path": path,
            "name": name,
            "done": outcome,
            "backup": backup,
            "dry_run": dry_run,
            "variables": variables,
        },
        _message(path, name, outcome, backup, is_dry_run=dry_run),
        as_json=as_json,
    )
    return OK


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
