"""The ledger of calls: which tool, how it ended, in which task. Never the value of an argument.

* There is one line for each call. Searches, results and listings leave nothing here, but for what
  `compat` notes while it is on.
* Tasks and tenants are opaque labels of the host's, kept as digests.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Literal, Protocol

from gateway.catalog.schemas import USAGE
from gateway.catalog.sqlite import Database
from gateway.runtime.cache import Clock
from gateway.types import Entity, JsonObject

Outcome = Literal["ok", "tool_error", "failed"]
"""*ok*: it answered; *tool_error*: it said that it failed; *failed*: it could not be asked, or did
not answer."""
DAY_S = 24 * 3600.0
MOST_CALLS = 200_000
"""How many calls are kept; of more, the oldest are deleted."""
_SPARE = 1_000
_MOST_TASKS = 50_000
_MOST_PAIRS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool."""

    tool: str
    """Canonical id, ``server/name``."""
    outcome: Outcome
    seconds: float = 0.0
    shape: Mapping[str, str] = field(default_factory=dict)
    """See `shape_of`."""
    task: str = ""
    """What the call belongs to, such as one request of a user; empty if unknown."""
    tenant: str = ""
    """For whom; empty for everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What was called in one task."""

    tools: tuple[str, ...]
    """Those that succeeded, in order."""
    age_s: float = 0.0
    """How long ago the last of them was called, >= 0, in whole days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How the calls of one tool ended on one day."""

    tool: str
    age_s: float
    """How long ago, >= 0, in whole days."""
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How often searches returned something; counted only while `compat` is on."""

    count: int
    days: int
    last_s: float
    """Seconds since the epoch."""


class Ledger(Protocol):
    """Where calls are noted. Every method may raise `StoreError`."""

    def note(self, call: Call) -> None:
        """Note one call."""

    def tallies(self, tenant: str | None = None) -> Sequence[Tally]:
        """Count calls by tool and day, of one tenant or of all."""

    def tasks(self, tenant: str | None = None) -> Sequence[Task]:
        """Give the tasks of one tenant or of all; calls without a task are none."""

    def show(self, *lists: Sequence[str]) -> None:
        """Note what searches returned, one list of ids for each search."""

    def shown(self) -> Mapping[str, Seen]:
        """Give how often each entity was returned; those that never were are absent."""

    def pairs(self) -> Mapping[frozenset[str], Seen]:
        """Give how often two entities were returned together; of very many pairs, the newest."""

    def lines(self) -> Iterator[JsonObject]:
        """Give all that is kept of calls, oldest first."""

    def forget(self, *, tool: str = "", tenant: str = "") -> int:
        """Forget the calls of a tool, of a tenant, or both; of everybody without either.

        Returns:
            How many calls were forgotten.
        """

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


def shape_of(entity: Entity, arguments: JsonObject) -> Mapping[str, str]:
    """Give the JSON type of each argument that the tool's schema names, by name.

    Names that the schema does not have may be data themselves: they are counted, as ``+n``.
    """
    properties = entity.definition.input_schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    shape = {name: _type(value) for name, value in sorted(arguments.items()) if name in known}
    others = len(arguments) - len(shape)
    return shape | ({f"+{others}": "unknown"} if others else {})


def _type(value: object) -> str:
    kinds: Sequence[tuple[type | tuple[type, ...], str]] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


class SqliteLedger:
    """A `Ledger` in one SQLite file.

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
        """See `Ledger.note`."""
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
        """See `Ledger.tallies`."""
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
        """See `Ledger.tasks`; the newest calls, if there are very many."""
        where, bound = _of(tenant)
        clause = f"{where} {'AND' if where else 'WHERE'} task <> '' AND outcome = 'ok'"
        now = self._wall()
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT tenant, task, tool, at FROM calls {clause} ORDER BY id DESC LIMIT ?",  # noqa: S608  (fixed texts)
                (*bound, _MOST_TASKS),
            ).fetchall()
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        last: dict[tuple[str, str], float] = {}
        for whose, task, tool, at in reversed(rows):
            found[whose, task].append(tool)
            last[whose, task] = at
        return [
            Task(tools=tuple(tools), age_s=max((now - last[key]) // DAY_S, 0.0) * DAY_S)
            for key, tools in found.items()
        ]

    def show(self, *lists: Sequence[str]) -> None:
        """See `Ledger.show`; one transaction for all of them."""
        now = self._wall()
        day = int(now // DAY_S)
        seen = Counter(each for ids in lists for each in set(ids))
        together = Counter(pair for ids in lists for pair in combinations(sorted(set(ids)), 2))
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO accesses VALUES (?, ?, ?, ?) ON CONFLICT (tool, day) DO UPDATE "
                "SET count = count + excluded.count, last = max(last, excluded.last)",
                [(each, day, count, now) for each, count in seen.items()],
            )
            connection.executemany(
                "INSERT INTO pairs VALUES (?, ?, ?, ?) ON CONFLICT (one, other) DO UPDATE "
                "SET count = count + excluded.count, last = max(last, excluded.last)",
                [(*pair, count, now) for pair, count in together.items()],
            )

    def shown(self) -> Mapping[str, Seen]:
        """See `Ledger.shown`."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT tool, sum(count), count(*), max(last) FROM accesses GROUP BY tool"
            ).fetchall()
        return {each: Seen(count=count, days=days, last_s=last) for each, count, days, last in rows}

    def pairs(self) -> Mapping[frozenset[str], Seen]:
        """See `Ledger.pairs`."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT one, other, count, last FROM pairs ORDER BY last DESC LIMIT ?",
                (_MOST_PAIRS,),
            ).fetchall()
        return {
            frozenset({one, other}): Seen(count=count, days=1, last_s=last)
            for one, other, count, last in rows
        }

    def lines(self) -> Iterator[JsonObject]:
        """See `Ledger.lines`."""
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
        """See `Ledger.forget`; without a tenant also what searches returned."""
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
        """See `Ledger.close`."""
        self._database.close()


def _of(tenant: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if tenant is None else ("WHERE tenant = ?", (label(tenant),))


def label(said: str) -> str:
    """Give the digest of a host's label, since labels may be people's names; "" for ""."""
    return hashlib.sha256(said.encode()).hexdigest()[:32] if said else ""
