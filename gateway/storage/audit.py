"""The audit log and the counters of limits, each in one SQLite file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from gateway.access.audit import AuditRow
from gateway.access.limits import STEPS, Charge, first_refusal
from gateway.storage.database import Schema
from gateway.storage.sqlite import SqliteDatabase

AUDIT = Schema(
    what="audit log",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY AUTOINCREMENT,
            at REAL NOT NULL, row TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS audit_by_time ON audit (at)",
            """CREATE TRIGGER IF NOT EXISTS append_only BEFORE UPDATE ON audit
            BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed'); END""",
        ),
    ),
    is_durable=True,
)
LIMITS = Schema(
    what="counters of limits",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS spent (key TEXT NOT NULL, step INTEGER NOT NULL,
            amount REAL NOT NULL, PRIMARY KEY (key, step)) WITHOUT ROWID""",
        ),
    ),
)


def row_text(row: AuditRow) -> str:
    """Return a row as JSON, without what is empty; see `row_of`."""
    return json.dumps({name: value for name, value in asdict(row).items() if value != ""})


def row_of(text: str) -> AuditRow:
    """Return the row that `row_text` wrote."""
    return AuditRow(**json.loads(text))


def tenant_text(tenant: str) -> str:
    """Return what the text of a row of *tenant* holds, and no other: quotes in values are escaped.

    Empty, which every text holds, for an empty one.
    """
    return f'"tenant": {json.dumps(tenant)}' if tenant else ""


class SqliteAuditLog:
    """An `AuditLog` in one SQLite file.

    Args:
        path: The file; it and its folder are made when first needed.
    """

    def __init__(self, path: Path) -> None:
        self._database = SqliteDatabase(path, AUDIT)

    def append(self, row: AuditRow) -> None:
        """See `AuditLog.append`."""
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO audit VALUES (NULL, ?, ?)", (row.at, row_text(row)))

    def page(
        self, since: float, after: int, limit: int, tenant: str = ""
    ) -> Sequence[tuple[int, AuditRow]]:
        """See `AuditLog.page`."""
        query = """SELECT id, row FROM audit WHERE at >= ? AND id > ?
            AND instr(row, ?) ORDER BY id LIMIT ?"""
        with self._database.reading() as connection:
            values = since, after, tenant_text(tenant), limit
            rows = connection.execute(query, values).fetchall()
        return [(place, row_of(text)) for place, text in rows]

    def forget(self, before: float) -> int:
        """See `AuditLog.forget`."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM audit WHERE at < ?", (before,)).rowcount

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()


class SqliteCounters:
    """`Counters` in one SQLite file, of all processes of this machine.

    Args:
        path: The file; it and its folder are made when first needed.
    """

    def __init__(self, path: Path) -> None:
        self._database = SqliteDatabase(path, LIMITS)

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """See `Counters.charge`."""
        spent: defaultdict[str, dict[int, float]] = defaultdict(dict)
        with self._database.transaction() as connection:
            for charge in charges:
                connection.execute(
                    "DELETE FROM spent WHERE key = ? AND step < ?",
                    (charge.key, charge.step(now) - STEPS),
                )
                query = "SELECT step, amount FROM spent WHERE key = ?"
                spent[charge.key].update(connection.execute(query, (charge.key,)))
            wait, rule = first_refusal(charges, spent, now)
            if not rule:
                connection.executemany(
                    "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT (key, step) "
                    "DO UPDATE SET amount = amount + excluded.amount",
                    [(charge.key, charge.step(now), charge.amount) for charge in charges],
                )
        return wait, rule

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()
