"""From a name and arguments to a tool's answer."""

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

_EVERYTHING = filters_for(None)


@dataclass(eq=False, repr=False, kw_only=True)
class Calls:
    """The calls of one gateway.

    Args:
        snapshot: Returns the index as it is now.
        registry: The sources of tools.
        telemetry: Traces each call.
        hooks: Are told of each call.
    """

    snapshot: Callable[[], Awaitable[Snapshot]]
    registry: Registry
    telemetry: Telemetry
    hooks: CallHook

    async def find(self, tool: str, caller: Caller, arguments: JsonObject) -> Call:
        """Return the call of *tool* for *caller*; see `resolve` for what *tool* may be.

        An attempt to call what *caller* may not see is noted.

        Raises:
            InvalidRequestError, UnknownToolError: As `resolve`; a hidden tool is unknown.
            StoreError: The audit log cannot be written, and calls are refused then.
        """
        snapshot = await self.snapshot()
        seen = snapshot.visibility
        call_of = partial(Call, arguments=arguments, caller=caller, visibility=seen)
        try:
            return call_of(entity=resolve(snapshot, tool, caller.filters()))
        except GatewayError:
            with suppress(GatewayError):
                hidden = resolve(snapshot, tool, _EVERYTHING)
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
            tool: Its canonical id, its exposed name, or its own name if only one tool has it.
            arguments: Checked against its schema before anything is sent.
            call_id: The model's id of the call, for telemetry.
            caller: The party that it is for. Its tenant is noted as a digest, if calls are noted.
            task: Any label of what the call belongs to, such as one user request; noted likewise.
            approved: Whether a person, or the host, approved it, where a policy wants that.

        Returns:
            The tool's answer, without what policies hide; ``is_error`` if the tool says that it
            failed.

        Raises:
            UnknownToolError: No enabled tool of that name; near names are listed.
            InvalidArgumentsError: The arguments do not fit; nothing was sent.
            NotApprovedError: A policy wants an approval; nothing was sent.
            LimitExceededError: A policy allows no more calls for a while; nothing was sent.
            StoreError: The audit log cannot be written; nothing was sent.
            UpstreamError: The tool's source failed, or did not answer in time.
            ClosedError: After `aclose`.
        """
        from gateway.catalog.arguments import check_arguments  # noqa: PLC0415  (a search needs no jsonschema)

        arguments = arguments or {}
        try:
            call = await self.find(tool, caller, arguments)
        except GatewayError:
            # What a model wrote instead of a tool's name is content.
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
                # The convention's name for a tool that answered with an error.
                trace.fail("tool_error")
            if self.telemetry.capture_content and trace.is_recording:
                shown = self.hooks.shown_arguments(call, arguments)
                trace.describe(_content_of(shown, result))
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
    """Return *result* without what no reader can see; see `visible`."""
    blocks = (
        Content(type=visible(block.type), text=visible(block.text), data=visible_json(block.data))
        for block in result.content
    )
    return replace(result, content=tuple(blocks), structured=visible_json(result.structured))
