"""The audit: one line of JSON for each step of a provisioning, appended to a file. No secrets.

The intent is content: the audit holds only its hash, unless the gateway captures content. Of
variables and headers it holds names, of addresses the origin.
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
StepOutcome = Literal["ok", "refused", "failed"]
OnStep = Callable[[Step, StepOutcome, str], None]
"""Called with a step, its outcome and a text for people."""


class Audit:
    """The lines of one provisioning.

    Args:
        path: The file; None writes none, as for a dry run.
        on_step: Called at each step as well.
        wall: Seconds since the epoch.
        run: Marks the lines that belong together; empty generates one.
        secrets: Texts that are removed from every line: values of the host that may be secret.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        on_step: OnStep | None = None,
        wall: Clock = time.time,
        run: str = "",
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._path = path
        self._on_step = on_step
        self._wall = wall
        self._run = run or uuid.uuid4().hex[:12]
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)

    def record(
        self, step: Step, outcome: StepOutcome = "ok", about: str = "", **facts: object
    ) -> None:
        """Write one line.

        Args:
            step: Which.
            outcome: Its outcome.
            about: For people; passed to *on_step* and not written.
            facts: JSON values without secrets.

        Raises:
            StoreError: The file cannot be written: what cannot be audited is not done.
        """
        if self._on_step is not None:
            self._on_step(step, outcome, about)
        if self._path is None:
            return
        at = datetime.fromtimestamp(self._wall(), UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "run": self._run, "step": step, "outcome": outcome, **facts}
        line = {key: self._redact(value) for key, value in line.items()}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise StoreError(f"the audit {str(self._path)!r} cannot be written: {error}") from error

    def _redact(self, value: object) -> object:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "***")
            return value
        if isinstance(value, list | tuple):
            return [self._redact(item) for item in value]
        return value


def hash_intent(intent: str) -> str:
    """Return 16 hex digits of the SHA-256 of *intent*, which the audit may hold."""
    return hashlib.sha256(intent.encode("utf-8", "replace")).hexdigest()[:16]
