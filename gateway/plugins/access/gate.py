"""Check of calls and reads by policies and limits, recorded in the audit log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from gateway.call.hooks import Call, CallHook, Change, Proceed, Unsent
from gateway.errors import LimitExceededError, NotApprovedError
from gateway.options import Options
from gateway.plugins.access.audit import Auditor, AuditRow, new_row, outcome_row
from gateway.plugins.access.limits import Limiter, charges_of
from gateway.plugins.access.policies import Policies
from gateway.plugins.access.redaction import Redactor
from gateway.plugins.access.tables import auditor_of, counters_of
from gateway.runtime.json_schema import as_object
from gateway.runtime.telemetry import Telemetry
from gateway.storage.protocol import Store
from gateway.types import Diagnostic, InvokeResult
from gateway.types.caller import acting_for

_BLOCKS = {"read": "contents", "prompt": "messages"}
"""Name of the list of content blocks in a server's answer, keyed by kind of request."""


@dataclass(eq=False, repr=False)
class AccessGate(CallHook):
    """Call hook that applies the policies, limits and audit log of one gateway."""

    auditor: Auditor
    limiter: Limiter
    name = "access"
    order = 100

    async def around(self, call: Call, proceed: Proceed) -> InvokeResult:
        """Check policies and limits, make the call and redact its result.

        Raises:
            NotApprovedError: If a policy requires an approval, which is missing.
            LimitExceededError: If a limit is exceeded.
            StoreError: If the audit log fails before the call, and `AuditOptions.on_failure` is
                ``refuse``. A failure after the call becomes a diagnostic.
        """
        row = self._row(call)
        await self._check_approval(call, row)
        notes = await self._charge(call, row)
        notes += await self.auditor.note(row)
        try:
            with acting_for(call.caller):
                result = await proceed(call)
        except BaseException as error:
            await self.auditor.note(outcome_row(row, error), first=False)
            raise
        result = self._redact_result(call, result)
        last = replace(row, decision="tool_error") if result.is_error else outcome_row(row)
        notes += await self.auditor.note(last, first=False)
        return replace(result, diagnostics=(*result.diagnostics, *notes)) if notes else result

    def shown_arguments(self, call: Call, arguments: object) -> object:
        """Return *arguments*, redacted by the policies."""
        return _redactor(call).value(arguments)

    async def note_unsent(self, decision: Unsent, call: Call, detail: str = "") -> None:
        """Write an audit row for a call that is not sent, or not yet.

        Raises:
            StoreError: If the audit log fails and `AuditOptions.on_failure` is ``refuse``.
        """
        await self.auditor.note(replace(self._row(call), decision=decision, detail=detail))

    def change(self, action: str, *entities: str, detail: str = "") -> Change:
        """Return a context manager that audits a change of *entities*."""
        return self.auditor.change(action, *entities, detail=detail)

    def close(self) -> None:
        """Write the numbers of repeated refusals to the audit log."""
        self.auditor.close()

    def _row(self, call: Call) -> AuditRow:
        rule = call.visibility.decide(call.entity, call.caller).rule
        entity, server = call.entity.id, call.entity.server
        row = new_row(call.action, call.caller, entity=entity, server=server, rule=rule)
        return replace(row, arguments=self.auditor.digest(call.arguments))

    async def _check_approval(self, call: Call, row: AuditRow) -> None:
        wants = call.visibility.decide(call.entity, call.caller).action == "ask"
        if not wants or call.action != "call":
            return
        decision: Unsent = "approved" if call.approved else "refused"
        await self.auditor.note(replace(row, decision=decision))
        if not call.approved:
            raise NotApprovedError(
                f"{call.entity.id!r} needs an approval by the policy {row.rule!r}, and was "
                "called without: do not repeat the call, say what you wanted to do"
            )

    async def _charge(self, call: Call, row: AuditRow) -> tuple[Diagnostic, ...]:
        limits = cast("Policies", call.visibility).matching_rules("limit", call.entity, call.caller)
        try:
            return await self.limiter.charge(tuple(charges_of(limits, call.entity, call.caller)))
        except LimitExceededError as error:
            await self.auditor.note(replace(row, decision="limited", rule=error.rule))
            raise

    def _redact_result(self, call: Call, result: InvokeResult) -> InvokeResult:
        redactor = _redactor(call)
        if call.action == "call":
            return redactor.result(result)
        answer = as_object(result.structured)
        return replace(result, structured=redactor.blocks(answer, _BLOCKS[call.action]))


def _redactor(call: Call) -> Redactor:
    """Return the redactor for *call* by the policies that match it."""
    rules = cast("Policies", call.visibility).matching_rules("redact", call.entity, call.caller)
    return Redactor([rule for _, rule in rules])


def access_gate(options: Options, store: Store, telemetry: Telemetry) -> AccessGate:
    """Return the access gate of a gateway.

    Raises:
        ConfigError: If the audit log is on and *store* cannot store it.
    """
    return AccessGate(auditor_of(options, store, telemetry), Limiter(counters_of(store)))
