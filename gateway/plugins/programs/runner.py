"""`ProgramRunner`: the meta-tool that runs programs of a model over the tools of a gateway.

A call that needs approval ends the run with a snapshot. Without ``approve``, the program waits in
the store for `ProgramRunner.decide`, and any replica can resume it.
"""

from __future__ import annotations

import json
import re
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar
from uuid import uuid4

from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import MetaCall, ToolAnswer
from gateway.discovery.meta_tools import MetaTool
from gateway.discovery.tool_list import ToolList
from gateway.errors import GatewayError, InvalidRequestError, MissingExtraError
from gateway.gateway import Gateway
from gateway.plugins.programs.functions import ProgramFunctions, functions_of, new_shapes
from gateway.plugins.programs.sandbox import (
    Problem,
    Program,
    ProgramResult,
    ProgramSnapshot,
    Sandbox,
)
from gateway.plugins.programs.store import (
    MAX_ROWS,
    KeptValue,
    Row,
    WaitingCall,
    WaitingProgram,
    caller_row,
    decide,
    new_key,
    program_store,
    read_row,
    waiting_programs,
    waiting_tools,
)
from gateway.runtime.background_loop import in_thread
from gateway.runtime.json_models import StrictModel, read_value
from gateway.runtime.text import near
from gateway.types import Caller, JsonObject

R = TypeVar("R", WaitingProgram, KeptValue)

_QUOTED = re.compile(r"[`\"]([^`\"]+)[`\"]")
_MAX_PROBLEMS = 10
_LONG_FIELDS = ("printed", "functions", "waits_for", "problems", "result", "error")
"""Fields of an answer that may be long, in the order in which they are shortened."""
_MAX_ROW_CHARS = 8 * 1024 * 1024
_MAX_DECLARED_TOOLS = 8
"""Maximum number of available tools that type errors declare if the program names no tool."""


class ProgramRequest(StrictModel):
    """Arguments of the meta-tool that runs programs."""

    code: str = ""
    keep: bool = False
    """True stores the program's value for later programs instead of returning it."""
    previous: str = ""
    """Key of a value that an earlier program stored."""
    resume: str = ""
    """Key of a waiting program to continue, instead of running `code`."""


class ProgramRunner:
    """Runs programs over one gateway, concurrently and from any loop.

    Args:
        gateway: Gateway with the tools.
        sandbox: Sandbox; None is Monty, and raises `MissingExtraError` if it is not installed.
    """

    def __init__(self, gateway: Gateway, sandbox: Sandbox | None = None) -> None:
        self._gateway = gateway
        self._options = gateway.options.programs
        self._shapes = new_shapes()
        self._sandbox = sandbox
        if sandbox is None and find_spec("pydantic_monty") is None:
            raise MissingExtraError("programs", "programs")

    def sandbox(self) -> Sandbox:
        """Return the sandbox. Raise `ConfigError` if required bubblewrap does not work here."""
        if self._sandbox is None:
            from gateway.plugins.programs.monty import monty_sandbox  # noqa: PLC0415  (an optional extra)

            return monty_sandbox(self._options)
        return self._sandbox

    async def answer(self, meta_call: MetaCall) -> ToolAnswer:
        """Run or resume the program in a model's call, and return the answer for the model."""
        call, arguments = meta_call.call, meta_call.arguments
        try:
            body = await self.run(
                read_value(ProgramRequest, arguments, where=call.name),
                meta_call.tools,
                call_id=call.id,
                approve=meta_call.approve,
                task=meta_call.task,
            )
        except GatewayError as error:
            body = {"error": str(error)}
        error_text = str(body.get("error", ""))
        return ToolAnswer(
            call=call, text=self._text(body), tool=call.name, arguments=arguments, error=error_text
        )

    async def run(
        self,
        request: ProgramRequest,
        tools: ToolList,
        *,
        call_id: str = "",
        approve: Approve | None = None,
        task: str = "",
    ) -> JsonObject:
        """Run a program, or resume a waiting one. Return the answer for the model.

        Args:
            request: Program.
            tools: Tools and caller of the conversation.
            call_id: The model's id of the call.
            approve: Function that is asked about calls; None stores the program instead.
            task: Task id, as for `Gateway.invoke`; empty creates one.

        Raises:
            InvalidRequestError: If the program is too long, or its keys are unknown for the caller.
            StoreError: If stored data cannot be read.
        """
        if len(request.code) > self._options.max_code_chars:
            raise InvalidRequestError(
                f"a program has at most {self._options.max_code_chars} characters"
            )
        make = partial(self._functions, tools, call_id=call_id, can_ask=approve is not None)
        if request.resume:
            return await self._resume(request.resume, tools.caller, make, approve)
        entities = functions_of(tools, request.code)
        task = task or uuid4().hex
        functions = make(entities=entities, task=task, any_tool=tools.found is None)
        if not request.code.strip():
            return {"functions": functions.declarations(entities)}
        previous: object = None
        if request.previous:
            previous = (await self._row(request.previous, tools.caller, KeptValue)).value
        program = Program(
            code=request.code,
            functions=functions.functions,
            stubs=functions.stubs,
            inputs={"previous": previous},
        )
        result = await self.sandbox().run(program, call=functions.answer, limits=self._options)
        return await self._finish(program, functions, result, approve, keep_value=request.keep)

    def _functions(self, tools: ToolList, **of_program: Any) -> ProgramFunctions:
        return ProgramFunctions(
            gateway=self._gateway,
            caller=tools.caller,
            names=tools.names,
            shapes=self._shapes,
            **of_program,
        )

    async def _finish(
        self,
        program: Program,
        functions: ProgramFunctions,
        result: ProgramResult,
        approve: Approve | None,
        *,
        keep_value: bool,
    ) -> JsonObject:
        """Resume a program until it ends or pauses. Return the answer for the model."""
        while result.snapshot is not None:
            if approve is None:
                return await self._pause(functions, result.snapshot, keep_value=keep_value)
            await functions.ask(approve)
            result = await self.sandbox().resume(
                program, result.snapshot, call=functions.answer, limits=self._options
            )
        body: dict[str, object] = {}
        if result.error:
            body |= {"error": result.error, **_problems(program.code, functions, result.problems)}
        elif keep_value:
            caller = caller_row(functions.caller)
            body["kept"] = await self._put(KeptValue(caller=dict(caller), value=result.value))
        else:
            body["result"] = result.value
        if result.printed:
            body["printed"] = result.printed
        return {**body, "calls": result.calls}

    async def _put(self, row: Row) -> str:
        key, store = new_key(row.caller), program_store(self._gateway.store)
        text = row.model_dump_json()
        if len(text) > _MAX_ROW_CHARS:
            raise InvalidRequestError(
                "the value or program is too large to be stored; make it smaller"
            )
        await in_thread(store.put, key, text, keep_s=self._options.keep_s, most=MAX_ROWS)
        return key

    async def _row(self, key: str, caller: Caller, kind: type[R]) -> R:
        _, row = await in_thread(read_row, program_store(self._gateway.store), key) or ("", None)
        if not isinstance(row, kind) or row.caller != caller_row(caller):
            raise InvalidRequestError(f"unknown or expired key {key!r}")
        return row

    async def _pause(
        self, functions: ProgramFunctions, snapshot: ProgramSnapshot, *, keep_value: bool
    ) -> JsonObject:
        """Store a program that waits for a decision. Return the answer for the model."""
        waiting = WaitingProgram(
            caller=dict(caller_row(functions.caller)),
            functions={name: entity.id for name, entity in functions.entities.items()},
            calls=tuple(
                WaitingCall(id=id_, tool=entity.id, arguments=dict(arguments), digest=entity.digest)
                for id_, (entity, arguments) in functions.targets.items()
            ),
            snapshot=snapshot,
            task=functions.task,
            keep_value=keep_value,
            any_tool=functions.any_tool,
            found=tuple(sorted(functions.found)),
        )
        return _waiting_body(await self._put(waiting), waiting)

    async def _resume(
        self, key: str, caller: Caller, make: Any, approve: Approve | None
    ) -> JsonObject:
        row = await self._row(key, caller, WaitingProgram)
        if row.approved is None:
            return _waiting_body(key, row)
        if await in_thread(program_store(self._gateway.store).take, key) is None:
            raise InvalidRequestError(f"the program {key!r} was already resumed elsewhere")
        snapshot = await self._gateway.snapshot()
        positions = snapshot.eligibility.by_id
        functions: ProgramFunctions = make(
            entities={
                name: snapshot.entities[positions[tool]]
                for name, tool in row.functions.items()
                if tool in positions
            },
            task=row.task,
            any_tool=row.any_tool,
            found={*row.found},
        )
        await functions.decide(row.calls, is_approved=row.approved)
        program = Program(code="", functions=functions.functions)
        result = await self.sandbox().resume(
            program, row.snapshot, call=functions.answer, limits=self._options
        )
        return await self._finish(program, functions, result, approve, keep_value=row.keep_value)

    async def waiting(self) -> dict[str, WaitingProgram]:
        """Return the programs that wait for a decision, by key, oldest first."""
        return await in_thread(waiting_programs, program_store(self._gateway.store))

    async def decide(self, key: str, *, approved: bool) -> WaitingProgram:
        """Approve or refuse all calls of a waiting program, which its conversation can then resume.

        Raises:
            InvalidRequestError: If no program under *key* waits for a decision.
        """
        store = program_store(self._gateway.store)
        tools = await in_thread(waiting_tools, store, key)
        action = "program.approve" if approved else "program.refuse"
        async with self._gateway.hooks.change(action, *tools):
            return await in_thread(decide, store, key, is_approved=approved)

    def _text(self, body: JsonObject) -> str:
        """Return an answer as JSON text, with long fields shortened."""
        limit, text = self._options.output_chars, json.dumps(body, ensure_ascii=False)
        for key in _LONG_FIELDS:
            if len(text) <= limit:
                break
            if key in body:
                value = body[key]
                full_text = (
                    value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                )
                cut = f"{key} has {len(full_text)} characters; return or print less, or keep it "
                other_fields = {
                    name: item for name, item in body.items() if name not in {key, "cut"}
                }
                other_fields["cut"] = f"{cut}for the next program"
                room = limit - len(json.dumps({key: "", **other_fields}, ensure_ascii=False))
                body = {key: _shorten(full_text, room), **other_fields}
                text = json.dumps(body, ensure_ascii=False)
        return text


def _shorten(text: str, room: int) -> str:
    """Return the longest start of *text* with at most *room* characters as a JSON string."""
    text = text[: max(0, room)]
    while (size := len(json.dumps(text, ensure_ascii=False)) - 2) > max(0, room):
        text = text[: len(text) * room // size]
    return text


def program_tool(runner: ProgramRunner, name: str) -> MetaTool:
    """Return the meta-tool that runs programs with *runner*."""
    description = (
        "Run a Python program over tools that {search} has found, all in one turn. Use it "
        "for several calls that feed each other, for loops and for long results; for one call, "
        "call the tool itself. Each found tool is an async function of its name with its "
        "parameters by name, such as rows = await list_orders(customer='x'); asyncio.gather runs "
        "several at once. await {search}(query) and await {call}(name, arguments) "
        "are there too. The value of the last expression is the answer; print adds lines. Errors "
        "of tools are exceptions. No yield, with, match, files or network; of the library json, "
        "re, math, datetime, csv, decimal, base64, hashlib, dataclasses, asyncio. Types are "
        "checked before anything runs; an empty program tells the functions and their types."
    )
    properties: JsonObject = {
        "code": {"type": "string"},
        "keep": {
            "type": "boolean",
            "description": "Keep the value for a later program, and answer with its key alone.",
        },
        "previous": {
            "type": "string",
            "description": "Such a key: the program finds the value as the variable previous.",
        },
        "resume": {
            "type": "string",
            "description": "Instead of code: the key of a program that waits for an approval.",
        },
    }
    return MetaTool(
        name=name,
        description=description,
        properties=properties,
        answer=runner.answer,
        native=False,
    )


def _waiting_body(key: str, row: WaitingProgram) -> JsonObject:
    calls = [{"tool": call.tool, "arguments": call.arguments} for call in row.calls]
    note = (
        "These calls wait for an approval. Do not make them again: say that they wait. When it is "
        f"there, call this tool with resume={key!r} alone."
    )
    return {"waiting": key, "waits_for": calls, "note": note}


def _problems(
    code: str, functions: ProgramFunctions, problems: tuple[Problem, ...]
) -> dict[str, object]:
    """Return the type errors, and the declarations of the tools in *code*."""
    if not problems:
        return {}
    rows = [_problem(functions, problem) for problem in problems[:_MAX_PROBLEMS]]
    named = functions.named_in(code)
    if not named and len(functions.signatures) <= _MAX_DECLARED_TOOLS:
        named = [*functions.signatures]
    near_names = {name for row in rows for name in row.get("near", ())}
    declarations = functions.declarations(dict.fromkeys([*named, *sorted(near_names)]))
    return {"problems": rows, **({"functions": declarations} if declarations else {})}


def _problem(functions: ProgramFunctions, problem: Problem) -> dict[str, Any]:
    row: dict[str, Any] = {"line": problem.line, "problem": problem.message}
    names = _QUOTED.findall(problem.message)
    near_names: tuple[str, ...] = ()
    if names and problem.code == "unresolved-reference":
        near_names = near(names[0], functions.functions)
        row["hint"] = "only tools that a search of this conversation has found are functions"
    elif len(names) > 1 and problem.code == "unknown-argument":
        signature = functions.signatures.get(names[-1])
        near_names = near(names[0], signature.parameters) if signature else ()
    return {**row, "near": [*near_names]} if near_names else row
