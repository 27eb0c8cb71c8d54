from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from gateway.call.hooks import Call, CallHook
from gateway.errors import GatewayError, UnknownToolError
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, OTHER
from gateway.runtime.text import visible, visible_json
from gateway.sources.registry import Registry
from gateway.types import ANYONE, Caller, Content, InvokeResult, JsonObject
from gateway.types.caller import filters_for

_HOST_FILTERS = filters_for(None)


@dataclass(eq=False, repr=False, kw_only=True)
class Calls:
    """The calls of one gateway."""

    snapshot: Callable[[], Awaitable[Snapshot]]
    registry: Registry
    telemetry: Telemetry
    hooks: CallHook

    async def find(self, tool: str, caller: Caller, arguments: JsonObject) -> Call:
        """Return the `Call` of *tool* for *caller*; see `resolve` for the accepted names.

        An attempt to call a hidden tool is recorded in the audit log.

        Raises:
            InvalidRequestError, UnknownToolError: As `resolve`; a hidden tool counts as unknown.
            StoreError: If the audit log cannot be written and calls are then refused.
        """
        snapshot = await self.snapshot()
        visibility = snapshot.visibility
        call_of = partial(Call, arguments=arguments, caller=caller, visibility=visibility)
        try:
            return call_of(entity=resolve(snapshot, tool, caller.filters()))
        except GatewayError:
            with suppress(GatewayError):
                hidden = resolve(snapshot, tool, _HOST_FILTERS)
                await self.hooks.note_unsent("denied", call_of(entity=hidden))
            raise

    async def invoke(
        self,
        tool: str,
        arguments: JsonObject | None = None,
        *,
        call_id: str = "",
        caller: Caller = ANYONE,
        task: str = "",
        approved: bool = False,
    ) -> InvokeResult:
        """Call a tool, at most once.

        Args:
            tool: Canonical id, exposed name, or the name at its source if only one tool has it.
            arguments: Arguments, which are checked against the tool's schema before sending.
            call_id: The model's id of the call, for telemetry.
            caller: The user for whom the call is made. Only a digest of its tenant is recorded.
            task: Label of the call's task, such as one user request. Only a digest is recorded.
            approved: True if a person or the host approved the call, for policies that require it.

        Returns:
            The tool's result, without parts that policies hide. ``is_error`` is True if the tool
            reported an error.

        Raises:
            UnknownToolError: If the tool is unknown or disabled; the error has similar names.
            InvalidArgumentsError: If the arguments are invalid. Nothing was sent.
            NotApprovedError: If a policy requires an approval. Nothing was sent.
            LimitExceededError: If a policy allows no more calls for now. Nothing was sent.
            StoreError: If the audit log cannot be written. Nothing was sent.
            UpstreamError: If the tool's source failed or did not answer in time.
            ClosedError: If the gateway is closed.

        Example:
            >>> result = await gateway.invoke("add", {"a": 1, "b": 2})
            >>> result.text
            '3'
        """
        from gateway.catalog.arguments import check_arguments  # noqa: PLC0415  (a search needs no jsonschema)

        arguments = arguments or {}
        try:
            call = await self.find(tool, caller, arguments)
        except GatewayError:
            # `OTHER` in place of an unknown name, because the model's text counts as content.
            with self.telemetry.tool_call(OTHER, call_id=call_id):
                raise
        call = replace(call, call_id=call_id, task=task, approved=approved)
        name, server = call.entity.exposed_name, call.entity.server
        with self.telemetry.tool_call(name, server=server, call_id=call_id) as trace:
            await check_arguments(call.entity, arguments)
            if server not in self.registry.all():
                raise UnknownToolError(tool, ())
            result = await self.hooks.around(call, self._send)
            if result.is_error:
                # Error type in OpenTelemetry's conventions.
                trace.fail("tool_error")
            if self.telemetry.capture_content and trace.is_recording:
                traced = self.hooks.shown_arguments(call, arguments)
                trace.describe(_content_of(traced, result))
        return result

    async def _send(self, call: Call) -> InvokeResult:
        source = self.registry.all()[call.entity.server].source
        return _clean(await source.call(call.entity.name, call.arguments, tool_id=call.entity.id))


def _content_of(arguments: object, result: InvokeResult) -> Mapping[str, str]:
    return {
        CONTENT_ATTRIBUTES.arguments: json.dumps(arguments, default=str),
        CONTENT_ATTRIBUTES.result: result.text,
    }


def _clean(result: InvokeResult) -> InvokeResult:
    blocks = (
        Content(type=visible(block.type), text=visible(block.text), data=visible_json(block.data))
        for block in result.content
    )
    return replace(result, content=tuple(blocks), structured=visible_json(result.structured))
