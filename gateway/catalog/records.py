"""What is remembered of servers between two starts: their tool lists, and what was approved.

* A tool list is kept under the fingerprint of its server's configuration: another configuration
  is another server. One that nobody used for a month is forgotten.
* A pin is the digest of a definition as it was first seen or approved, beside the one seen last.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from gateway.cache import Clock
from gateway.catalog.schemas import CATALOG
from gateway.catalog.sqlite import Connection, Database, database_of
from gateway.errors import StoreError
from gateway.types import Diagnostic, Hints, JsonObject, ToolDefinition
from gateway.upstream.source import LateTools, Listing
from gateway.values import dataclass

LAUNCH = ""
"""The name under which the digest of a server's command line is pinned."""

KEEP_S = 30 * 24 * 3600.0
_NOTED_S = 24 * 3600.0
"""Who was used is noted once a day: to write costs a start more than to read."""
_KNOWN = "SELECT 1 FROM listings WHERE fingerprint = ?"
_SWEEP = "DELETE FROM listings WHERE used_at < ?"
_PINS = "SELECT name, approved, seen FROM pins WHERE owner = ?"
_MANY = (
    "SELECT fingerprint, listed_at, CAST(listing AS BLOB), used_at FROM listings "
    "WHERE fingerprint IN (SELECT value FROM json_each(?))"
)
_APPROVED = (
    "SELECT owner, tools, launch FROM approved WHERE owner IN (SELECT value FROM json_each(?))"
)
_SUM_UP = "INSERT OR REPLACE INTO approved VALUES (?, ?, ?)"


class LateDigests(Mapping[str, str]):
    """Digests by name that are read when somebody looks at one of them.

    Args:
        count: How many there are.
        seen: What `seen_of` gives of all of them.
        read: Reads them.
    """

    def __init__(self, count: int, seen: str, read: Callable[[], Mapping[str, str]]) -> None:
        self.seen = seen
        self._count = count
        self._read = read

    @cached_property
    def _all(self) -> Mapping[str, str]:
        return self._read()

    def __len__(self) -> int:
        """Count them, and read none."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self._all)

    def __getitem__(self, name: str) -> str:
        """Give the digest of a name."""
        return self._all[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A tool list as it was."""

    listing: Listing
    listed_at: float
    """Seconds since the epoch."""


class Records(Protocol):
    """Where listings and pins are kept. Every method may raise `StoreError`."""

    def listing(self, fingerprint: str) -> Recorded | None:
        """Give the tool list of a configuration; None if there is none that can be read."""

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """Keep a tool list that was just read; that of a new configuration sweeps as well."""

    def forget(self, fingerprint: str) -> None:
        """Forget the tool list of a configuration."""

    def sweep(self) -> None:
        """Forget the lists that nobody used for a month."""

    def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """Note what was seen; give the names whose digest is not the approved one.

        A name that is seen for the first time is approved with that.
        """

    def changed(self, owner: str) -> frozenset[str]:
        """Give the names whose digest, when last seen, was not the approved one."""

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """Approve *names* as they were seen last."""

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


class SqliteRecords:
    """`Records` in one SQLite file.

    Args:
        file: The file; it and its folder are made when first needed.
        wall: Seconds since the epoch.
    """

    def __init__(self, file: Path | Database, *, wall: Clock = time.time) -> None:
        self._database = database_of(file, CATALOG)
        self._wall = wall

    def listing(self, fingerprint: str) -> Recorded | None:
        """See `Records.listing`."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT listed_at, listing, used_at FROM listings WHERE fingerprint = ?",
                (fingerprint,),
            ).fetchone()
        if row is None:
            return None
        if self._wall() - row[2] > _NOTED_S:
            self._note_use([fingerprint])
        try:
            listing = _read(row[1].encode())
        except (ValueError, KeyError, TypeError):
            return None
        return Recorded(listing=listing, listed_at=row[0])

    def _note_use(self, fingerprints: Sequence[str]) -> None:
        if not fingerprints:
            return
        # A disk that is full must not cost a list that could be read.
        with suppress(StoreError), self._database.transaction() as connection:
            connection.executemany(
                "UPDATE listings SET used_at = ? WHERE fingerprint = ?",
                [(self._wall(), each) for each in fingerprints],
            )

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `Records.keep`."""
        now = self._wall()
        text = _written(listing)
        with self._database.transaction() as connection:
            # Who lives too briefly to sweep must not fill the file with ever new configurations.
            if connection.execute(_KNOWN, (fingerprint,)).fetchone() is None:
                connection.execute(_SWEEP, (now - KEEP_S,))
            connection.execute(
                "INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?)",
                (fingerprint, server, now, now, text),
            )

    def forget(self, fingerprint: str) -> None:
        """See `Records.forget`."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM listings WHERE fingerprint = ?", (fingerprint,))

    def sweep(self) -> None:
        """See `Records.sweep`."""
        with self._database.transaction() as connection:
            connection.execute(_SWEEP, (self._wall() - KEEP_S,))

    def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """See `Records.see`."""
        with self._database.reading() as connection:
            known = _pinned(connection, owner)
        # To write what is there already would cost every start more than to read it.
        if any(known.get(name, ("", ""))[1] != digest for name, digest in digests.items()):
            with self._database.transaction() as connection:
                # Another process may have seen them first, and seen something else.
                known = _pinned(connection, owner)
                connection.executemany(
                    "INSERT INTO pins VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen",
                    [
                        (owner, name, digest, digest)
                        for name, digest in digests.items()
                        if known.get(name, ("", ""))[1] != digest
                    ],
                )
        return frozenset(
            name for name, digest in digests.items() if known.get(name, (digest, ""))[0] != digest
        )

    def changed(self, owner: str) -> frozenset[str]:
        """See `Records.changed`."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM pins WHERE owner = ? AND approved <> seen", (owner,)
            ).fetchall()
        return frozenset(name for (name,) in rows)

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """See `Records.approve`."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE pins SET approved = seen WHERE owner = ? AND name = ?",
                [(owner, name) for name in names],
            )

    def listings(self, fingerprints: Collection[str]) -> dict[str, Recorded]:
        """Give the tool lists of many configurations, those that can be read, in one go."""
        told = json.dumps(sorted(fingerprints))
        with self._database.reading() as connection:
            rows = connection.execute(_MANY, (told,)).fetchall()
        now = self._wall()
        self._note_use([fingerprint for fingerprint, _, _, used in rows if now - used > _NOTED_S])
        found: dict[str, Recorded] = {}
        for fingerprint, listed_at, text, _ in rows:
            with suppress(ValueError, KeyError, TypeError):
                found[fingerprint] = Recorded(listing=_read(text), listed_at=listed_at)
        return found

    def pins(self, owners: Collection[str]) -> dict[tuple[str, bool], str]:
        """Give what was seen last, as `seen_of` writes it, where all of it is approved.

        Returns:
            By owner, and whether it is the pin of a command line.
        """
        with self._database.reading() as connection:
            rows = connection.execute(_APPROVED, (json.dumps(sorted(owners)),)).fetchall()
        rows += self._summed_up(sorted({*owners}.difference(owner for owner, _, _ in rows)))
        found = {(owner, False): tools for owner, tools, _ in rows if tools}
        return found | {(owner, True): launch for owner, _, launch in rows if launch}

    def _summed_up(self, owners: Sequence[str]) -> list[tuple[str, str, str]]:
        """Say what the pins of *owners* come to, and keep that for the next start."""
        rows: list[tuple[str, str, str]] = []
        # Who cannot write is asked for one owner after the other.
        with suppress(StoreError), self._database.transaction() as connection:
            for owner in owners:
                pins = _pinned(connection, owner)
                launch = {name: pins.pop(name) for name in [LAUNCH] if name in pins}
                if pins or launch:
                    rows.append((owner, _approved(pins), _approved(launch)))
            connection.executemany(_SUM_UP, rows)
        return rows

    def close(self) -> None:
        """See `Records.close`."""
        self._database.close()


def _pinned(connection: Connection, owner: str) -> dict[str, tuple[str, str]]:
    """Give what was approved and what was seen, by name."""
    found = connection.execute(_PINS, (owner,))
    return {name: (approved, seen) for name, approved, seen in found}


def _approved(pins: Mapping[str, tuple[str, str]]) -> str:
    """Give what was seen of an owner, if all of it is approved; empty if not."""
    whole = pins and all(approved == seen for approved, seen in pins.values())
    return seen_of({name: seen for name, (_, seen) in pins.items()}) if whole else ""


def _written(listing: Listing) -> str:
    """Write what a start reads, and behind it, in lines of their own, what it may not have to."""
    tools = json.dumps([_tool(tool) for tool in listing.tools])
    digests = json.dumps(dict(listing.digests))
    told = {
        "count": len(listing.tools),
        "digest": _digest(tools.encode()),
        "sum": crc32(f"{digests}\n{tools}".encode()),
        "pins": len(listing.digests),
        "seen": seen_of(listing.digests),
        "things": [
            {**_tool(thing), "kind": thing.kind, "details": thing.details}
            for thing in listing.things
        ],
        "instructions": listing.instructions,
        "notes": [[note.code, note.detail] for note in listing.diagnostics],
        "suspicions": {name: list(why) for name, why in listing.suspicions.items()},
    }
    return "\n".join((json.dumps(told), digests, tools))


def _tool(tool: ToolDefinition) -> JsonObject:
    hints = tool.hints
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input_schema,
        "output": tool.output_schema,
        "hints": [hints.read_only, hints.destructive, hints.idempotent],
    }


def _read(text: bytes) -> Listing:
    end = text.index(b"\n")
    raw, rest = json.loads(text[:end].decode()), memoryview(text)[end + 1 :]
    if "sum" not in raw:
        raw, rest = _brought_up(raw, rest)
    if crc32(rest) != raw["sum"]:
        raise ValueError("the tools are not as they were written")
    return Listing(
        tools=LateTools(raw["count"], raw["digest"], partial(_definitions, rest)),
        things=tuple(_definition(thing) for thing in raw.get("things", ())),
        instructions=raw.get("instructions", ""),
        diagnostics=tuple(
            Diagnostic(stage="catalog", code=code, detail=detail) for code, detail in raw["notes"]
        ),
        digests=LateDigests(raw["pins"], raw["seen"], partial(_digests, rest)),
        suspicions={name: tuple(why) for name, why in raw["suspicions"].items()},
    )


def _brought_up(raw: dict[str, Any], tools: memoryview) -> tuple[dict[str, Any], memoryview]:
    """Give a row of a file before version 3, where digests stood in the first line, as today's."""
    if _digest(tools) != raw["digest"]:
        raise ValueError("the tools are not as they were written")
    digests = raw["digests"]
    rest = b"\n".join((json.dumps(digests).encode(), tools))
    sums = {"sum": crc32(rest), "pins": len(digests), "seen": seen_of(digests)}
    return {**raw, **sums}, memoryview(rest)


def seen_of(digests: Mapping[str, str]) -> str:
    """Give the digest of what is seen of an owner, as its pins tell it; empty of nothing."""
    if isinstance(digests, LateDigests):
        return digests.seen
    told = "\0".join(chain.from_iterable(sorted(digests.items())))
    return _digest(told.encode("utf-8", "surrogatepass")) if digests else ""


def _digest(text: bytes | memoryview) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()


def _digests(lines: memoryview) -> Mapping[str, str]:
    found: dict[str, str] = json.loads(lines.tobytes().partition(b"\n")[0])
    return found


def _definitions(lines: memoryview) -> tuple[ToolDefinition, ...]:
    return tuple(map(_definition, json.loads(lines.tobytes().partition(b"\n")[2])))


def _definition(raw: Any) -> ToolDefinition:
    read_only, destructive, idempotent = raw["hints"]
    return ToolDefinition(
        name=raw["name"],
        title=raw["title"],
        description=raw["description"],
        input_schema=raw["input"],
        output_schema=raw["output"],
        hints=Hints(read_only=read_only, destructive=destructive, idempotent=idempotent),
        kind=raw.get("kind", "tool"),
        details=raw.get("details", {}),
    )
