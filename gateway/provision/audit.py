"""The audit: one line of JSON for each step of a provisioning, appended to a file. No secrets.

What was asked for is content: of it stands only a hash, unless the gateway captures content. Of
variables and headers stand names, of addresses the origin.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gateway.errors import StoreError
from gateway.runtime.cache import Clock

Step = Literal[
    "asked", "local", "offers", "ranked", "planned", "consent", "install", "probe", "index",
    "configure", "done", "rollback",
]  # fmt: skip
Outcome = Literal["ok", "refused", "failed"]
Told = Callable[[Step, Outcome, str], None]
"""Told a step, how it came out and, for people, what about it."""


def silent(step: Step, outcome: Outcome, about: str) -> None:
    """Tell nobody."""
    del step, outcome, about


class Audit:
    """The lines of one provisioning.

    Args:
        path: The file; None keeps no audit, as of a dry run.
        progress: Told of each step as well.
        wall: Seconds since the epoch.
        run: Marks the lines that belong together; empty makes one up.
        hidden: Texts that are struck from every line: what the host gave, which may be secret.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        progress: Told = silent,
        wall: Clock = time.time,
        run: str = "",
        hidden: tuple[str, ...] = (),
    ) -> None:
        self._path = path
        self._progress = progress
        self._wall = wall
        self._run = run or uuid.uuid4().hex[:12]
        self._hidden = sorted((each for each in hidden if each), key=len, reverse=True)

    def tell(self, step: Step, outcome: Outcome = "ok", about: str = "", **facts: object) -> None:
        """Write one line.

        Args:
            step: Which.
            outcome: How it came out.
            about: For people; goes to the progress and not into the file.
            facts: What JSON can write, without secrets.

        Raises:
            StoreError: The file cannot be written: what cannot be audited is not done.
        """
        self._progress(step, outcome, about)
        if self._path is None:
            return
        at = datetime.fromtimestamp(self._wall(), UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "run": self._run, "step": step, "outcome": outcome, **facts}
        line = {key: self._struck(value) for key, value in line.items()}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StoreError(f"the audit {str(self._path)!r} cannot be written: {error}") from error

    def _struck(self, value: object) -> object:
        if isinstance(value, str):
            for each in self._hidden:
                value = value.replace(each, "***")
            return value
        if isinstance(value, list | tuple):
            return [self._struck(each) for each in value]
        return value


def hashed(intent: str) -> str:
    """Give what an audit may hold of *intent*: 16 hex digits of its SHA-256."""
    return hashlib.sha256(intent.encode("utf-8", "replace")).hexdigest()[:16]
