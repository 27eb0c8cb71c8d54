"""The log of calls in one SQLite file."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage.sqlite import Database, Schema
from gateway.types import JsonObject
from gateway.usage.call_log import DAY_S, MOST_CALLS, Call, Tally, Task, label

_SPARE = 1_000
_MOST_TASKS = 50_000
_COLUMNS = "at", "tenant", "task", "tool", "shape", "seconds", "outcome"
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
    ),
)


class SqliteCallLog:
    """A `CallLog` in one SQLite file.

    Args:
        path: The file; it and its folder are made when first needed.
        wall: Seconds since the epoch.
        most: How many calls are kept.
    """

    def __init__(self, path: Path, *, wall: Clock = time.time, most: int = MOST_CALLS) -> None:
        self._database = Database(path, USAGE)
        self._wall = wall
        self._most = most

    def note(self, call: Call) -> None:
        """See `CallLog.note`."""
        shape = json.dumps(dict(call.shape), ensure_ascii=False, sort_keys=True)
        labels = label(call.tenant), label(call.task)
        row = (self._wall(), *labels, call.tool, shape, call.seconds, call.outcome)
        with self._database.transaction() as connection:
            added = connection.execute(
                "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            if added is not None and added % _SPARE == 0:
                connection.execute("DELETE FROM calls WHERE id <= ?", (added - self._most,))

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """See `CallLog.tallies`."""
        query = (
            "SELECT tool, CAST((:now - at) / :day AS INTEGER) AS days, sum(outcome = 'ok'), "
            "sum(outcome <> 'ok') FROM calls WHERE :tenant IS NULL OR tenant IN ('', :tenant) "
            "GROUP BY tool, days ORDER BY tool, days"
        )
        bound = {"now": self._wall(), "day": DAY_S, "tenant": _label(tenant)}
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
        now, bound = self._wall(), {"tenant": _label(tenant), "limit": _MOST_TASKS}
        with self._database.reading() as connection:
            rows = connection.execute(query, bound).fetchall()
        tools_by_task: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        last: dict[tuple[str, str], float] = {}
        for whose, task, tool, at in reversed(rows):
            tools_by_task[whose, task].append(tool)
            last[whose, task] = at
        return [
            Task(tools=tuple(tools), age_s=max((now - last[key]) // DAY_S, 0.0) * DAY_S)
            for key, tools in tools_by_task.items()
        ]

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM calls ORDER BY id"  # noqa: S608  (fixed texts)
        with self._database.reading() as connection:
            for row in connection.execute(query):
                line = dict(zip(_COLUMNS, row, strict=True))
                yield line | {"shape": json.loads(line["shape"])}

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`."""
        bound = {"tool": tool, "tenant": label(tenant)}
        with self._database.transaction() as connection:
            gone = connection.execute(
                "DELETE FROM calls WHERE :tool IN ('', tool) AND :tenant IN ('', tenant)", bound
            ).rowcount
        return int(gone)

    def close(self) -> None:
        """See `CallLog.close`."""
        self._database.close()


def _label(tenant: str | None) -> str | None:
    return None if tenant is None else label(tenant)
