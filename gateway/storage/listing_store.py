"""What is remembered of servers between two starts: their tool lists, and what was approved.

* A tool list is kept under the fingerprint of its server's configuration: another configuration
  is another server. A list that nobody used for a month is forgotten.
* A pin is the digest of a definition as it was first seen or approved, beside that seen last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from gateway.catalog.approvals import LAUNCH
from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_codec import (
    head_of,
    of_head,
    parsed,
    seen_of,
    tools_of,
    whole,
    written,
)
from gateway.sources.listing_store import Recorded
from gateway.storage.migrations import CATALOG
from gateway.storage.sqlite import Connection, Database, database_of
from gateway.types.listing import Listing

KEEP_S = 30 * 24 * 3600.0
_NOTED_S = 24 * 3600.0
"""The use of a list is noted once a day: a start that writes costs more than one that reads."""
_KNOWN = "SELECT 1 FROM listings WHERE fingerprint = ?"
_SWEEP = "DELETE FROM listings WHERE used_at < ?"
_PINS = "SELECT name, approved, seen FROM pins WHERE owner = ?"
# With `+` SQLite scans the rows: to find one by its key, it would read all of its text.
_MANY = (
    "SELECT fingerprint, listed_at, used_at, head, digests FROM listings LEFT JOIN heads "
    "USING (fingerprint) WHERE +fingerprint IN (SELECT value FROM json_each(?))"
)
_TEXT = "SELECT listing FROM listings WHERE fingerprint = ?"
_HEAD = "INSERT OR REPLACE INTO heads VALUES (?, ?, ?)"
_APPROVED = (
    "SELECT owner, tools, launch FROM approved WHERE owner IN (SELECT value FROM json_each(?))"
)
_SUM_UP = "INSERT OR REPLACE INTO approved VALUES (?, ?, ?)"


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
            listing = whole(row[1])
        except (ValueError, KeyError, TypeError):
            return None
        return Recorded(listing=listing, listed_at=row[0])

    def _note_use(self, fingerprints: Sequence[str]) -> None:
        if not fingerprints:
            return
        # A full disk must not cost a list that could be read.
        with suppress(StoreError), self._database.transaction() as connection:
            connection.executemany(
                "UPDATE listings SET used_at = ? WHERE fingerprint = ?",
                [(self._wall(), each) for each in fingerprints],
            )

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `Records.keep`."""
        now = self._wall()
        text = written(listing)
        with self._database.transaction() as connection:
            # Processes too short-lived to sweep must not fill the file with new configurations.
            if connection.execute(_KNOWN, (fingerprint,)).fetchone() is None:
                connection.execute(_SWEEP, (now - KEEP_S,))
            connection.execute(
                "INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?)",
                (fingerprint, server, now, now, text),
            )
            connection.execute(_HEAD, (fingerprint, *head_of(text)))

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
        # Writing what is there already would cost every start more than reading it.
        if _unseen(known, digests):
            try:
                known = self._note_seen(owner, digests)
            except StoreError:
                # A full disk must not hide what is not as it was approved.
                if not _unapproved(known, digests):
                    raise
        return _unapproved(known, digests)

    def _note_seen(self, owner: str, digests: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Note what was seen; give what was pinned just before."""
        with self._database.transaction() as connection:
            # Another process may have seen them first, and seen something else.
            known = _pinned(connection, owner)
            connection.executemany(
                "INSERT INTO pins VALUES (?, ?, ?, ?) "
                "ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen",
                [(owner, name, each, each) for name, each in _unseen(known, digests).items()],
            )
        return known

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
        """Give the tool lists of many configurations at once, those that can be read.

        Their tools are read only when looked at, with `StoreError` if they are others by then.
        """
        with self._database.reading() as connection:
            rows = connection.execute(_MANY, (json.dumps(sorted(fingerprints)),)).fetchall()
        now = self._wall()
        self._note_use([fingerprint for fingerprint, _, used, *_ in rows if now - used > _NOTED_S])
        made = self._heads_made([row[0] for row in rows if row[3] is None])
        heads = [made.get(fingerprint, kept) for fingerprint, _, _, *kept in rows]
        found: dict[str, Recorded] = {}
        told = parsed([head for head, _ in heads])
        for (fingerprint, listed_at, *_), head, (_, digests) in zip(rows, told, heads, strict=True):
            with suppress(ValueError, KeyError, TypeError):
                late = of_head(head, digests, partial(self._tools, fingerprint))
                found[fingerprint] = Recorded(listing=late, listed_at=listed_at)
        return found

    def _heads_made(self, fingerprints: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Make the heads of lists that a version of this package wrote which had no heads."""
        made: dict[str, tuple[str, str]] = {}
        if fingerprints:
            with suppress(StoreError), self._database.transaction() as connection:
                for fingerprint in fingerprints:
                    for (text,) in connection.execute(_TEXT, (fingerprint,)):
                        with suppress(ValueError, KeyError, TypeError):
                            made[fingerprint] = head_of(text)
                connection.executemany(_HEAD, [(each, *head) for each, head in made.items()])
        return made

    def _tools(self, fingerprint: str) -> str:
        with self._database.reading() as connection:
            row = connection.execute(_TEXT, (fingerprint,)).fetchone()
        if row is None:
            raise StoreError("a remembered list is not there any more")
        return tools_of(row[0])

    def pins(self, owners: Collection[str]) -> dict[tuple[str, bool], str]:
        """Give what was seen last, as `seen_of` writes it, of owners of which all is approved.

        Returns:
            By owner, and whether it is the pin of a command line.
        """
        with self._database.reading() as connection:
            rows = connection.execute(_APPROVED, (json.dumps(sorted(owners)),)).fetchall()
        rows += self._summed_up(sorted({*owners}.difference(owner for owner, _, _ in rows)))
        found = {(owner, False): tools for owner, tools, _ in rows if tools}
        return found | {(owner, True): launch for owner, _, launch in rows if launch}

    def _summed_up(self, owners: Sequence[str]) -> list[tuple[str, str, str]]:
        """Sum up the pins of *owners*, and keep that for the next start."""
        rows: list[tuple[str, str, str]] = []
        # If this cannot be written, each owner is asked for apart; see `Ahead.see`.
        if not owners:
            return rows
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
    """Give what was approved and what was seen last, by name."""
    found = connection.execute(_PINS, (owner,))
    return {name: (approved, seen) for name, approved, seen in found}


def _unseen(known: Mapping[str, tuple[str, str]], digests: Mapping[str, str]) -> dict[str, str]:
    """Give those of *digests* that were not what was seen last."""
    return {name: each for name, each in digests.items() if known.get(name, ("", ""))[1] != each}


def _unapproved(known: Mapping[str, tuple[str, str]], digests: Mapping[str, str]) -> frozenset[str]:
    """Give the names whose digest is not the approved one."""
    return frozenset(
        name for name, each in digests.items() if known.get(name, (each, ""))[0] != each
    )


def _approved(pins: Mapping[str, tuple[str, str]]) -> str:
    """Give what was seen last of an owner, if all of it is approved; else empty."""
    whole = pins and all(approved == seen for approved, seen in pins.values())
    return seen_of({name: seen for name, (_, seen) in pins.items()}) if whole else ""
