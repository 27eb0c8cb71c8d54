"""What is remembered of servers between two starts: their tool lists, and what was approved.

* A tool list is kept under the fingerprint of its server's configuration: another configuration
  is another server. One that nobody used for a month is forgotten.
* A pin is the digest of a definition as it was first seen or approved, beside the one seen last.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

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
# One text an owner: ten thousand rows are ten thousand objects.
_MANY_PINS = (
    "SELECT owner, group_concat(name || char(0) || seen, char(0)) FROM pins "
    "WHERE owner IN (SELECT value FROM json_each(?)) AND name {} '' "
    "GROUP BY owner HAVING total(approved <> seen) = 0"
)


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
            told = (json.dumps(sorted(owners)),)
            return {
                (owner, which == "="): seen
                for which in "=>"
                for owner, seen in connection.execute(_MANY_PINS.format(which), told)
            }

    def close(self) -> None:
        """See `Records.close`."""
        self._database.close()


def _pinned(connection: Connection, owner: str) -> dict[str, tuple[str, str]]:
    """Give what was approved and what was seen, by name."""
    found = connection.execute(_PINS, (owner,))
    return {name: (approved, seen) for name, approved, seen in found}


def _written(listing: Listing) -> str:
    """Write what a start reads, and behind it, in a line of its own, what it may not have to."""
    tools = json.dumps([_tool(tool) for tool in listing.tools])
    told = {
        "count": len(listing.tools),
        "digest": _digest(tools.encode()),
        "things": [
            {**_tool(thing), "kind": thing.kind, "details": thing.details}
            for thing in listing.things
        ],
        "instructions": listing.instructions,
        "notes": [[note.code, note.detail] for note in listing.diagnostics],
        "digests": dict(listing.digests),
        "suspicions": {name: list(why) for name, why in listing.suspicions.items()},
    }
    return f"{json.dumps(told)}\n{tools}"


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
    raw, tools = json.loads(text[:end].decode()), memoryview(text)[end + 1 :]
    if _digest(tools) != raw["digest"]:
        raise ValueError("the tools are not as they were written")
    return Listing(
        tools=LateTools(raw["count"], raw["digest"], partial(_definitions, tools)),
        things=tuple(_definition(thing) for thing in raw.get("things", ())),
        instructions=raw.get("instructions", ""),
        diagnostics=tuple(
            Diagnostic(stage="catalog", code=code, detail=detail) for code, detail in raw["notes"]
        ),
        digests=raw["digests"],
        suspicions={name: tuple(why) for name, why in raw["suspicions"].items()},
    )


def seen_of(digests: Mapping[str, str]) -> str:
    """Write down what is seen of an owner, as its pins tell it: in the order of the names."""
    return "\0".join(chain.from_iterable(sorted(digests.items())))


def _digest(text: bytes | memoryview) -> str:
    return hashlib.blake2b(text, digest_size=20).hexdigest()


def _definitions(text: memoryview) -> tuple[ToolDefinition, ...]:
    return tuple(map(_definition, json.loads(text.tobytes())))


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
