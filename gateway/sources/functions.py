"""Source of tools that are Python functions.

* A plain function runs in a worker thread. The time limit ends the wait, not the function.
* Exceptions become error results, without a traceback. So do ``SystemExit`` (for example from
  ``argparse``) and the cancellation of a job that the function awaited.
* The items of a generator are collected in a list. Bytes become text, or base64 if binary.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncIterable, Iterator
from urllib.parse import quote

from gateway.errors import ClosedError, ConfigError, Failed, UpstreamTimeoutError, attempt
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.naming import check_server_name
from gateway.runtime.text import visible_json
from gateway.sources.protocol import Function, ToolFunction, unknown_tool
from gateway.types import Content, Hints, InvokeResult, JsonObject, ToolDefinition
from gateway.types.access import NO_ACCESS_RULE, Access
from gateway.types.invocation import error_result
from gateway.types.listing import Listing

_BINARY_TYPE = "application/octet-stream"
_NO_HINTS = Hints()


class FunctionSource:
    """Source of the host's functions. Adding and removing functions is thread-safe."""

    def __init__(self, server: str = "local", *, options: UpstreamOptions | None = None) -> None:
        self.server = check_server_name(server)
        self.trusted = True
        self._options = options or UpstreamOptions()
        self._lock = threading.Lock()
        self._functions: dict[str, ToolFunction] = {}
        self._access: dict[str, Access] = {}
        self._closed = False

    def add(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        hints: Hints = _NO_HINTS,
        access: Access = NO_ACCESS_RULE,
        replace: bool = False,
    ) -> ToolDefinition:
        """Add *function* as a tool. See `Servers.add_tool`.

        Raises:
            ConfigError: If the function cannot be called with a JSON object, or the name is taken.
        """
        from gateway.sources.function_schema import describe_function  # noqa: PLC0415  (pydantic is heavy: only a host that offers functions pays for it)

        tool = describe_function(function, name=name, description=description, hints=hints)
        with self._lock:
            if tool.definition.name in self._functions and not replace:
                raise ConfigError(
                    f"{self.server!r} has a tool {tool.definition.name!r} already: "
                    "remove it first, or pass replace=True or another name=…"
                )
            self._functions[tool.definition.name] = tool
            self._access[tool.definition.name] = access
        return tool.definition

    def remove(self, name: str) -> bool:
        """Remove the tool *name*; return whether it existed."""
        with self._lock:
            self._access.pop(name, None)
            return self._functions.pop(name, None) is not None

    async def list_tools(self) -> Listing:
        """Return the tools in the order of their addition."""
        self._check_open()
        with self._lock:
            definitions = tuple(tool.definition for tool in self._functions.values())
            return Listing(definitions=definitions, access=dict(self._access))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """See `Source.call`."""
        self._check_open()
        with self._lock:
            entry = self._functions.get(tool)
        if entry is None:
            return unknown_tool(tool_id, tool)
        try:
            bound = entry.bind(arguments)
        except ValueError as error:
            return error_result(tool_id, f"invalid arguments: {error}")
        limit_s = self._options.call_timeout_s
        limit = asyncio.timeout(limit_s)

        async def run_in_time() -> InvokeResult:
            async with limit:
                return _to_result(tool_id, await _run_function(entry.function, bound))

        answer = await attempt(run_in_time())
        if not isinstance(answer, Failed):
            return answer
        if limit.expired():
            raise UpstreamTimeoutError(
                self.server,
                f"function {tool!r} did not answer within {limit_s} s; "
                "raise UpstreamOptions.call_timeout_s if it may take longer",
            ) from answer.error
        return error_result(tool_id, f"{type(answer.error).__name__}: {answer.error}")

    async def close(self) -> None:
        """Refuse further calls. Running functions may finish."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"source {self.server!r} is closed; make a new one")


async def _run_function(function: Function, arguments: dict[str, object]) -> object:
    if any(inspect.iscoroutinefunction(part) for part in (function, type(function).__call__)):
        answer = function(**arguments)
    else:
        answer = await in_thread(function, **arguments)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, AsyncIterable):
        return [item async for item in answer]
    # In a thread, because a generator runs code of the function, which may block.
    return await in_thread(list, answer) if isinstance(answer, Iterator) else answer


def _to_result(tool_id: str, answer: object) -> InvokeResult:
    from gateway.sources.function_schema import read_bytes, to_json  # noqa: PLC0415  (pydantic is heavy: only a host that offers functions pays for it)

    if isinstance(answer, bytes | bytearray | memoryview):
        answer, is_text = read_bytes(answer)
        if not is_text:
            resource = {
                "uri": f"result:/{quote(tool_id)}",
                "mimeType": _BINARY_TYPE,
                "blob": answer,
            }
            block = {"type": "resource", "resource": resource}
            return InvokeResult(tool_id=tool_id, content=(Content(type="resource", data=block),))
    if isinstance(answer, str):
        return InvokeResult(tool_id=tool_id, content=(_text_block(answer),))
    structured = to_json(visible_json(answer))
    text = _text_block(json.dumps(structured, ensure_ascii=False))
    return InvokeResult(tool_id=tool_id, content=(text,), structured=structured)


def _text_block(text: str) -> Content:
    return Content(type="text", text=text, data={"type": "text", "text": text})
