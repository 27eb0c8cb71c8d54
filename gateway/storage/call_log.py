"""The log of calls in one SQLite file."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.runtime.cache import Clock
from gateway.storage.database import Schema
from gateway.storage.sqlite import Connection, SqliteDatabase
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

SPARE = 1_000
"""How many calls there may be above the limit, before the oldest are deleted."""
MOST_TASKS = 50_000
"""How many calls tasks are made of."""
COLUMNS = "at", "tenant", "task", "tool", "shape", "seconds", "outcome"
USAGE = Schema(
    what="usage ledger",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, at REAL NOT NULL,
            tenant TEXT NOT NULL, task TEXT NOT NULL, tool TEXT NOT NULL, shape TEXT NOT NULL,
            seconds REAL NOT NULL, outcome TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS calls_of_tools ON calls (tool, tenant)",
        ),
        # What searches returned was counted there once.
        ("DROP TABLE IF EXISTS accesses", "DROP TABLE IF EXISTS pairs"),
        (
            """CREATE TABLE IF NOT EXISTS searches (day INTEGER NOT NULL, tenant TEXT NOT NULL,
            searches INTEGER NOT NULL, no_match INTEGER NOT NULL, low_confidence INTEGER NOT NULL,
            PRIMARY KEY (day, tenant))""",
            """CREATE TABLE IF NOT EXISTS found (day INTEGER NOT NULL, tenant TEXT NOT NULL,
            tool TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (day, tenant, tool))""",
            """CREATE TABLE IF NOT EXISTS queries (id INTEGER PRIMARY KEY, at REAL NOT NULL,
            tenant TEXT NOT NULL, task TEXT NOT NULL, text TEXT NOT NULL, found TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS queries_by_age ON queries (at)",
        ),
    ),
)


class SqliteCallLog:
    """A `CallLog` in one SQLite file.

    Args:
        path: The file; it and its folder are made when first needed.
        wall: Seconds since the epoch.
        most: How many calls are kept.
        most_queries: How many texts of searches.
    """

    def __init__(
        self,
        path: Path,
        *,
        wall: Clock = time.time,
        most: int = MOST_CALLS,
        most_queries: int = MOST_QUERIES,
    ) -> None:
        self._database = SqliteDatabase(path, USAGE)
        self._wall = wall
        self._most = most
        self._most_queries = most_queries

    def note(self, call: Call) -> None:
        """See `CallLog.note`."""
        row = row_of(call, self._wall())
        with self._database.transaction() as connection:
            added = connection.execute(
                "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            if added is not None and added % SPARE == 0:
                connection.execute("DELETE FROM calls WHERE id <= ?", (added - self._most,))

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """See `CallLog.note_searches`."""
        now = self._wall()
        day = int(now // DAY_S)
        with self._database.transaction() as connection:
            last = max((_insert(connection, search, now) for search in searches), default=0)
            for table in ("searches", "found"):
                old = f"DELETE FROM {table} WHERE day < ?"  # noqa: S608  (fixed texts)
                connection.execute(old, (day - KEEP_COUNTS_DAYS,))
            connection.execute("PRAGMA secure_delete = ON")
            # Also where texts are recorded no more: the old ones go.
            query = "DELETE FROM queries WHERE id <= ? OR at < ?"
            connection.execute(query, (last - self._most_queries, now - KEEP_QUERIES_S))

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """See `CallLog.searches`."""
        query = (
            "SELECT tenant, sum(searches), sum(no_match), sum(low_confidence) FROM searches "
            "WHERE :tenant IS NULL OR tenant IN ('', :tenant) GROUP BY tenant ORDER BY tenant"
        )
        with self._database.reading() as connection:
            rows = connection.execute(query, {"tenant": label_of(tenant)}).fetchall()
        return [
            SearchTally(tenant=whose, searches=searches, no_match=none, low_confidence=low)
            for whose, searches, none, low in rows
        ]

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """See `CallLog.found`."""
        query = (
            "SELECT tool, sum(times) FROM found "
            "WHERE :tenant IS NULL OR tenant IN ('', :tenant) GROUP BY tool ORDER BY tool"
        )
        with self._database.reading() as connection:
            return dict(connection.execute(query, {"tenant": label_of(tenant)}).fetchall())

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """See `CallLog.served_queries`."""
        query = (
            "SELECT q.id, q.text, q.found, c.id, c.tool FROM queries q JOIN calls c "
            "ON c.tenant = q.tenant AND c.task = q.task AND c.at >= q.at AND c.outcome = 'ok' "
            "WHERE q.task <> '' AND q.at >= :oldest "
            "AND (:tenant IS NULL OR q.tenant IN ('', :tenant)) ORDER BY q.id, c.id"
        )
        bound = {"oldest": self._wall() - KEEP_QUERIES_S, "tenant": label_of(tenant)}
        with self._database.reading() as connection:
            rows = connection.execute(query, bound).fetchall()
        return served_of(rows)

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """See `CallLog.tallies`."""
        query = (
            "SELECT tool, CAST((:now - at) / :day AS INTEGER) AS days, sum(outcome = 'ok'), "
            "sum(outcome <> 'ok') FROM calls WHERE :tenant IS NULL OR tenant IN ('', :tenant) "
            "GROUP BY tool, days ORDER BY tool, days"
        )
        bound = {"now": self._wall(), "day": DAY_S, "tenant": label_of(tenant)}
        with self._database.reading() as connection:
            rows = connection.execute(query, bound).fetchall()
        return [
            Tally(tool=tool, age_s=max(days, 0) * DAY_S, succeeded=succeeded, failed=failed)
            for tool, days, succeeded, failed in rows
        ]

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """See `CallLog.tasks`; the newest calls, if there are very many."""
        query = (
            "SELECT tenant, task, tool, at FROM calls WHERE task <> '' AND outcome = 'ok' "
            "AND (:tenant IS NULL OR tenant IN ('', :tenant)) ORDER BY id DESC LIMIT :limit"
        )
        now, bound = self._wall(), {"tenant": label_of(tenant), "limit": MOST_TASKS}
        with self._database.reading() as connection:
            rows = connection.execute(query, bound).fetchall()
        return tasks_of(rows, now)

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        query = f"SELECT {', '.join(COLUMNS)} FROM calls ORDER BY id"  # noqa: S608  (fixed texts)
        with self._database.reading() as connection:
            yield from map(line_of, connection.execute(query))

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`."""
        bound = {"tool": tool, "tenant": label(tenant), "quoted": json.dumps(tool)}
        with self._database.transaction() as connection:
            # What is forgotten must not stay in free pages of the file.
            connection.execute("PRAGMA secure_delete = ON")
            gone = connection.execute(
                "DELETE FROM calls WHERE :tool IN ('', tool) AND :tenant IN ('', tenant)", bound
            ).rowcount
            connection.execute(
                "DELETE FROM found WHERE :tool IN ('', tool) AND :tenant IN ('', tenant)", bound
            )
            connection.execute(
                "DELETE FROM queries WHERE (:tool = '' OR instr(found, :quoted) > 0) "
                "AND :tenant IN ('', tenant)",
                bound,
            )
            connection.execute(
                "DELETE FROM searches WHERE :tool = '' AND :tenant IN ('', tenant)", bound
            )
        return int(gone)

    def close(self) -> None:
        """See `CallLog.close`."""
        self._database.close()


def _insert(connection: Connection, search: SearchNote, at: float) -> int:
    """Count *search*, and return the id of its text; 0 if it has none."""
    day, tenant, found = int(at // DAY_S), label(search.tenant), tuple(dict.fromkeys(search.found))
    connection.execute(
        "INSERT INTO searches VALUES (?, ?, 1, ?, ?) ON CONFLICT (day, tenant) DO UPDATE "
        "SET searches = searches + 1, no_match = no_match + excluded.no_match, "
        "low_confidence = low_confidence + excluded.low_confidence",
        (day, tenant, not found, search.low_confidence),
    )
    connection.executemany(
        "INSERT INTO found VALUES (?, ?, ?, 1) "
        "ON CONFLICT (day, tenant, tool) DO UPDATE SET times = times + 1",
        [(day, tenant, tool) for tool in found],
    )
    if not search.query:
        return 0
    text = at, tenant, label(search.task), search.query, json.dumps(found)
    query = "INSERT INTO queries VALUES (NULL, ?, ?, ?, ?, ?)"
    return connection.execute(query, text).lastrowid or 0


def row_of(call: Call, at: float) -> tuple[object, ...]:
    """Return what is kept of a call, in the order of `COLUMNS`."""
    shape = json.dumps(dict(call.shape), ensure_ascii=False, sort_keys=True)
    labels = label(call.tenant), label(call.task)
    return (at, *labels, call.tool, shape, call.seconds, call.outcome)


def line_of(row: Sequence[Any]) -> JsonObject:
    """Return a row of `COLUMNS` as `CallLog.lines` yields it."""
    line = dict(zip(COLUMNS, row, strict=True))
    return line | {"shape": json.loads(line["shape"])}


def served_of(rows: Iterable[tuple[int, str, str, int, str]]) -> Sequence[ServedQuery]:
    """Return what `CallLog.served_queries` does.

    Args:
        rows: Id, text and matches of a search, id and tool of a call after it: in the order of both
            ids.
    """
    # Later searches come later, and take a call over.
    search_of = {
        (call, tool): (key, text)
        for key, text, found, call, tool in rows
        if tool in json.loads(found)
    }
    tools: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for (_, tool), search in sorted(search_of.items()):
        tools[search].append(tool)
    return [
        ServedQuery(query=text, tools=tuple(dict.fromkeys(called)))
        for (_, text), called in sorted(tools.items())
    ]


def tasks_of(rows: Sequence[tuple[str, str, str, float]], now: float) -> Sequence[Task]:
    """Return what `CallLog.tasks` does.

    Args:
        rows: Tenant, task, tool and time of each call, the newest first.
        now: Seconds since the epoch.
    """
    tools_by_task: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    last: dict[tuple[str, str], float] = {}
    for tenant, task, tool, at in reversed(rows):
        tools_by_task[tenant, task].append(tool)
        last[tenant, task] = at
    return [
        Task(tools=tuple(tools), age_s=max((now - last[key]) // DAY_S, 0.0) * DAY_S)
        for key, tools in tools_by_task.items()
    ]


def label_of(tenant: str | None) -> str | None:
    """Return the digest of a tenant's label; None for all tenants."""
    return None if tenant is None else label(tenant)
