"""The log of calls in PostgreSQL."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, LiteralString, TypeVar

from gateway.errors import StoreError
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
from gateway.storage.database import Values
from gateway.storage.postgres_database import Connection, PostgresDatabase
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

T = TypeVar("T")
Row = tuple[object, ...]
Found = tuple[int, str, str]
"""A day, a tenant and a tool."""
_MOST_WAITING = 10_000
"""So many calls, and so many searches, wait in memory while the database is away."""


class PostgresCallLog:
    """A `CallLog` in one schema. What is noted while the database is away is written once it is
    back, at the next note, look or end.

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
        self._calls = deque[Row](maxlen=_MOST_WAITING)
        self._searches = deque[tuple[float, SearchNote]](maxlen=_MOST_WAITING)
        self._writing = threading.Lock()
        self._swept_day = 0

    def note(self, call: Call) -> None:
        """See `CallLog.note`."""
        self._calls.append(row_of(call, self._wall()))
        self._write()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """See `CallLog.note_searches`."""
        now = self._wall()
        self._searches.extend((now, search) for search in searches)
        self._write()

    def _write(self) -> None:
        """Write all that waits in one transaction.

        While the database is away it waits on, as far as there is room.

        Raises:
            StoreError: It cannot be written, and never will be.
        """
        with self._writing:
            calls, searches = _take(self._calls), _take(self._searches)
            if not calls and not searches:
                return
            try:
                with self._database.transaction() as connection:
                    self._put_calls(connection, calls)
                    self._put_searches(connection, searches)
            except StoreError as error:
                if not self._database.is_away(error):
                    raise
                self._calls.extendleft(reversed(calls))
                self._searches.extendleft(reversed(searches))

    def _put_calls(self, connection: Connection, calls: Sequence[Row]) -> None:
        query = (
            "INSERT INTO calls (at, tenant, task, tool, shape, seconds, outcome) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id"
        )
        for call in calls:
            added = connection.execute(query, call).fetchone()
            if added and added[0] % SPARE == 0:
                connection.execute("DELETE FROM calls WHERE id <= %s", (added[0] - self._most,))

    def _put_searches(
        self, connection: Connection, searches: Sequence[tuple[float, SearchNote]]
    ) -> None:
        """Add up *searches*, so that each row is written once."""
        totals, found, texts = dict[tuple[int, str], list[int]](), Counter[Found](), list[Row]()
        for at, search in searches:
            day, tenant = int(at // DAY_S), label(search.tenant)
            tools = tuple(dict.fromkeys(search.found))
            total = totals.setdefault((day, tenant), [0, 0, 0])
            for place, count in enumerate((1, int(not tools), int(search.low_confidence))):
                total[place] += count
            found.update((day, tenant, tool) for tool in tools)
            if search.query:
                text = search.query.replace("\0", " ").encode("utf-8", "replace").decode()
                texts.append((at, tenant, label(search.task), text, json.dumps(tools)))
        cursor = connection.cursor()
        cursor.executemany(
            "INSERT INTO searches AS s VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (day, tenant) DO UPDATE SET searches = s.searches + excluded.searches, "
            "no_match = s.no_match + excluded.no_match, "
            "low_confidence = s.low_confidence + excluded.low_confidence",
            [(*key, *total) for key, total in sorted(totals.items())],
        )
        cursor.executemany(
            "INSERT INTO found AS f VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (day, tenant, tool) DO UPDATE SET times = f.times + excluded.times",
            [(*key, times) for key, times in sorted(found.items())],
        )
        cursor.executemany(
            "INSERT INTO queries (at, tenant, task, text, found) VALUES (%s, %s, %s, %s, %s)", texts
        )
        self._delete_old(connection, has_texts=bool(texts))

    def _delete_old(self, connection: Connection, *, has_texts: bool) -> None:
        now = self._wall()
        day = int(now // DAY_S)
        if has_texts:
            query = "DELETE FROM queries WHERE id <= (SELECT max(id) FROM queries) - %s"
            connection.execute(query, (self._most_queries,))
        if day != self._swept_day:
            # Also where texts are recorded no more: the old ones go.
            connection.execute("DELETE FROM queries WHERE at < %s", (now - KEEP_QUERIES_S,))
            connection.execute("DELETE FROM searches WHERE day < %s", (day - KEEP_COUNTS_DAYS,))
            connection.execute("DELETE FROM found WHERE day < %s", (day - KEEP_COUNTS_DAYS,))
            self._swept_day = day

    def _rows(self, query: LiteralString, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, of what waits too."""
        self._write()
        return self._database.rows(query, values)

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """See `CallLog.searches`."""
        rows = self._rows(
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
        rows = self._rows(
            "SELECT tool, sum(times) FROM found "
            "WHERE %(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s) "
            "GROUP BY tool ORDER BY tool",
            {"tenant": label_of(tenant)},
        )
        return dict(rows)

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """See `CallLog.served_queries`."""
        rows = self._rows(
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
        rows = self._rows(
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
        rows = self._rows(
            "SELECT tenant, task, tool, at FROM calls WHERE task <> '' AND outcome = 'ok' "
            "AND (%(tenant)s::text IS NULL OR tenant IN ('', %(tenant)s)) "
            "ORDER BY id DESC LIMIT %(limit)s",
            {"tenant": label_of(tenant), "limit": MOST_TASKS},
        )
        return tasks_of(rows, now)

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        query = "SELECT at, tenant, task, tool, shape, seconds, outcome FROM calls ORDER BY id"
        self._write()
        with self._database.reading() as connection, connection.cursor("lines") as cursor:
            yield from map(line_of, cursor.execute(query))

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`."""
        bound = {"tool": tool, "tenant": label(tenant), "quoted": json.dumps(tool)}
        self._write()
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
        with suppress(StoreError):
            self._write()
        self._database.close()


def _take(waiting: deque[T]) -> list[T]:
    return [waiting.popleft() for _ in range(len(waiting))]
