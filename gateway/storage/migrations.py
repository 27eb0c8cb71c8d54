"""The tables of each file, as the steps that make them, oldest first.

* A step is never changed once it was released: a file records how many of them it has had.
* A step keeps what users put into a file. It drops only what can be made again.
* Each statement may find its table there already, in files from before there were steps.
"""

from __future__ import annotations

from dataclasses import dataclass

Step = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of one kind of file."""

    what: str
    """The name of such a file in messages."""
    steps: tuple[Step, ...]
    """A file of version n has had the first n of these."""

    @property
    def version(self) -> int:
        """The version of a file that has had every step."""
        return len(self.steps)


VECTORS = Schema(
    what="vector store",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS vectors (
                model_id TEXT NOT NULL,
                key TEXT NOT NULL,
                dimensions INTEGER NOT NULL,
                row BLOB NOT NULL,
                PRIMARY KEY (model_id, key)
            ) WITHOUT ROWID""",
        ),
    ),
)

CATALOG = Schema(
    what="catalog store",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS listings (
                fingerprint TEXT PRIMARY KEY,
                server TEXT NOT NULL,
                listed_at REAL NOT NULL,
                used_at REAL NOT NULL,
                listing TEXT NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE IF NOT EXISTS pins (
                owner TEXT NOT NULL,
                name TEXT NOT NULL,
                approved TEXT NOT NULL,
                seen TEXT NOT NULL,
                PRIMARY KEY (owner, name)
            ) WITHOUT ROWID""",
        ),
        (
            """CREATE TABLE IF NOT EXISTS entries (
                id TEXT PRIMARY KEY,
                entry TEXT NOT NULL
            ) WITHOUT ROWID""",
        ),
        # Version 3 kept extracts of listings and pins, which triggers dropped.
        (),
        (
            "DROP TRIGGER IF EXISTS listing_made",
            "DROP TRIGGER IF EXISTS listing_changed",
            "DROP TRIGGER IF EXISTS listing_gone",
            "DROP TRIGGER IF EXISTS pin_made",
            "DROP TRIGGER IF EXISTS pin_changed",
            "DROP TRIGGER IF EXISTS pin_gone",
            "DROP TABLE IF EXISTS heads",
            "DROP TABLE IF EXISTS approved",
        ),
    ),
)

USAGE = Schema(
    what="usage ledger",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS calls (
                id INTEGER PRIMARY KEY,
                at REAL NOT NULL,
                tenant TEXT NOT NULL,
                task TEXT NOT NULL,
                tool TEXT NOT NULL,
                shape TEXT NOT NULL,
                seconds REAL NOT NULL,
                outcome TEXT NOT NULL
            )""",
            "CREATE INDEX IF NOT EXISTS calls_of_tools ON calls (tool, tenant)",
            """CREATE TABLE IF NOT EXISTS accesses (
                tool TEXT NOT NULL,
                day INTEGER NOT NULL,
                count INTEGER NOT NULL,
                last REAL NOT NULL,
                PRIMARY KEY (tool, day)
            ) WITHOUT ROWID""",
            """CREATE TABLE IF NOT EXISTS pairs (
                one TEXT NOT NULL,
                other TEXT NOT NULL,
                count INTEGER NOT NULL,
                last REAL NOT NULL,
                PRIMARY KEY (one, other)
            ) WITHOUT ROWID""",
        ),
    ),
)
