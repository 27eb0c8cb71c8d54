"""From a name and arguments to a tool's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial

from gateway.errors import GatewayError, UnknownToolError
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.telemetry import CONTENT_ATTRIBUTES, Telemetry
from gateway.sources.registry import Registration
from gateway.types import Caller, InvokeResult, JsonObject
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

    entity = resolve(snapshot, tool, caller.filters())
    check_arguments(entity, arguments)
    registration = registrations.get(entity.server)
    if registration is None:
        raise UnknownToolError(tool, ())
    labels: dict[str, str | int | float | bool] = {"gen_ai.tool.name": entity.exposed_name}
    attributes: dict[str, str | int | float | bool] = {**labels, "gen_ai.tool.type": "function"}
    if call_id:
        attributes["gen_ai.tool.call.id"] = call_id
    shape = shape_of(entity, arguments)
    call = partial(Call, tool=entity.id, shape=shape, task=task, tenant=caller.tenant)
    began = time.perf_counter()
    with (
        telemetry.span("execute_tool", entity.exposed_name, attributes) as span,
        telemetry.timed("gen_ai.execute_tool.duration", labels),
    ):
        source = registration.source
        try:
            result = await source.call(entity.name, arguments, tool_id=entity.id)
        except GatewayError:
            await usage.note(call(outcome="failed", seconds=time.perf_counter() - began))
            raise
        if result.is_error:
            # The convention's name for a tool that answered with an error.
            labels["error.type"] = "tool_error"
            telemetry.fail(span, "tool_error")
        if telemetry.capture_content and span.is_recording():
            span.set_attribute(CONTENT_ATTRIBUTES.arguments, json.dumps(arguments, default=str))
            span.set_attribute(CONTENT_ATTRIBUTES.result, result.text)
    outcome: Outcome = "tool_error" if result.is_error else "ok"
    await usage.note(call(outcome=outcome, seconds=time.perf_counter() - began))
    return result
