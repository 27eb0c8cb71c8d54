"""The audit log: what was decided and changed, by whom, before it happens and when it has ended.

* A row of ``allowed`` is kept before a call is sent; how the call ended is a row of its own. So a
  process that is killed leaves no call without a row.
* A refusal that is repeated within a minute leaves one row more, with a count: a client cannot
  fill the log with them. The answer of a host that was asked has a row each time.
* Arguments are kept as a keyed digest alone: equal ones can be told, and none can be read.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import platform
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from gateway.errors import Failed, StoreError, attempt_call
from gateway.options import AuditOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Clock
from gateway.runtime.telemetry import Telemetry
from gateway.types import Caller, Diagnostic, JsonObject
from gateway.types.caller import ACTOR, TOKEN

AuditDecision = Literal[
    "allowed", "denied", "asked", "approved", "refused", "limited", "ok", "tool_error", "failed"
]
DAY_S = 24 * 3600.0
_REFUSALS = frozenset({"denied", "limited", "refused"})
_MINUTE_S = 60.0
_PAGE = 1_000
_DIGEST_CHARS = 32
_MAX_DETAIL = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One row."""

    at: float = 0.0
    """Seconds since the epoch."""
    replica: str = ""
    """The process: its machine, its number there and a random part."""
    action: str
    """``call``, ``read``, ``prompt``, or what was changed, as ``catalog.put``."""
    decision: AuditDecision
    user: str = ""
    tenant: str = ""
    token: str = ""
    """The name of the access token, or its issuer."""
    entity: str = ""
    """The id of what it is about."""
    server: str = ""
    rule: str = ""
    """The policy that decided; empty if none did."""
    call: str = ""
    """The same for all rows of one call or change."""
    arguments: str = ""
    """The keyed digest of the arguments; empty without any."""
    detail: str = ""
    """What else there is to say; never an argument or a result."""


class AuditLog(Protocol):
    """Where rows are kept. None is ever changed. Every method may raise `StoreError`."""

    def append(self, row: AuditRow) -> None:
        """Keep *row*, so that a loss of power does not cost it."""

    def page(
        self, since: float, after: int, limit: int, tenant: str = ""
    ) -> Sequence[tuple[int, AuditRow]]:
        """Return rows from *since* on, each with its place, which is above *after*; in order.

        Args:
            since: Seconds since the epoch.
            after: The place of the last row before them.
            limit: At most so many.
            tenant: Only rows of this one; empty returns those of all.
        """

    def forget(self, before: float) -> int:
        """Delete the rows from before a time; return how many."""


def read_all(log: AuditLog, since: float = 0.0) -> Iterator[tuple[int, AuditRow]]:
    """Yield all rows of *log* from *since* on, each with its place."""
    after = 0
    while page := log.page(since, after, _PAGE):
        yield from page
        after = page[-1][0]


@dataclass(eq=False, repr=False)
class Auditor:
    """Writes the rows of one process.

    Args:
        log: Where they go; None keeps none.
        options: What happens if they cannot be written, and how long they are kept.
        key: Returns the key of digests.
        telemetry: Counts failures.
        wall: Seconds since the epoch.
    """

    log: AuditLog | None
    options: AuditOptions
    _: KW_ONLY
    key: Callable[[], bytes] = bytes
    telemetry: Telemetry | None = None
    wall: Clock = time.time

    def __post_init__(self) -> None:
        """Name this process."""
        self._replica = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._swept = 0.0
        self._lock = threading.Lock()
        self._minute = 0.0
        self._refusals: dict[AuditRow, int] = {}
        """Of this minute, which their time says, each with how often it was repeated."""

    @cached_property
    def _key(self) -> bytes:
        return self.key()

    def digest(self, arguments: JsonObject) -> str:
        """Return the keyed digest of *arguments*; empty without any, or where nothing is kept."""
        if not arguments or self.log is None:
            return ""
        text = json.dumps(arguments, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, "sha256").hexdigest()[:_DIGEST_CHARS]

    def close(self) -> None:
        """Keep how often refusals were repeated, if that can be kept."""
        if log := self.log:
            attempt_call(lambda: self._write_counts(log, math.inf))

    def _write_counts(self, log: AuditLog, minute: float) -> None:
        """Write how often refusals from before *minute* were repeated.

        Raises:
            StoreError: The rest is written the next time.
        """
        with self._lock:
            if self._minute == minute:
                return
            for refusal, count in tuple(self._refusals.items()):
                if count:
                    ended = min(self.wall(), refusal.at + _MINUTE_S)
                    detail = f"{count} more within a minute"
                    log.append(replace(refusal, at=ended, replica=self._replica, detail=detail))
                del self._refusals[refusal]
            self._minute = minute

    def _is_repeated(self, refusal: AuditRow) -> bool:
        """Count *refusal*; return whether it has a row of this minute."""
        with self._lock:
            count = self._refusals.get(refusal)
            self._refusals[refusal] = 0 if count is None else count + 1
        return count is not None

    def _write(self, log: AuditLog, row: AuditRow) -> None:
        now = self.wall()
        minute = now // _MINUTE_S
        refusal = replace(row, at=minute * _MINUTE_S, call="", arguments="")
        try:
            self._write_counts(log, minute)
            # One with a detail is the answer of a host that was asked.
            is_counted = row.decision in _REFUSALS and not row.detail
            if is_counted and self._is_repeated(refusal):
                return
            log.append(replace(row, at=now, replica=self._replica))
            if now - self._swept > DAY_S:
                self._swept = now
                log.forget(now - self.options.keep_days * DAY_S)
        except StoreError as error:
            self._refusals.pop(refusal, None)
            raise StoreError(f"the audit log cannot be written: {error}") from error

    def note_now(self, row: AuditRow, *, first: bool = True) -> tuple[Diagnostic, ...]:
        """Keep a row.

        Args:
            row: Without time, place and chain.
            first: Whether what it is about has not happened yet, and can be refused.

        Returns:
            A note if it could not be kept and that is allowed, or too late.

        Raises:
            StoreError: It cannot be kept, and `AuditOptions.on_failure` is ``refuse``.
        """
        if (log := self.log) is None:
            return ()
        written = attempt_call(lambda: self._write(log, row))
        if not isinstance(written, Failed):
            return ()
        if self.telemetry:
            self.telemetry.store_failed("audit", [type(written.error).__name__])
        if first and self.options.on_failure == "refuse":
            raise written.error
        return (Diagnostic(stage="store", code="audit_unavailable", detail=written.reason),)

    async def note(self, row: AuditRow, *, first: bool = True) -> tuple[Diagnostic, ...]:
        """Do what `note_now` does without blocking the caller's loop."""
        return await in_thread(self.note_now, row, first=first) if self.log is not None else ()

    @asynccontextmanager
    async def change(self, action: str, *entities: str, detail: str = "") -> AsyncIterator[None]:
        """Keep a row before the block changes *entities*, and one of how it ended.

        Raises:
            StoreError: The first one cannot be kept, and has to be.
        """
        row = _changing(action, entities, detail)
        await self.note(row)
        try:
            yield
        except BaseException as error:
            await self.note(ended(row, error), first=False)
            raise
        await self.note(ended(row), first=False)

    @contextmanager
    def changing(self, action: str, *entities: str, detail: str = "") -> Iterator[None]:
        """Do what `change` does, where nothing can be awaited."""
        row = _changing(action, entities, detail)
        self.note_now(row)
        try:
            yield
        except BaseException as error:
            self.note_now(ended(row, error), first=False)
            raise
        self.note_now(ended(row), first=False)


def new_row(action: str, caller: Caller, **more: str) -> AuditRow:
    """Return a row of what *caller* is about to do, which is allowed."""
    return AuditRow(
        action=action,
        decision="allowed",
        user=caller.user,
        tenant=caller.tenant,
        token=caller.attributes.get(TOKEN, ""),
        call=secrets.token_hex(8),
        **more,  # type: ignore[arg-type]
    )


def _changing(action: str, entities: Sequence[str], detail: str) -> AuditRow:
    named = " ".join(filter(None, (detail, ", ".join(entities) if len(entities) > 1 else "")))
    entity = entities[0] if len(entities) == 1 else ""
    return new_row(action, ACTOR.get(), entity=entity, detail=named[:_MAX_DETAIL])


def ended(row: AuditRow, error: BaseException | None = None) -> AuditRow:
    """Return the row of how the call or change of *row* ended; *error* is why it failed."""
    return replace(
        row, decision="failed" if error else "ok", detail=type(error).__name__ if error else ""
    )
