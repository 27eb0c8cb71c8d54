"""The log of calls in PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence

from gateway.runtime.cache import Clock
from gateway.storage.call_log import (
    MOST_TASKS,
    SPARE,
    label_of,
    line_of,
    row_of,
    served_of,
    tasks_of,
)
from gateway.storage.postgres_database import PostgresDatabase
from gateway.types import JsonObject
from gateway.usage.call_log import (
    DAY_S,
    KEEP_COUNTS_DAYS,
    KEEP_QUERIES_S,
    MOST_CALLS,
    MOST_QUERIES,
    Call,
    SearchNote,
    SearchTally,
    ServedQuery,
    Tally,
    Task,
    label,
)


class PostgresCallLog:
    """A `CallLog` in one schema.

    Args:
        database: Where the tables are.
        wall: Seconds since the epoch.
        most: How many calls are kept.
        most_queries: How many texts of searches.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        wall: Clock = time.time,
        most: int = MOST_CALLS,
        most_queries: int = MOST_QUERIES,
    ) -> None:
        self._database = database
        self._wall = wall
        self._most = most
        self._most_queries = most_queries

    def note(self, call: Call) -> None:
        """See `CallLog.note`."""
        with self._database.transaction() as connection:
            added = connection.execute(
                "INSERT INTO calls (at, tenant, task, tool, shape, seconds, outcome) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id",
                row_of(call, self._wall()),
            ).fetchone()
            if added and added[0] % SPARE == 0:
                connection.execute("DELETE FROM calls WHERE id <= %s", (added[0] - self._most,))

    def note_search(self, search: SearchNote) -> None:
        """See `CallLog.note_search`."""
        now, tenant = self._wall(), label(search.tenant)
        day, found = int(now // DAY_S), tuple(dict.fromkeys(search.found))
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO searches AS s VALUES (%s, %s, 1, %s, %s) "
                "ON CONFLICT (day, tenant) DO UPDATE SET searches = s.searches + 1, "
                "no_match = s.no_match + excluded.no_match, "
                "low_confidence = s.low_confidence + excluded.low_confidence",
                (day, tenant, int(not found), int(search.low_confidence)),
            )
            connection.cursor().executemany(
                "INSERT INTO found AS f VALUES (%s, %s, %s, 1) "
                "ON CONFLICT (day, tenant, tool) DO UPDATE SET times = f.times + 1",
                [(day, tenant, tool) for tool in sorted(found)],
            )
            connection.execute("DELETE FROM searches WHERE day < %s", (day - KEEP_COUNTS_DAYS,))
            connection.execute("DELETE FROM found WHERE day < %s", (day - KEEP_COUNTS_DAYS,))
            added = None
            if search.query:
                added = connection.execute(
                    "INSERT INTO queries (at, tenant, task, text, found) "
                    "VALUES (%s, %s, %s, %s, %s) RETURNING id",
                    (now, tenant, label(search.task), search.query, json.dumps(found)),
                ).fetchone()
            # Also where texts are recorded no more: the old ones go.
            connection.execute(
                "DELETE FROM queries WHERE id <= %s OR at < %s",
                ((added[0] if added else 0) - self._most_queries, now - KEEP_QUERIES_S),
            )

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """See `CallLog.searches`."""
        rows = self._database.rows(
            "SELECT tenant, sum(searches), sum(no_match), sum(low_confidence) FROM searches "
            "WHERE %(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s) "
            "GROUP BY tenant ORDER BY tenant",
            {"tenant": label_of(tenant)},
        )
        return [
            SearchTally(tenant=whose, searches=searches, no_match=none, low_confidence=low)
            for whose, searches, none, low in rows
        ]

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """See `CallLog.found`."""
        rows = self._database.rows(
            "SELECT tool, sum(times) FROM found "
            "WHERE %(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s) "
            "GROUP BY tool ORDER BY tool",
            {"tenant": label_of(tenant)},
        )
        return dict(rows)

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """See `CallLog.served_queries`."""
        rows = self._database.rows(
            "SELECT q.id, q.text, q.found, c.id, c.tool FROM queries q JOIN calls c "
            "ON c.tenant = q.tenant AND c.task = q.task AND c.at >= q.at AND c.outcome = 'ok' "
            "WHERE q.task <> '' AND q.at >= %(oldest)s "
            "AND (%(tenant)s::text IS NULL OR q.tenant IN ('', %(tenant)s)) "
            "ORDER BY q.id, c.id",
            {"oldest": self._wall() - KEEP_QUERIES_S, "tenant": label_of(tenant)},
        )
        return served_of(rows)

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """See `CallLog.tallies`."""
        rows = self._database.rows(
            "SELECT tool, trunc((%(now)s - at) / %(day)s)::integer AS days, "
            "count(*) FILTER (WHERE outcome = 'ok'), "
            "count(*) FILTER (WHERE outcome <> 'ok') FROM calls "
            "WHERE %(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s) "
            "GROUP BY tool, days ORDER BY tool, days",
            {"now": self._wall(), "day": DAY_S, "tenant": label_of(tenant)},
        )
        return [
            Tally(tool=tool, age_s=max(days, 0) * DAY_S, succeeded=succeeded, failed=failed)
            for tool, days, succeeded, failed in rows
        ]

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """See `CallLog.tasks`; the newest calls, if there are very many."""
        now = self._wall()
        rows = self._database.rows(
            "SELECT tenant, task, tool, at FROM calls WHERE task <> '' AND outcome = 'ok' "
            "AND (%(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s)) "
            "ORDER BY id DESC LIMIT %(limit)s",
            {"tenant": label_of(tenant), "limit": MOST_TASKS},
        )
        return tasks_of(rows, now)

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        query = "SELECT at, tenant, task, tool, shape, seconds, outcome FROM calls ORDER BY id"
        with self._database.reading() as connection, connection.cursor("lines") as cursor:
            yield from map(line_of, cursor.execute(query))

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`."""
        bound = {"tool": tool, "tenant": label(tenant), "quoted": json.dumps(tool)}
        with self._database.transaction() as connection:
            gone = connection.execute(
                "DELETE FROM calls WHERE %(tool)s IN ('', tool) AND %(tenant)s IN ('', tenant)",
                bound,
            ).rowcount
            connection.execute(
                "DELETE FROM found WHERE %(tool)s IN ('', tool) AND %(tenant)s IN ('', tenant)",
                bound,
            )
            connection.execute(
                "DELETE FROM queries WHERE (%(tool)s = '' OR strpos(found, %(quoted)s) > 0) "
                "AND %(tenant)s IN ('', tenant)",
                bound,
            )
            connection.execute(
                "DELETE FROM searches WHERE %(tool)s = '' AND %(tenant)s IN ('', tenant)", bound
            )
        return gone

    def close(self) -> None:
        """See `CallLog.close`."""
        self._database.close()
