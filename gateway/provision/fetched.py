"""What registries answered, kept in SQLite, so that each is asked once a day at the most."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage.migrations import ANSWERS
from gateway.storage.sqlite import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a registry answered once."""

    raw: tuple[object, ...]
    """The items of ``servers``, as they came."""
    age_s: float


class Answers:
    """Registries' answers in one file, which is made when first needed.

    Args:
        path: The file.
        wall: Seconds since the epoch.
    """

    def __init__(self, path: Path, *, wall: Clock = time.time) -> None:
        self._database = Database(path, ANSWERS)
        self._wall = wall

    def get(self, base: str) -> Answer | None:
        """Give the last answer of the registry at *base*; None if there is none to be read.

        Raises:
            StoreError: The file cannot be read.
        """
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT fetched_at, servers FROM registries WHERE base = ?", (base,)
            ).fetchone()
        if row is None:
            return None
        try:
            raw = json.loads(row[1])
        except ValueError:
            return None
        age_s = max(self._wall() - row[0], 0.0)
        return Answer(raw=tuple(raw), age_s=age_s) if isinstance(raw, list) else None

    def keep(self, base: str, raw: tuple[object, ...]) -> None:
        """Keep what the registry at *base* answers now.

        Raises:
            StoreError: The file cannot be written.
        """
        text = json.dumps(raw)
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO registries VALUES (?, ?, ?)", (base, self._wall(), text)
            )

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()
