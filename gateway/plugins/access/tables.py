"""Database tables of the audit log and of the limit counters."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Protocol, runtime_checkable

from gateway.errors import ConfigError
from gateway.options import Options
from gateway.options.environment import audit_path
from gateway.plugins.access.audit import AuditLog, Auditor, AuditRow
from gateway.plugins.access.limits import STEPS, Charge, Counters, first_refusal
from gateway.runtime.telemetry import Telemetry
from gateway.storage.database import Database, Schema
from gateway.storage.protocol import Store, TableStore

AUDIT = Schema(
    name="audit",
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
    postgres={
        5: (
            """CREATE TABLE audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            at double precision NOT NULL, row text NOT NULL)""",
            "CREATE INDEX audit_by_time ON audit (at)",
            """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END $$""",
            """CREATE TRIGGER append_only BEFORE UPDATE ON audit
            FOR EACH ROW EXECUTE FUNCTION refuse_change()""",
        )
    },
    is_durable=True,
)
LIMITS = Schema(
    name="limits",
    what="counters of limits",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS spent (key TEXT NOT NULL, step INTEGER NOT NULL,
            amount REAL NOT NULL, PRIMARY KEY (key, step)) WITHOUT ROWID""",
        ),
    ),
    postgres={
        5: (
            """CREATE TABLE spent (key text COLLATE "C", step bigint,
            amount double precision NOT NULL, PRIMARY KEY (key, step))""",
        )
    },
)


class SqlAuditLog:
    """`AuditLog` in a database with the tables of `AUDIT`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, row: AuditRow) -> None:
        """Insert *row*."""
        text = json.dumps({name: value for name, value in asdict(row).items() if value != ""})
        self._database.write("INSERT INTO audit (at, row) VALUES (?, ?)", (row.at, text))

    def page(
        self, since: float, after: int, limit: int, tenant: str = ""
    ) -> Sequence[tuple[int, AuditRow]]:
        """Return rows, as `AuditLog.page` does."""
        # Quotes in values are escaped, so only rows of the tenant contain this text. Empty matches
        # all.
        tenant_text = f'"tenant": {json.dumps(tenant)}' if tenant else ""
        query = """SELECT id, row FROM audit WHERE at >= ? AND id > ?
            AND strpos(row, ?) > 0 ORDER BY id LIMIT ?"""
        rows = self._database.rows(query, (since, after, tenant_text, limit))
        return [(place, AuditRow(**json.loads(text))) for place, text in rows]

    def forget(self, before: float) -> int:
        """Delete the rows from before a time, as `AuditLog.forget` does."""
        return self._database.write("DELETE FROM audit WHERE at < ?", (before,))

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        self._database.close()


class SqlCounters:
    """`Counters` in a database with the tables of `LIMITS`, shared by its processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """Count all of *charges* in one transaction or none, as `Counters.charge` does."""
        spent: defaultdict[str, dict[int, float]] = defaultdict(dict)
        with self._database.transaction() as session:
            # Calls do not wait for the disk. A loss of power may lose the newest counts.
            session.skip_flush()
            session.hold(*(charge.key for charge in charges))
            for charge in charges:
                old = "DELETE FROM spent WHERE key = ? AND step < ?"
                session.write(old, (charge.key, charge.step(now) - STEPS))
                query = "SELECT step, amount FROM spent WHERE key = ?"
                spent[charge.key].update(session.rows(query, (charge.key,)))
            wait, rule = first_refusal(charges, spent, now)
            if not rule:
                session.write(
                    """INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT (key, step)
                    DO UPDATE SET amount = spent.amount + excluded.amount""",
                    *((charge.key, charge.step(now), charge.amount) for charge in charges),
                )
        return wait, rule

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        self._database.close()


@runtime_checkable
class AccessStore(Store, Protocol):
    """`Store` of a host with its own audit log and limit counters."""

    @property
    def audit_log(self) -> AuditLog:
        """Storage of audit rows."""

    @property
    def counters(self) -> Counters:
        """Limit counters of all processes."""


def audit_log_of(store: Store) -> AuditLog:
    """Return the audit log of *store*.

    Raises:
        ConfigError: If *store* is neither an `AccessStore` nor a `TableStore`.
    """
    if isinstance(store, AccessStore):
        return store.audit_log
    if isinstance(store, TableStore):
        return SqlAuditLog(store.tables(AUDIT))
    raise ConfigError(
        "the store needs tables, or an audit log and counters: add them, or turn audit.record off"
    )


def counters_of(store: Store) -> Counters | None:
    """Return the limit counters in *store*, an `AccessStore` or `TableStore`; else None."""
    if isinstance(store, AccessStore):
        return store.counters
    return SqlCounters(store.tables(LIMITS)) if isinstance(store, TableStore) else None


def auditor_of(options: Options, store: Store, telemetry: Telemetry | None = None) -> Auditor:
    """Return the audit writer of a gateway, which only writes if ``audit.record`` is on.

    Raises:
        ConfigError: If the audit log is on and *store* cannot store it.
    """
    log = audit_log_of(store) if options.audit.record == "on" else None
    return Auditor(log, options.audit, key=partial(_audit_key, options), telemetry=telemetry)


def _audit_key(options: Options) -> bytes:
    from gateway.storage.host_key import host_keys, key_in  # noqa: PLC0415  (only where rows are written: it reads files of variables)

    keys = host_keys(options, "audit")
    return keys[0] if keys else key_in(audit_path(options).with_suffix(".key"))
