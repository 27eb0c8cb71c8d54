"""From a name and arguments to a tool's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gateway.access.gate import AccessGate
from gateway.errors import GatewayError, UnknownToolError
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, OTHER
from gateway.runtime.text import visible, visible_json
from gateway.sources.registry import Registration
from gateway.types import Caller, Content, Entity, InvokeResult, JsonObject
from gateway.types.caller import filters_for
from gateway.usage.call_log import Call, Outcome, shape_of
from gateway.usage.history import UsageTracker

_EVERYTHING = filters_for(None)


async def find_callable(
    snapshot: Snapshot, tool: str, caller: Caller, gate: AccessGate, arguments: JsonObject
) -> Entity:
    """Return the entity that a call of *tool* reaches; see `resolve`.

    If *caller* may not see it, that is noted.

    Raises:
        InvalidRequestError, UnknownToolError: As `resolve`; an entity that is hidden is unknown.
        StoreError: The audit log cannot be written, and calls are refused then.
    """
    try:
        return resolve(snapshot, tool, caller.filters())
    except GatewayError:
        with suppress(GatewayError):
            hidden = resolve(snapshot, tool, _EVERYTHING)
            await gate.note("denied", snapshot.policies, hidden, caller, arguments)
        raise


async def invoke(  # noqa: PLR0913  (keyword-only, wired in one place)
    snapshot: Snapshot,
    registrations: Mapping[str, Registration],
    tool: str,
    arguments: JsonObject,
    *,
    caller: Caller,
    call_id: str,
    telemetry: Telemetry,
    usage: UsageTracker,
    gate: AccessGate,
    task: str = "",
    approved: bool = False,
) -> InvokeResult:
    """Call *tool* once, traced and noted; see `Gateway.invoke`."""
    from gateway.catalog.arguments import check_arguments  # noqa: PLC0415  (a search needs no jsonschema)

    try:
        entity = await find_callable(snapshot, tool, caller, gate, arguments)
    except GatewayError:
        # What a model wrote instead of a tool's name is content.
        with telemetry.tool_call(OTHER, call_id=call_id):
            raise
    with telemetry.tool_call(entity.exposed_name, server=entity.server, call_id=call_id) as trace:
        await check_arguments(entity, arguments)
        registration = registrations.get(entity.server)
        if registration is None:
            raise UnknownToolError(tool, ())
        admitted = await gate.admit(snapshot.policies, entity, caller, arguments, approved=approved)
        shape = shape_of(entity, arguments)
        call = partial(Call, tool=entity.id, shape=shape, task=task, tenant=caller.tenant)
        began = time.perf_counter()
        try:
            async with admitted.acting():
                result = await registration.source.call(entity.name, arguments, tool_id=entity.id)
        except GatewayError:
            await usage.note(call(outcome="failed", seconds=time.perf_counter() - began))
            raise
        result = admitted.redactor.result(_clean(result))
        if result.is_error:
            # The convention's name for a tool that answered with an error.
            trace.fail("tool_error")
        if telemetry.capture_content and trace.is_recording:
            trace.describe(_content_of(admitted.redactor.value(arguments), result))
    outcome: Outcome = "tool_error" if result.is_error else "ok"
    notes = await admitted.end(outcome)
    await usage.note(call(outcome=outcome, seconds=time.perf_counter() - began))
    return replace(result, diagnostics=notes) if notes else result


def _content_of(arguments: object, result: InvokeResult) -> Mapping[str, str]:
    return {
        CONTENT_ATTRIBUTES.arguments: json.dumps(arguments, default=str),
        CONTENT_ATTRIBUTES.result: result.text,
    }


def _clean(result: InvokeResult) -> InvokeResult:
    """Return *result* without what no reader can see; see `visible`."""
    blocks = (
        Content(type=visible(block.type), text=visible(block.text), data=visible_json(block.data))
        for block in result.content
    )
    return replace(result, content=tuple(blocks), structured=visible_json(result.structured))
