"""Audit log: decisions about calls, administrative changes and their outcomes.

* A call gets a row with ``allowed`` before it is sent, and a second row when it ends.
* A refusal that repeats within a minute is only counted, and one more row has the count. So a
  client cannot fill the log. A host's answer to an approval request always gets its own row.
* Arguments are stored only as a keyed digest.
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
    """One row of the audit log."""

    at: float = 0.0
    """Seconds since the epoch."""
    replica: str = ""
    """Process that wrote the row: host name, process id and a random part."""
    action: str
    """``call``, ``read``, ``prompt``, or a change such as ``catalog.put``."""
    decision: AuditDecision
    user: str = ""
    tenant: str = ""
    token: str = ""
    """Name of the caller's access token, or its issuer."""
    entity: str = ""
    """Id of the tool, resource or other entity."""
    server: str = ""
    rule: str = ""
    """Name of the policy that decided; empty if no policy matched."""
    call: str = ""
    """Random id, shared by all rows of one call or change."""
    arguments: str = ""
    """Keyed digest of the arguments; empty without arguments."""
    detail: str = ""
    """Further information, without arguments and results."""


class AuditLog(Protocol):
    """Append-only storage of audit rows. Every method may raise `StoreError`."""

    def append(self, row: AuditRow) -> None:
        """Store *row* so that it survives a loss of power."""

    def page(
        self, since: float, after: int, limit: int, tenant: str = ""
    ) -> Sequence[tuple[int, AuditRow]]:
        """Return pairs of row id and row, sorted by id.

        Args:
            since: Earliest time of a row, in seconds since the epoch.
            after: Maximum row id to skip.
            limit: Maximum number of rows.
            tenant: Tenant of the rows; empty is all tenants.
        """

    def forget(self, before: float) -> int:
        """Delete the rows from before a time, in seconds since the epoch. Return their number."""


def read_all(log: AuditLog, since: float = 0.0) -> Iterator[tuple[int, AuditRow]]:
    """Yield the ids and rows of *log* since a time, in seconds since the epoch."""
    after = 0
    while page := log.page(since, after, _PAGE):
        yield from page
        after = page[-1][0]


@dataclass(eq=False, repr=False)
class Auditor:
    """Writer of the audit rows of one process.

    Args:
        log: Destination of the rows; None turns the audit log off.
        options: Retention time, and the reaction to write failures.
        key: Returns the key of the argument digests.
        telemetry: Counts write failures.
        wall: Clock in seconds since the epoch.
    """

    log: AuditLog | None
    options: AuditOptions
    _: KW_ONLY
    key: Callable[[], bytes] = bytes
    telemetry: Telemetry | None = None
    wall: Clock = time.time

    def __post_init__(self) -> None:
        self._replica = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._swept = 0.0
        self._lock = threading.Lock()
        self._minute = 0.0
        self._refusals: dict[AuditRow, int] = {}
        """Number of repetitions in this minute, keyed by the refusal at the start of the minute."""

    @cached_property
    def _key(self) -> bytes:
        return self.key()

    def digest(self, arguments: JsonObject) -> str:
        """Return the keyed digest of *arguments*; empty without arguments or audit log."""
        if not arguments or self.log is None:
            return ""
        text = json.dumps(arguments, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, "sha256").hexdigest()[:_DIGEST_CHARS]

    def close(self) -> None:
        """Write the counts of repeated refusals, ignoring failures."""
        if log := self.log:
            attempt_call(lambda: self._write_counts(log, math.inf))

    def _write_counts(self, log: AuditLog, minute: float) -> None:
        """Write the counts of refusals that were repeated before *minute*.

        Raises:
            StoreError: If a row cannot be written. Later calls write the remaining counts.
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
        """Count *refusal*, and return whether this minute already has a row for it."""
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
            # A refusal with a detail is a host's answer to an approval request.
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
        """Write an audit row.

        Args:
            row: Row; its time and replica are set here.
            first: True before the action, which a write failure can then still refuse.

        Returns:
            A diagnostic if the row could not be written, else ().

        Raises:
            StoreError: If the *first* row cannot be written and `AuditOptions.on_failure` is
                ``refuse``.
        """
        if (log := self.log) is None:
            return ()
        outcome = attempt_call(lambda: self._write(log, row))
        if not isinstance(outcome, Failed):
            return ()
        if self.telemetry:
            self.telemetry.store_failed("audit", [type(outcome.error).__name__])
        if first and self.options.on_failure == "refuse":
            raise outcome.error
        return (Diagnostic(stage="store", code="audit_unavailable", detail=outcome.reason),)

    async def note(self, row: AuditRow, *, first: bool = True) -> tuple[Diagnostic, ...]:
        """Do the same as `note_now`, in a thread."""
        return await in_thread(self.note_now, row, first=first) if self.log is not None else ()

    @asynccontextmanager
    async def change(self, action: str, *entities: str, detail: str = "") -> AsyncIterator[None]:
        """Write a row before the block changes *entities*, and a row with the outcome.

        Raises:
            StoreError: As in `note_now`, before the block.
        """
        row = _change_row(action, entities, detail)
        await self.note(row)
        try:
            yield
        except BaseException as error:
            await self.note(outcome_row(row, error), first=False)
            raise
        await self.note(outcome_row(row), first=False)

    @contextmanager
    def changing(self, action: str, *entities: str, detail: str = "") -> Iterator[None]:
        """Write the rows of `change` in synchronous code."""
        row = _change_row(action, entities, detail)
        self.note_now(row)
        try:
            yield
        except BaseException as error:
            self.note_now(outcome_row(row, error), first=False)
            raise
        self.note_now(outcome_row(row), first=False)


def new_row(action: str, caller: Caller, **more: str) -> AuditRow:
    """Return an ``allowed`` row for *caller*."""
    return AuditRow(
        action=action,
        decision="allowed",
        user=caller.user,
        tenant=caller.tenant,
        token=caller.attributes.get(TOKEN, ""),
        call=secrets.token_hex(8),
        **more,  # type: ignore[arg-type]
    )


def _change_row(action: str, entities: Sequence[str], detail: str) -> AuditRow:
    details = " ".join(filter(None, (detail, ", ".join(entities) if len(entities) > 1 else "")))
    entity = entities[0] if len(entities) == 1 else ""
    return new_row(action, ACTOR.get(), entity=entity, detail=details[:_MAX_DETAIL])


def outcome_row(row: AuditRow, error: BaseException | None = None) -> AuditRow:
    """Return the second row of an action, after its first *row*. Without *error*, it succeeded."""
    return replace(
        row, decision="failed" if error else "ok", detail=type(error).__name__ if error else ""
    )
