"""From a name and arguments to a tool's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from gateway.errors import GatewayError, UnknownToolError
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, OTHER
from gateway.runtime.text import visible, visible_json
from gateway.sources.registry import Registration
from gateway.types import Caller, Content, InvokeResult, JsonObject
from gateway.types.caller import acting_for
from gateway.usage.call_log import Call, Outcome, shape_of
from gateway.usage.history import UsageTracker


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
    task: str = "",
) -> InvokeResult:
    """Call *tool* once, traced and noted; see `Gateway.invoke`."""
    from gateway.catalog.arguments import check_arguments  # noqa: PLC0415  (a search needs no jsonschema)

    try:
        entity = resolve(snapshot, tool, caller.filters())
    except GatewayError:
        # What a model wrote instead of a tool's name is content.
        with telemetry.tool_call(OTHER, call_id=call_id):
            raise
    with telemetry.tool_call(entity.exposed_name, server=entity.server, call_id=call_id) as trace:
        await check_arguments(entity, arguments)
        registration = registrations.get(entity.server)
        if registration is None:
            raise UnknownToolError(tool, ())
        shape = shape_of(entity, arguments)
        call = partial(Call, tool=entity.id, shape=shape, task=task, tenant=caller.tenant)
        began = time.perf_counter()
        try:
            with acting_for(caller):
                result = await registration.source.call(entity.name, arguments, tool_id=entity.id)
        except GatewayError:
            await usage.note(call(outcome="failed", seconds=time.perf_counter() - began))
            raise
        result = _clean(result)
        if result.is_error:
            # The convention's name for a tool that answered with an error.
            trace.fail("tool_error")
        if telemetry.capture_content and trace.is_recording:
            content = {
                CONTENT_ATTRIBUTES.arguments: json.dumps(arguments, default=str),
                CONTENT_ATTRIBUTES.result: result.text,
            }
            trace.describe(content)
    outcome: Outcome = "tool_error" if result.is_error else "ok"
    await usage.note(call(outcome=outcome, seconds=time.perf_counter() - began))
    return result


def _clean(result: InvokeResult) -> InvokeResult:
    """Return *result* without what no reader can see; see `visible`."""
    blocks = (
        Content(type=visible(block.type), text=visible(block.text), data=visible_json(block.data))
        for block in result.content
    )
    return replace(result, content=tuple(blocks), structured=visible_json(result.structured))
