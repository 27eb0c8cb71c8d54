"""Call log in database tables."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import LiteralString, Protocol, TypeAlias, TypeVar, runtime_checkable

from gateway.errors import ConfigError, StoreError
from gateway.plugins.usage.call_log import (
    DAY_S,
    KEEP_COUNTS_DAYS,
    KEEP_QUERIES_S,
    MOST_CALLS,
    MOST_QUERIES,
    CallLog,
    CallNote,
    SearchNote,
    SearchTally,
    ServedQuery,
    Tally,
    Task,
    label,
)
from gateway.runtime.cache import Clock
from gateway.storage.database import Database, Row, Schema, Session
from gateway.storage.protocol import Store, TableStore
from gateway.types import JsonObject

SPARE = 1_000
"""Number of calls above the maximum at which the oldest are deleted."""
MOST_TASKS = 50_000
"""Maximum number of calls that are read for tasks."""
COLUMNS = "at", "tenant", "task", "tool", "shape", "seconds", "outcome"
_MAX_WAITING = 10_000
"""Maximum number of calls, and of searches, in memory while the database is unavailable."""
USAGE = Schema(
    name="usage",
    what="usage ledger",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, at REAL NOT NULL,
            tenant TEXT NOT NULL, task TEXT NOT NULL, tool TEXT NOT NULL, shape TEXT NOT NULL,
            seconds REAL NOT NULL, outcome TEXT NOT NULL)""",
            "CREATE INDEX IF NOT EXISTS calls_of_tools ON calls (tool, tenant)",
        ),
        # Tables of an early version.
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
    postgres={
        1: (
            """CREATE TABLE calls (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            at double precision NOT NULL, tenant text NOT NULL, task text NOT NULL,
            tool text COLLATE "C" NOT NULL, shape text NOT NULL, seconds double precision NOT NULL,
            outcome text NOT NULL)""",
            "CREATE INDEX calls_of_tools ON calls (tool, tenant)",
            """CREATE TABLE searches (day integer, tenant text COLLATE "C",
            searches integer NOT NULL, no_match integer NOT NULL, low_confidence integer NOT NULL,
            PRIMARY KEY (day, tenant))""",
            """CREATE TABLE found (day integer, tenant text COLLATE "C", tool text COLLATE "C",
            times integer NOT NULL, PRIMARY KEY (day, tenant, tool))""",
            """CREATE TABLE queries (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            at double precision NOT NULL, tenant text NOT NULL, task text NOT NULL,
            text text NOT NULL, found text NOT NULL)""",
            "CREATE INDEX queries_by_age ON queries (at)",
        )
    },
    is_erased=True,
)
T = TypeVar("T")
CallRow: TypeAlias = tuple[object, ...]
FoundTool: TypeAlias = tuple[int, str, str]
"""Day, tenant and tool id."""


class SqlCallLog:
    """`CallLog` in database tables.

    While the database is unavailable, calls and searches wait in memory.

    Args:
        database: Database with the tables of `USAGE`.
        wall: Clock in seconds since the epoch.
        most: Maximum number of stored calls.
        most_queries: Maximum number of stored query texts.
    """

    def __init__(
        self,
        database: Database,
        *,
        wall: Clock = time.time,
        most: int = MOST_CALLS,
        most_queries: int = MOST_QUERIES,
    ) -> None:
        self._database = database
        self._wall = wall
        self._most = most
        self._most_queries = most_queries
        self._calls = deque[CallRow](maxlen=_MAX_WAITING)
        self._searches = deque[tuple[float, SearchNote]](maxlen=_MAX_WAITING)
        self._writing = threading.Lock()
        self._swept_day = 0

    def note(self, call: CallNote) -> None:
        """Store one call."""
        self._calls.append(row_of(call, self._wall()))
        self._write()

    def note_searches(self, searches: Sequence[SearchNote]) -> None:
        """Count *searches* and store their query texts."""
        now = self._wall()
        self._searches.extend((now, search) for search in searches)
        self._write()

    def _write(self) -> None:
        """Write all waiting calls and searches in one transaction, if the database is available.

        Raises:
            StoreError: If writing fails for another reason. The calls and searches are lost.
        """
        with self._writing:
            calls, searches = _drain(self._calls), _drain(self._searches)
            if not calls and not searches:
                return
            try:
                with self._database.transaction() as session:
                    self._put_calls(session, calls)
                    self._put_searches(session, searches)
            except StoreError as error:
                if not self._database.is_away(error):
                    raise
                self._calls.extendleft(reversed(calls))
                self._searches.extendleft(reversed(searches))

    def _put_calls(self, session: Session, calls: Sequence[CallRow]) -> None:
        query = """INSERT INTO calls (at, tenant, task, tool, shape, seconds, outcome)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        for call in calls:
            added = session.insert(query, call)
            if added % SPARE == 0:
                session.write("DELETE FROM calls WHERE id <= ?", (added - self._most,))

    def _put_searches(self, session: Session, searches: Sequence[tuple[float, SearchNote]]) -> None:
        """Add up *searches*, so that each row is written only once, and store query texts."""
        totals, found_tools = dict[tuple[int, str], list[int]](), Counter[FoundTool]()
        texts = list[tuple[object, ...]]()
        for moment, search in searches:
            day, tenant = int(moment // DAY_S), label(search.tenant)
            tools = tuple(dict.fromkeys(search.found))
            total = totals.setdefault((day, tenant), [0, 0, 0])
            for place, count in enumerate((1, int(not tools), int(search.low_confidence))):
                total[place] += count
            found_tools.update((day, tenant, tool) for tool in tools)
            if search.query:
                text = search.query.replace("\0", " ").encode("utf-8", "replace").decode()
                texts.append((moment, tenant, label(search.task), text, json.dumps(tools)))
        session.write(
            """INSERT INTO searches VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, tenant) DO UPDATE
            SET searches = searches.searches + excluded.searches,
            no_match = searches.no_match + excluded.no_match,
            low_confidence = searches.low_confidence + excluded.low_confidence""",
            *((*key, *total) for key, total in sorted(totals.items())),
        )
        session.write(
            """INSERT INTO found VALUES (?, ?, ?, ?) ON CONFLICT (day, tenant, tool)
            DO UPDATE SET times = found.times + excluded.times""",
            *((*key, times) for key, times in sorted(found_tools.items())),
        )
        query = "INSERT INTO queries (at, tenant, task, text, found) VALUES (?, ?, ?, ?, ?)"
        session.write(query, *texts)
        self._delete_old(session, has_texts=bool(texts))

    def _delete_old(self, session: Session, *, has_texts: bool) -> None:
        now = self._wall()
        day = int(now // DAY_S)
        if has_texts:
            query = "DELETE FROM queries WHERE id <= (SELECT max(id) FROM queries) - ?"
            session.write(query, (self._most_queries,))
        if day != self._swept_day:
            # Old query texts are also deleted if they are no longer recorded.
            session.write("DELETE FROM queries WHERE at < ?", (now - KEEP_QUERIES_S,))
            session.write("DELETE FROM searches WHERE day < ?", (day - KEEP_COUNTS_DAYS,))
            session.write("DELETE FROM found WHERE day < ?", (day - KEEP_COUNTS_DAYS,))
            self._swept_day = day

    def _rows(self, query: LiteralString, tenant: str | None, **values: float) -> list[Row]:
        """Return the rows of *query* for *tenant*, after writing waiting calls and searches."""
        self._write()
        parameters = {"tenant": None if tenant is None else label(tenant), **values}
        return self._database.rows(query, parameters)

    def searches(self, tenant: str | None = None) -> Sequence[SearchTally]:
        """Return the search counts of each tenant."""
        query = """SELECT tenant, sum(searches), sum(no_match), sum(low_confidence) FROM searches
            WHERE CAST(:tenant AS text) IS NULL OR tenant IN ('', :tenant)
            GROUP BY tenant ORDER BY tenant"""
        return [
            SearchTally(tenant=digest, searches=searches, no_match=no_match, low_confidence=low)
            for digest, searches, no_match, low in self._rows(query, tenant)
        ]

    def found(self, tenant: str | None = None) -> Mapping[str, int]:
        """Return the number of searches that found each tool, keyed by tool id."""
        query = """SELECT tool, sum(times) FROM found
            WHERE CAST(:tenant AS text) IS NULL OR tenant IN ('', :tenant)
            GROUP BY tool ORDER BY tool"""
        return dict(self._rows(query, tenant))

    def served_queries(self, tenant: str | None = None) -> Sequence[ServedQuery]:
        """Return stored queries whose matches were called, as `CallLog.served_queries` does."""
        query = """SELECT q.id, q.text, q.found, c.id, c.tool FROM queries q JOIN calls c
            ON c.tenant = q.tenant AND c.task = q.task AND c.at >= q.at AND c.outcome = 'ok'
            WHERE q.task <> '' AND q.at >= :oldest
            AND (CAST(:tenant AS text) IS NULL OR q.tenant IN ('', :tenant))
            ORDER BY q.id, c.id"""
        return served_of(self._rows(query, tenant, oldest=self._wall() - KEEP_QUERIES_S))

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Return the numbers of calls of each tool on each day."""
        query = """SELECT tool, trunc((:now - at) / :day) AS days,
            sum(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END),
            sum(CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END) FROM calls
            WHERE CAST(:tenant AS text) IS NULL OR tenant IN ('', :tenant)
            GROUP BY tool, days ORDER BY tool, days"""
        return [
            Tally(tool=tool, age_s=max(days, 0) * DAY_S, succeeded=succeeded, failed=failed)
            for tool, days, succeeded, failed in self._rows(
                query, tenant, now=self._wall(), day=DAY_S
            )
        ]

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Return the tasks of the newest `MOST_TASKS` calls."""
        query = """SELECT tenant, task, tool, at FROM calls WHERE task <> '' AND outcome = 'ok'
            AND (CAST(:tenant AS text) IS NULL OR tenant IN ('', :tenant))
            ORDER BY id DESC LIMIT :most"""
        now = self._wall()
        return tasks_of(self._rows(query, tenant, most=MOST_TASKS), now)

    def lines(self) -> Iterator[JsonObject]:
        """Yield all stored calls as JSON objects, oldest first."""
        self._write()
        query = "SELECT at, tenant, task, tool, shape, seconds, outcome FROM calls ORDER BY id"
        with self._database.reading() as session:
            for row in session.each(query):
                line = dict(zip(COLUMNS, row, strict=True))
                yield line | {"shape": json.loads(line["shape"])}

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Delete calls and related search data, as `CallLog.forget` does."""
        parameters = {"tool": tool, "tenant": label(tenant), "quoted": json.dumps(tool)}
        self._write()
        with self._database.transaction() as session:
            deleted = session.write(
                "DELETE FROM calls WHERE :tool IN ('', tool) AND :tenant IN ('', tenant)",
                parameters,
            )
            session.write(
                "DELETE FROM found WHERE :tool IN ('', tool) AND :tenant IN ('', tenant)",
                parameters,
            )
            session.write(
                """DELETE FROM queries WHERE (:tool = '' OR strpos(found, :quoted) > 0)
                AND :tenant IN ('', tenant)""",
                parameters,
            )
            session.write(
                "DELETE FROM searches WHERE :tool = '' AND :tenant IN ('', tenant)", parameters
            )
        return deleted

    def close(self) -> None:
        """Write the waiting calls and searches, and close the database."""
        # A full disk must not prevent a gateway from closing.
        with suppress(StoreError):
            self._write()
        self._database.close()


def _drain(waiting: deque[T]) -> list[T]:
    return [waiting.popleft() for _ in range(len(waiting))]


def row_of(call: CallNote, at: float) -> tuple[object, ...]:
    """Return the table row of a call, in the order of `COLUMNS`."""
    shape = json.dumps(dict(call.shape), ensure_ascii=False, sort_keys=True)
    labels = label(call.tenant), label(call.task)
    return (at, *labels, call.tool, shape, call.seconds, call.outcome)


def served_of(rows: Iterable[tuple[int, str, str, int, str]]) -> Sequence[ServedQuery]:
    """Return the result of `CallLog.served_queries`.

    Args:
        rows: Id, text and matches of a search, then id and tool of a later call in its task. Sorted
            by both ids.
    """
    # The last row of a call has the latest search before it.
    search_of = {
        (call, tool): (key, text)
        for key, text, matches, call, tool in rows
        if tool in json.loads(matches)
    }
    tools: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for (_, tool), search in sorted(search_of.items()):
        tools[search].append(tool)
    return [
        ServedQuery(query=text, tools=tuple(dict.fromkeys(called)))
        for (_, text), called in sorted(tools.items())
    ]


def tasks_of(rows: Sequence[tuple[str, str, str, float]], now: float) -> Sequence[Task]:
    """Return the result of `CallLog.tasks`.

    Args:
        rows: Tenant, task, tool and time of each call, newest first.
        now: Seconds since the epoch.
    """
    tools_by_task: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    last: dict[tuple[str, str], float] = {}
    for tenant, task, tool, moment in reversed(rows):
        tools_by_task[tenant, task].append(tool)
        last[tenant, task] = moment
    return [
        Task(tools=tuple(tools), age_s=max((now - last[key]) // DAY_S, 0.0) * DAY_S)
        for key, tools in tools_by_task.items()
    ]


@runtime_checkable
class CallStore(Store, Protocol):
    """`Store` of a host with its own call log."""

    @property
    def call_log(self) -> CallLog:
        """Log of calls and searches."""


def call_log_of(store: Store) -> CallLog:
    """Return the call log of *store*.

    Raises:
        ConfigError: If *store* has neither a call log nor tables.
    """
    if isinstance(store, CallStore):
        return store.call_log
    if isinstance(store, TableStore):
        return SqlCallLog(store.tables(USAGE), wall=store.wall)
    raise ConfigError("the store has neither 'tables' nor a 'call_log': add one of them")
