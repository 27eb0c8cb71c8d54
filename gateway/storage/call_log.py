"""The log of calls in one SQLite file."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage.migrations import USAGE
from gateway.storage.sqlite import Database
from gateway.types import JsonObject
from gateway.usage.call_log import DAY_S, MOST_CALLS, Call, Exposure, Tally, Task, label

_SPARE = 1_000
_MOST_TASKS = 50_000
_MOST_PAIRS = 100_000


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
        row = (self._wall(), label(call.tenant), label(call.task), call.tool)
        with self._database.transaction() as connection:
            added = connection.execute(
                "INSERT INTO calls (at, tenant, task, tool, shape, seconds, outcome) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row, shape, call.seconds, call.outcome),
            ).lastrowid
            if added is not None and added % _SPARE == 0:
                connection.execute("DELETE FROM calls WHERE id <= ?", (added - self._most,))

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """See `CallLog.tallies`."""
        where, bound = _of(tenant)
        now = self._wall()
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT tool, CAST((? - at) / ? AS INTEGER) AS days, "  # noqa: S608  (fixed texts)
                f"sum(outcome = 'ok'), sum(outcome <> 'ok') FROM calls {where} "
                "GROUP BY tool, days ORDER BY tool, days",
                (now, DAY_S, *bound),
            ).fetchall()
        return [
            Tally(tool=tool, age_s=max(days, 0) * DAY_S, succeeded=succeeded, failed=failed)
            for tool, days, succeeded, failed in rows
        ]

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """See `CallLog.tasks`; the newest calls, if there are very many."""
        where, bound = _of(tenant)
        clause = f"{where} {'AND' if where else 'WHERE'} task <> '' AND outcome = 'ok'"
        now = self._wall()
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT tenant, task, tool, at FROM calls {clause} ORDER BY id DESC LIMIT ?",  # noqa: S608  (fixed texts)
                (*bound, _MOST_TASKS),
            ).fetchall()
        tools_by_task: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        last: dict[tuple[str, str], float] = {}
        for whose, task, tool, at in reversed(rows):
            tools_by_task[whose, task].append(tool)
            last[whose, task] = at
        return [
            Task(tools=tuple(tools), age_s=max((now - last[key]) // DAY_S, 0.0) * DAY_S)
            for key, tools in tools_by_task.items()
        ]

    def show(self, *lists: Sequence[str]) -> None:
        """See `CallLog.show`; one transaction for all of them."""
        now = self._wall()
        day = int(now // DAY_S)
        counts = Counter(tool for ids in lists for tool in set(ids))
        together = Counter(pair for ids in lists for pair in combinations(sorted(set(ids)), 2))
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO accesses VALUES (?, ?, ?, ?) ON CONFLICT (tool, day) DO UPDATE "
                "SET count = count + excluded.count, last = max(last, excluded.last)",
                [(tool, day, count, now) for tool, count in counts.items()],
            )
            connection.executemany(
                "INSERT INTO pairs VALUES (?, ?, ?, ?) ON CONFLICT (one, other) DO UPDATE "
                "SET count = count + excluded.count, last = max(last, excluded.last)",
                [(*pair, count, now) for pair, count in together.items()],
            )

    def shown(self) -> Mapping[str, Exposure]:
        """See `CallLog.shown`."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT tool, sum(count), count(*), max(last) FROM accesses GROUP BY tool"
            ).fetchall()
        return {
            tool: Exposure(count=count, days=days, last_s=last) for tool, count, days, last in rows
        }

    def pairs(self) -> Mapping[frozenset[str], Exposure]:
        """See `CallLog.pairs`."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT one, other, count, last FROM pairs ORDER BY last DESC LIMIT ?",
                (_MOST_PAIRS,),
            ).fetchall()
        return {
            frozenset({one, other}): Exposure(count=count, days=1, last_s=last)
            for one, other, count, last in rows
        }

    def lines(self) -> Iterator[JsonObject]:
        """See `CallLog.lines`."""
        last = 0
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(
                    "SELECT id, at, tenant, task, tool, shape, seconds, outcome FROM calls "
                    "WHERE id > ? ORDER BY id LIMIT ?",
                    (last, _SPARE),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            for _, at, tenant, task, tool, shape, seconds, outcome in rows:
                yield {
                    "at": at,
                    "tenant": tenant,
                    "task": task,
                    "tool": tool,
                    "shape": json.loads(shape),
                    "seconds": seconds,
                    "outcome": outcome,
                }

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """See `CallLog.forget`; without a tenant also what searches returned."""
        clauses = [("tool", tool)] if tool else []
        clauses += [("tenant", label(tenant))] if tenant else []
        where = " AND ".join(f"{name} = ?" for name, _ in clauses) or "1"
        bound = [value for _, value in clauses]
        with self._database.transaction() as connection:
            gone = connection.execute(f"DELETE FROM calls WHERE {where}", bound).rowcount  # noqa: S608
            if not tenant:
                one = [tool] if tool else []
                connection.execute(f"DELETE FROM accesses WHERE {'tool = ?' if tool else '1'}", one)  # noqa: S608
                pairs = "one = ? OR other = ?" if tool else "1"
                connection.execute(f"DELETE FROM pairs WHERE {pairs}", one * 2)  # noqa: S608
        return int(gone)

    def close(self) -> None:
        """See `CallLog.close`."""
        self._database.close()


def _of(tenant: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if tenant is None else ("WHERE tenant = ?", (label(tenant),))
