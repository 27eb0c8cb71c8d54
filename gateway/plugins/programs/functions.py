"""Functions that one program may call: found tools, search and call.

They check arguments and approvals like direct calls, and run as `Gateway.invoke`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gateway.catalog.arguments import check_arguments
from gateway.discovery.approval import Approve, needs_approval, request_approval
from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.parameters import restore_names, to_parameters
from gateway.discovery.tool_list import ToolList
from gateway.discovery.window import description_of
from gateway.discovery.wire_formats import result_text
from gateway.errors import GatewayError, InvalidRequestError, NotApprovedError, UnknownToolError
from gateway.gateway import Gateway
from gateway.plugins.programs.sandbox import CallAnswer, PendingCall
from gateway.plugins.programs.shapes import ValueRefusedError, join, shape_of, to_json
from gateway.plugins.programs.store import WaitingCall
from gateway.plugins.programs.stubs import HEADER, declare, identifiers
from gateway.runtime.cache import Cache
from gateway.runtime.json_schema import as_object
from gateway.runtime.text import one_line
from gateway.types import Caller, Entity, InvokeResult, JsonObject

_WORD = re.compile(r"\w+")
_LINE_CHARS = 90
_MAX_SHAPES = 10_000
"""Maximum number of tools with cached result shapes."""
Shapes = Cache[JsonObject]
"""Shapes of results, for tools without an output schema, keyed by caller and digest of the tool.
The caller is part of the key, because keys of a result may be private."""


def new_shapes() -> Shapes:
    """Return an empty cache."""
    return Cache("shapes", max_items=_MAX_SHAPES)


@dataclass(kw_only=True, eq=False)
class ProgramFunctions:
    """Functions that one program may call.

    Args:
        gateway: Gateway that finds and runs the tools.
        caller: Caller for whom the program runs.
        names: Names of the meta-tools; search and call are functions too.
        entities: Tools, keyed by function name.
        any_tool: True lets the call function use all visible tools. False restricts it to
            *entities* and tools that searches of the program found.
        shapes: Cache of result shapes, read and updated.
        task: Task id for the log of calls.
        call_id: The model's id of the call that runs the program.
        can_ask: True if the host can be asked for approvals while the program runs.
        found: Names of tools that searches found before the program paused.
    """

    gateway: Gateway
    caller: Caller
    names: MetaNames
    entities: Mapping[str, Entity]
    any_tool: bool
    shapes: Shapes
    task: str
    call_id: str
    can_ask: bool
    found: set[str] = field(default_factory=set)
    decisions: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Tool id and reason of refusal (empty: approved) of decided calls, keyed by call number."""
    targets: dict[int, tuple[Entity, JsonObject]] = field(default_factory=dict)
    """Tool and arguments of the calls that wait for a decision, keyed by call number."""

    def __post_init__(self) -> None:
        """Declare the functions."""
        chat = self.gateway.options.chat
        self._turns = asyncio.Semaphore(chat.max_parallel_calls)
        self.signatures = {
            name: declare(
                name,
                to_parameters(entity.definition.input_schema),
                self._result_schema(entity),
                doc=description_of(entity),
            )
            for name, entity in self.entities.items()
        }

    @property
    def functions(self) -> frozenset[str]:
        """Names of all functions."""
        return frozenset({self.names.search, self.names.call, *self.entities})

    @property
    def stubs(self) -> str:
        """Python declarations of all functions, for the type checker."""
        meta_declarations = (
            'FoundTool = TypedDict("FoundTool", '
            '{"name": str, "server": str, "description": str, "required": list[str]})\n'
            f"async def {self.names.search}(query: str, *, limit: int = ...) -> list[FoundTool]: "
            "...\n"
            f"async def {self.names.call}(name: str, arguments: Mapping[str, Any] = ...) -> Any: "
            "...\nprevious: Any\n"
        )
        return HEADER + meta_declarations + self.declarations(self.signatures)

    def declarations(self, names: Iterable[str]) -> str:
        """Return the Python declarations of tools; unknown names are skipped."""
        return "".join(self.signatures[name].text for name in names if name in self.signatures)

    def named_in(self, code: str) -> list[str]:
        """Return the functions named in *code*."""
        words = {*_WORD.findall(code)}
        return [name for name in self.signatures if name in words]

    def _shape_key(self, entity: Entity) -> tuple[str, str, str]:
        return self.caller.tenant, self.caller.user, entity.digest

    def _result_schema(self, entity: Entity) -> JsonObject | None:
        schema = entity.definition.output_schema
        if schema is None:
            return self.shapes.peek(self._shape_key(entity))
        inner = as_object(schema.get("properties")).get("result")
        return {**schema, **inner} if _is_wrapped(schema) and isinstance(inner, dict) else schema

    async def answer(self, call: PendingCall) -> CallAnswer:
        """Answer a call of the program, as an `AnswerCall`."""
        try:
            async with self._turns:
                return await self._answer(call)
        except (InvalidRequestError, ValueRefusedError) as error:
            kind = "PermissionError" if isinstance(error, NotApprovedError) else "ValueError"
            return CallAnswer(error=str(error), error_type=kind)
        except GatewayError as error:
            return CallAnswer(error=str(error))

    async def _answer(self, call: PendingCall) -> CallAnswer:
        if call.name == self.names.search:
            return await self._search(call)
        tool, arguments = self._target(call)
        target = await self.gateway.calls.find(tool, self.caller, arguments)
        entity = target.entity
        arguments = restore_names(entity.definition.input_schema, arguments)
        if entity.hints.destructive is True and not self.gateway.options.programs.destructive:
            raise NotApprovedError(
                f"{entity.exposed_name!r} is destructive, so programs may not call "
                "it; call it directly"
            )
        confirm = self.gateway.options.chat.confirm
        is_asked = needs_approval(entity, confirm, can_ask=self.can_ask)
        is_asked |= target.visibility.decide(entity, self.caller).action == "ask"
        # A decision applies to one call only, even if a later call has the same number.
        decided = self.decisions.pop(call.id, None)
        if decided is None and is_asked:
            # The host must not be asked about invalid arguments.
            await check_arguments(entity, arguments)
            self.targets[call.id] = entity, arguments
            return CallAnswer(waits=True)
        if decided is not None and decided != (entity.id, ""):
            raise NotApprovedError(decided[1] or f"{tool!r} is not the tool that was approved")
        result = await self.gateway.invoke(
            entity.id,
            arguments,
            call_id=self.call_id,
            caller=self.caller,
            task=self.task,
            approved=decided is not None,
        )
        return self._to_answer(entity, result)

    def _target(self, call: PendingCall) -> tuple[str, JsonObject]:
        """Return the tool's id or name and the arguments."""
        if call.name == self.names.call:
            named = {
                **dict(zip(("name", "arguments"), call.positional, strict=False)),
                **call.named,
            }
            tool, arguments = named.get("name"), named.get("arguments", {})
            is_known = named.keys() <= {"name", "arguments"}
            if not (is_known and isinstance(tool, str) and isinstance(arguments, dict)):
                raise InvalidRequestError(f"{call.name} takes a name and an object of arguments")
            exposed_names = {entity.exposed_name for entity in self.entities.values()}
            if not (self.any_tool or tool in exposed_names or tool in self.found):
                raise UnknownToolError(tool, ())
            return tool, arguments
        entity, signature = self.entities[call.name], self.signatures[call.name]
        if not call.positional:
            return entity.id, call.named
        only = call.positional[0]
        if signature.is_object and isinstance(only, dict) and len(call.positional) == 1:
            return entity.id, {**only, **call.named}
        raise InvalidRequestError(f"{call.name} takes keyword arguments only")

    async def _search(self, call: PendingCall) -> CallAnswer:
        query = call.positional[0] if call.positional else call.named.get("query")
        limit = call.named.get("limit")
        is_known = call.named.keys() <= {"query", "limit"}
        if not (is_known and isinstance(query, str) and isinstance(limit, int | None)):
            raise InvalidRequestError(f"{call.name} takes a query (text) and a limit (number)")
        wait = self.gateway.options.search.models_wait
        result = await self.gateway.search(
            query, limit=limit, caller=self.caller, wait=wait, task=self.task
        )
        self.found.update(match.name for match in result.matches)
        rows = [
            {
                "name": match.name,
                "server": match.server,
                "description": one_line(match.description, limit=_LINE_CHARS),
                "required": [*match.required],
            }
            for match in result.matches
        ]
        return CallAnswer(value=rows)

    def _to_answer(self, entity: Entity, result: InvokeResult) -> CallAnswer:
        if result.is_error:
            return CallAnswer(error=result_text(result))
        value, schema = _value_of(result), entity.definition.output_schema
        if schema is not None and _is_wrapped(schema) and isinstance(value, dict):
            value = value.get("result")
        value = to_json(value)
        if schema is None:
            key, shape = self._shape_key(entity), shape_of(value)
            before = self.shapes.peek(key)
            self.shapes.put(key, shape if before is None else join(before, shape))
        return CallAnswer(value=value)

    async def ask(self, approve: Approve) -> None:
        """Ask the host about all waiting calls concurrently, and store the decisions."""
        waiting, self.targets = self.targets, {}
        async with asyncio.TaskGroup() as group:
            for id_, (entity, arguments) in waiting.items():
                call = WaitingCall(
                    id=id_, tool=entity.id, arguments=dict(arguments), digest=entity.digest
                )
                group.create_task(self._request_approval(call, approve))

    async def decide(self, calls: Iterable[WaitingCall], *, is_approved: bool) -> None:
        """Store a person's decision about *calls*. A call of a changed tool is refused."""
        for call in calls:
            await self._request_approval(call, lambda _approval: is_approved)
            if not is_approved:
                # A refusal stays valid even if the tool no longer requires an approval.
                refusal = self.decisions[call.id][1] or f"{call.tool!r} was not approved"
                self.decisions[call.id] = call.tool, refusal

    async def _request_approval(self, call: WaitingCall, approve: Approve) -> None:
        refusal = ""
        try:
            entity = await request_approval(
                self.gateway,
                approve,
                call.tool,
                call.arguments,
                call_id=self.call_id,
                caller=self.caller,
            )
        except GatewayError as error:
            refusal = str(error)
        else:
            if entity.digest != call.digest:
                refusal = f"{call.tool!r} changed after it was approved"
        self.decisions[call.id] = call.tool, refusal


def functions_of(tools: ToolList, code: str) -> dict[str, Entity]:
    """Return the tools that a program may call, keyed by function name.

    They are the tools found in its conversation or, if that is unknown, the tools named in *code*.
    """
    searchable = tools.searchable
    if searchable is None:
        return {}
    names = tools.found
    if names is None:
        words = {*_WORD.findall(code)}
        names = tuple(name for name in searchable.by_name if re.sub(r"\W", "_", name) in words)
    entities = searchable.select(names, tools.host)
    function_names = identifiers(
        (entity.exposed_name for entity in entities),
        ("previous", tools.names.search, tools.names.call, "FoundTool"),
    )
    return {function_names[entity.exposed_name]: entity for entity in entities}


def _is_wrapped(schema: JsonObject) -> bool:
    """Return whether *schema* only wraps a value, ``{"result": …}``, as MCP requires objects."""
    return [*as_object(schema.get("properties"))] == ["result"]


def _value_of(result: InvokeResult) -> object:
    """Return a tool's structured content, else its text, parsed if it is JSON."""
    if result.structured is not None:
        return result.structured
    text = result_text(result)
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
