"""The one gate before every call and read: policies, limits and the audit log, in this order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal

from gateway.access.audit import AuditDecision, Auditor, AuditRow, new_row
from gateway.access.limits import Limiter, charges_of
from gateway.access.policies import Policies
from gateway.access.redaction import Redactor
from gateway.errors import LimitExceededError, NotApprovedError
from gateway.types import Caller, Diagnostic, Entity, JsonObject
from gateway.types.caller import acting_for

Action = Literal["call", "read", "prompt"]


@dataclass(eq=False, kw_only=True)
class Admission:
    """One call that may be sent, and has a row that says so."""

    auditor: Auditor
    caller: Caller
    row: AuditRow
    redactor: Redactor
    diagnostics: tuple[Diagnostic, ...] = ()

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[None]:
        """Ask sources for the caller; keep that the block failed, or was given up, if it was."""
        try:
            with acting_for(self.caller):
                yield
        except BaseException as error:
            await self.end("failed", type(error).__name__)
            raise

    async def end(self, decision: AuditDecision, detail: str = "") -> tuple[Diagnostic, ...]:
        """Keep how it ended; return all that was amiss."""
        row = replace(self.row, decision=decision, detail=detail)
        return (*self.diagnostics, *await self.auditor.note(row, first=False))


@dataclass(eq=False, repr=False)
class AccessGate:
    """What stands before every call and read of one gateway."""

    auditor: Auditor
    limiter: Limiter

    async def admit(
        self,
        policies: Policies,
        entity: Entity,
        caller: Caller,
        arguments: JsonObject,
        *,
        action: Action = "call",
        approved: bool = False,
    ) -> Admission:
        """Let a call pass, or not.

        Args:
            policies: Those that hold.
            entity: What is called or read. That it may be seen was checked before.
            caller: The party that it is for.
            arguments: Kept as a digest.
            action: What is done; only calls are asked about.
            approved: Whether the host, or its user, was asked wherever that was needed.

        Raises:
            NotApprovedError: A policy wants the call approved, and it was not.
            LimitExceededError: A limit is reached.
            StoreError: The audit log cannot be written, and calls are refused then.
        """
        decision, note = policies.decide(entity, caller), self.auditor.note
        row = replace(
            new_row(action, caller, entity=entity.id, server=entity.server, rule=decision.rule),
            arguments=self.auditor.digest(arguments),
        )
        if decision.action == "ask" and action == "call":
            if not approved:
                await note(replace(row, decision="refused"))
                raise NotApprovedError(
                    f"{entity.id!r} needs an approval by the policy {decision.rule!r}, and was "
                    "called without: do not repeat the call, say what you wanted to do"
                )
            await note(replace(row, decision="approved"))
        charges = tuple(charges_of(policies.besides("limit", entity, caller), entity, caller))
        try:
            notes = await self.limiter.charge(charges)
        except LimitExceededError as error:
            await note(replace(row, decision="limited", rule=error.rule))
            raise
        notes += await note(row)
        rules = [rule for _, rule in policies.besides("redact", entity, caller)]
        return Admission(
            auditor=self.auditor,
            caller=caller,
            row=row,
            redactor=Redactor(rules),
            diagnostics=notes,
        )

    async def note(
        self,
        decision: AuditDecision,
        policies: Policies,
        entity: Entity,
        caller: Caller,
        arguments: JsonObject,
        detail: str = "",
    ) -> None:
        """Keep a decision about a call that is not sent, or not yet, with its *detail*.

        Raises:
            StoreError: As `admit`.
        """
        rule = policies.decide(entity, caller).rule
        row = new_row(
            "call", caller, entity=entity.id, server=entity.server, rule=rule, detail=detail
        )
        digest = self.auditor.digest(arguments)
        await self.auditor.note(replace(row, decision=decision, arguments=digest))
