"""Answers to the model's calls of gateway tools. A mistake of the model never raises an error.

* The answer to a mistaken call shows the schema or similar names.
* A tool can be called even if it is not in the model's tool list.
* Meta-tools cannot be called through `call_tool`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

from gateway.discovery.approval import Approve, request_approval
from gateway.discovery.meta_tools import (
    MetaNames,
    correct_keys,
    fold_arguments,
    meta_parameters,
    queries_of,
)
from gateway.discovery.parameters import parameter_names, restore_names, to_parameters
from gateway.discovery.render_results import next_steps_hint, next_tools, render, route_tools
from gateway.discovery.tool_list import ToolList
from gateway.discovery.wire_formats import NATIVE_SEARCH, clip, result_text
from gateway.errors import (
    CallerError,
    Failed,
    GatewayError,
    InvalidArgumentsError,
    InvalidRequestError,
    LimitExceededError,
    StoreError,
    UnknownToolError,
    attempt,
)
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot, resolve
from gateway.runtime.telemetry_names import OTHER
from gateway.runtime.text import estimate_tokens, visible
from gateway.types import Caller, Entity, InvokeResult, JsonObject, SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it."""

    id: str
    name: str
    arguments: str
    """Arguments as text, which may be invalid JSON."""
    parsed: JsonObject | None = None
    """Parsed arguments; if set, `arguments` is ignored."""
    foreign: bool = False
    """True if the host must answer the call, because it is not a function call."""

    @property
    def native(self) -> bool:
        """True if the call is a tool search of the model service itself."""
        return self.name == NATIVE_SEARCH


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The answer to one call: a text for the model, and details for the host."""

    call: ToolCall
    text: str
    """Text for the model, without invisible characters."""
    queries: tuple[str, ...] = ()
    """Queries of a search; empty for other calls."""
    search: SearchResult | None = None
    tool: str = ""
    """Name of the called tool, as the model wrote it; "" for a search."""
    arguments: JsonObject | None = None
    result: InvokeResult | None = None
    """Result of the tool; None if the call was not sent."""
    error: str = ""
    needed: JsonObject | None = None
    """Client capabilities that the tool requires and its caller lacks; None if none is lacking."""
    retry_after_s: float | None = None
    """Time in seconds until a rate limit allows the next call; None if no limit was reached."""

    def __post_init__(self) -> None:
        """Remove invisible characters and lone surrogates from the text."""
        object.__setattr__(self, "text", visible(self.text))

    @property
    def failed(self) -> bool:
        """True if the model received an error."""
        return bool(self.error) or (self.result is not None and self.result.is_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaCall:
    """A call of a meta-tool that a plugin added."""

    gateway: Gateway
    tools: ToolList
    call: ToolCall
    arguments: JsonObject
    """Parsed arguments with corrected keys. Unknown keys were refused before."""
    approve: Approve | None
    """Asks the host whether a tool may be called; None if the host cannot be asked."""
    task: str
    """Label of the task that the call belongs to; "" without a task."""


async def handle_call(
    gateway: Gateway,
    tools: ToolList,
    call: ToolCall,
    *,
    approve: Approve | None = None,
    shown: Collection[str] | None = None,
    task: str = "",
) -> ToolAnswer:
    """Execute *call*, and return the answer for the model.

    Args:
        gateway: The gateway.
        tools: Tool list of the request, including the caller. In mode ``stable``, search results
            contain schemas.
        call: The call.
        approve: Asked before a possibly destructive call; see `ChatOptions.confirm`.
        shown: Names of tools that search results do not describe again; None means all proxies.
        task: Label of the call's task, for the log of calls.
    """
    names = tools.names
    is_search = call.native or (call.name and call.name == names.search)
    answer_meta: Callable[[JsonObject], Awaitable[ToolAnswer]] | None = None
    if is_search:
        answer_meta = partial(_search, gateway, tools, call, shown=shown, task=task)
    elif call.name in names.added:
        answer_meta = partial(_answer_added, gateway, tools, call, approve=approve, task=task)
    elif call.name in names and call.name != names.call:
        answer_meta = partial(_advise, gateway, tools, call)
    if not (call.native or (call.name and call.name in names)):
        return await _handle(gateway, tools, call, approve=approve, task=task, own=answer_meta)
    kind = "datastore" if is_search else "extension"
    with gateway.telemetry.tool_call(call.name, kind=kind, call_id=call.id) as trace:
        answer = await _handle(gateway, tools, call, approve=approve, task=task, own=answer_meta)
        if answer.failed:
            trace.fail("tool_error")
    return answer


async def _handle(
    gateway: Gateway,
    tools: ToolList,
    call: ToolCall,
    *,
    approve: Approve | None,
    task: str,
    own: Callable[[JsonObject], Awaitable[ToolAnswer]] | None,
) -> ToolAnswer:
    names, caller, tool = tools.names, tools.caller, call.name
    arguments: JsonObject | None = None
    try:
        parsed_arguments, note = await _read_arguments(gateway, tools, call)
        if own is not None:
            answer = await own(parsed_arguments)
            return _with_note(answer, note) if note and answer.search is not None else answer
        tool, arguments = _target(names, call, parsed_arguments)
        arguments = await _restore_names(gateway, tools, tool, arguments)
        entity = await request_approval(
            gateway, approve, tool, arguments, call_id=call.id, caller=caller
        )
    except (InvalidRequestError, StoreError) as error:
        if tool not in names:
            await _trace_refused(gateway, call.id, tool, error, caller)
        return await _failure(gateway, tools, call, tool, arguments, error)
    try:
        # Call by id, because the name may belong to another tool by now.
        result = await gateway.invoke(
            entity.id, arguments, call_id=call.id, task=task, caller=caller, approved=True
        )
    except GatewayError as error:
        return await _failure(gateway, tools, call, tool, arguments, error)
    text = clip(result_text(result), gateway.options.chat.max_result_chars)
    if not result.is_error:
        call_name = names.call if tools.mode in {"proxy", "stable"} else ""
        text += await next_steps_hint(gateway, call_name, tool, caller)
    return ToolAnswer(call=call, text=text, tool=tool, arguments=arguments, result=result)


async def _advise(
    gateway: Gateway, tools: ToolList, call: ToolCall, arguments: JsonObject
) -> ToolAnswer:
    advise = route_tools if call.name == tools.names.route else next_tools
    text = await advise(gateway, arguments, tools.caller)
    return ToolAnswer(call=call, text=text, tool=call.name, arguments=arguments)


async def _answer_added(
    gateway: Gateway,
    tools: ToolList,
    call: ToolCall,
    arguments: JsonObject,
    *,
    approve: Approve | None,
    task: str,
) -> ToolAnswer:
    meta_call = MetaCall(
        gateway=gateway, tools=tools, call=call, arguments=arguments, approve=approve, task=task
    )
    answer: str | ToolAnswer | Failed = await attempt(
        tools.names.added[call.name].answer(meta_call)
    )
    if isinstance(answer, ToolAnswer):
        return answer
    error = answer.reason if isinstance(answer, Failed) else ""
    text = json.dumps({"error": error}) if error else str(answer)
    return ToolAnswer(call=call, text=text, tool=call.name, arguments=arguments, error=error)


async def _trace_refused(
    gateway: Gateway, call_id: str, tool: str, error: GatewayError, caller: Caller
) -> None:
    """Record the span of a call that was refused before `Gateway.invoke`.

    A name is only recorded if *caller* may see the tool. Any other name is text of the model.
    """
    name, server = OTHER, ""
    with suppress(GatewayError):
        entity = resolve(await gateway.snapshot(), tool, caller.filters())
        name, server = entity.exposed_name, entity.server
    with gateway.telemetry.tool_call(name, server=server, call_id=call_id) as trace:
        trace.fail(type(error).__name__)


async def _read_arguments(
    gateway: Gateway, tools: ToolList, call: ToolCall
) -> tuple[JsonObject, str]:
    """Return the arguments of *call*, and a note for the model about corrected keys, if any."""
    parsed = call.parsed
    # Copy, so that the caller cannot change the arguments between approval and call.
    original: JsonObject = (
        _parse_object(call.arguments) if parsed is None else deepcopy(dict(parsed))
    )
    properties = meta_parameters(tools.names, call.name).get("properties")
    if properties is None:
        return original, ""
    arguments = correct_keys(properties, original)
    if call.name == tools.names.call:
        name = str(arguments.get("name", ""))
        # An unknown tool is refused when it is called.
        with suppress(GatewayError):
            entity = resolve(await gateway.snapshot(), name, tools.caller.filters())
            arguments = fold_arguments(arguments, parameter_names(entity.definition.input_schema))
    if unknown := [key for key in arguments if key not in properties]:
        raise InvalidRequestError(f"{call.name} does not take {', '.join(unknown)}: see its schema")
    read = "" if arguments == original else json.dumps(arguments, ensure_ascii=False)
    return arguments, f"read as {read}" if read else ""


def _with_note(answer: ToolAnswer, note: str) -> ToolAnswer:
    body = {**json.loads(answer.text), "corrected": note}
    return replace(answer, text=json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _parse_object(text: str) -> dict[str, object]:
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"the arguments are not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise InvalidRequestError("the arguments must be a JSON object")
    return parsed


def _target(names: MetaNames, call: ToolCall, parsed: JsonObject) -> tuple[str, JsonObject]:
    if call.name != names.call:
        return call.name, parsed
    tool, arguments = parsed.get("name"), parsed.get("arguments", {})
    if isinstance(arguments, str):
        # Some models encode the inner object as text.
        arguments = _parse_object(arguments)
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise InvalidRequestError(f"{names.call} takes a 'name' (text) and 'arguments' (object)")
    if tool in names:
        raise InvalidRequestError(f"{tool!r} is called directly, not through {names.call}")
    return tool, arguments


async def _restore_names(
    gateway: Gateway, tools: ToolList, tool: str, arguments: JsonObject
) -> JsonObject:
    # An unknown tool is refused when it is called.
    with suppress(GatewayError):
        entity = resolve(await gateway.snapshot(), tool, tools.caller.filters())
        return restore_names(entity.definition.input_schema, arguments)
    return arguments


async def _search(
    gateway: Gateway,
    tools: ToolList,
    call: ToolCall,
    arguments: JsonObject,
    *,
    shown: Collection[str] | None,
    task: str,
) -> ToolAnswer:
    queries, options = queries_of(arguments), gateway.options.search
    search = partial(gateway.search, caller=tools.caller, wait=options.models_wait, task=task)
    if len(queries) > 1:
        result = await search(queries=queries[: options.max_queries])
    else:
        result = await search(queries[0])
    snapshot = await gateway.snapshot()
    schemas = partial(
        parameters_of, snapshot, tools.caller, max_chars=gateway.options.discovery.parameters_chars
    )
    text = render(
        result,
        gateway.options.discovery,
        hidden=tools.host,
        shown=tools.proxies if shown is None else shown,
        schemas=schemas if tools.mode == "stable" else None,
    )
    gateway.telemetry.record("gateway.search.answer.tokens", estimate_tokens(text))
    return ToolAnswer(call=call, text=text, queries=queries, search=result)


def parameters_of(
    snapshot: Snapshot, caller: Caller, name: str, *, max_chars: int
) -> JsonObject | None:
    """Return the JSON Schema of the parameters of the tool with this exposed name.

    None if *caller* may not call the tool, or its definition is suspicious.
    """
    entity = _find(snapshot, caller, name)
    if entity is None or entity.suspicious:
        return None
    return to_parameters(entity.definition.input_schema, max_chars=max_chars)


def _find(snapshot: Snapshot, caller: Caller, name: str) -> Entity | None:
    position = next(iter(snapshot.exposed(name, snapshot.mask(caller.filters()))), None)
    return None if position is None else snapshot.entities[position]


async def _failure(
    gateway: Gateway,
    tools: ToolList,
    call: ToolCall,
    tool: str,
    arguments: JsonObject | None,
    error: GatewayError,
) -> ToolAnswer:
    """Return an answer that explains *error*, with the schema if the arguments were invalid.

    *arguments* is None if they were not a JSON object.
    """
    schema: JsonObject | None = None
    # Proxies may have shorter schemas.
    chars = gateway.options.chat.max_result_chars
    if arguments is None:
        schema = meta_parameters(tools.names, call.name) or parameters_of(
            await gateway.snapshot(), tools.caller, call.name, max_chars=chars
        )
    elif isinstance(error, InvalidArgumentsError):
        entity = _find(await gateway.snapshot(), tools.caller, error.tool)
        if entity is None or not entity.suspicious:
            schema = to_parameters(error.schema, max_chars=chars)
    near = error.near if isinstance(error, UnknownToolError) else ()
    body = {"error": str(error), "schema": schema, "near": near}
    text = json.dumps({key: value for key, value in body.items() if value}, ensure_ascii=False)
    return ToolAnswer(
        call=call,
        text=text,
        tool=tool,
        arguments=arguments,
        error=str(error),
        needed=error.needed if isinstance(error, CallerError) else None,
        retry_after_s=error.retry_after_s if isinstance(error, LimitExceededError) else None,
    )
