"""The audit log and the counters of limits in PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from gateway.access.audit import AuditRow
from gateway.access.limits import STEPS, Charge, first_refusal
from gateway.storage.audit import row_of, row_text, tenant_text
from gateway.storage.postgres_database import PostgresDatabase


class PostgresAuditLog:
    """An `AuditLog` in one schema.

    Args:
        database: Where the table is.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def append(self, row: AuditRow) -> None:
        """See `AuditLog.append`."""
        self._database.write("INSERT INTO audit (at, row) VALUES (%s, %s)", (row.at, row_text(row)))

    def page(
        self, since: float, after: int, limit: int, tenant: str = ""
    ) -> Sequence[tuple[int, AuditRow]]:
        """See `AuditLog.page`."""
        query = """SELECT id, row FROM audit WHERE at >= %s AND id > %s
            AND strpos(row, %s) > 0 ORDER BY id LIMIT %s"""
        rows = self._database.rows(query, (since, after, tenant_text(tenant), limit))
        return [(place, row_of(text)) for place, text in rows]

    def forget(self, before: float) -> int:
        """See `AuditLog.forget`."""
        return self._database.write("DELETE FROM audit WHERE at < %s", (before,))


class PostgresCounters:
    """`Counters` in one schema, of all processes that share it.

    Args:
        database: Where the table is.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def charge(self, charges: Sequence[Charge], now: float) -> tuple[float, str]:
        """See `Counters.charge`."""
        spent: defaultdict[str, dict[int, float]] = defaultdict(dict)
        with self._database.transaction() as connection:
            # A loss of power may forget the last calls: waiting for the disk would cost each one.
            connection.execute("SET LOCAL synchronous_commit = off")
            # In one order: two calls that charge the same counters never wait for each other.
            for key in sorted({charge.key for charge in charges}):
                lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))"
                connection.execute(lock, (key,))
            for charge in charges:
                old = "DELETE FROM spent WHERE key = %s AND step < %s"
                connection.execute(old, (charge.key, charge.step(now) - STEPS))
                query = "SELECT step, amount FROM spent WHERE key = %s"
                spent[charge.key].update(connection.execute(query, (charge.key,)).fetchall())
            wait, rule = first_refusal(charges, spent, now)
            if not rule:
                connection.cursor().executemany(
                    "INSERT INTO spent AS s VALUES (%s, %s, %s) ON CONFLICT (key, step) "
                    "DO UPDATE SET amount = s.amount + excluded.amount",
                    [(charge.key, charge.step(now), charge.amount) for charge in charges],
                )
        return wait, rule
