"""`gateway audit`: the log of decisions and changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from typer import Option, echo

from gateway.cli import options
from gateway.cli.command import Output, command, command_group
from gateway.cli.session import command_options, open_store, read_optional, recording
from gateway.cli.tables import table
from gateway.errors import ConfigError, InvalidRequestError
from gateway.plugins.access.audit import AuditLog, AuditRow, read_all
from gateway.plugins.access.tables import auditor_of

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_NOTHING = "the audit log has no matching row; gateway serve --http and audit.record=on write it"

app = command_group("audit")
Since = Annotated[str, "Start time (2026-11-26, 2026-11-26T08:00), or an age: 30m, 12h, 7d."]


@command(app, "list")
def list_(
    *,
    since: Since = "1d",
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Maximum number of rows.")] = 100,
    user: Annotated[str, "Only rows of this user."] = "",
    entity: Annotated[str, "Only rows about the entity with this id."] = "",
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Show the newest rows in chronological order."""
    with _open_log(config) as log:
        rows = [
            {"time": _time(row), **asdict(row)}
            for _, row in read_all(log, _parse_since(since))
            if user in {"", row.user} and entity in {"", row.entity}
        ][-limit:]
    columns = "time", "user", "tenant", "action", "entity", "decision", "rule", "detail"
    return Output(rows, table(rows, *columns) if rows else _NOTHING, found=rows)


@command(app, has_json=False)
def export(*, since: Since = "", config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """Print all rows as JSON lines, the oldest first."""
    with _open_log(config) as log:
        for place, row in read_all(log, _parse_since(since)):
            echo(json.dumps({"id": place, "time": _time(row), **asdict(row)}))
    return Output(None, "")


@contextmanager
def _open_log(config: Path) -> Iterator[AuditLog]:
    own_options = recording(command_options(read_optional(config)))
    with open_store(own_options) as store:
        log = auditor_of(own_options, store).log
        if log is None:
            raise ConfigError("there is no audit log, because audit.record is off; turn it on")
        yield log


def _time(row: AuditRow) -> str:
    return datetime.fromtimestamp(row.at, UTC).isoformat(timespec="milliseconds")


def _parse_since(text: str) -> float:
    """Return the time given by ``--since``, in seconds since the epoch."""
    if ago := re.fullmatch(r"(\d{1,6})([mhd])", text):
        return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        raise InvalidRequestError(
            f"--since requires a time such as 2026-11-26 or 7d, got {text!r}"
        ) from None
