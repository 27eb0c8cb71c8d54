"""Functions that every adapter uses: the tools of a turn, and the answer to a call.

The framework owns the conversation and runs the tools. Nothing is stored between turns, because
found tools are read from the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.discovery.render_results import direct_names
from gateway.discovery.tool_list import ToolList, ToolListBuilder, ToolListRequest
from gateway.discovery.window import Message
from gateway.discovery.wire_formats import names_of_tool
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.types import ANYONE, Caller, JsonObject

Function = Mapping[str, Any]
"""A tool of the gateway: ``name``, ``description``, ``parameters`` (a JSON Schema of type object)
and perhaps ``strict``."""


C = TypeVar("C")
CallerOf: TypeAlias = Caller | Callable[[C], Caller]
"""Caller of the conversations, or a function that reads it from the framework's context.

The function is called at each turn, on the framework's thread.
"""


def read_caller(caller: CallerOf[C], context: C) -> Caller:
    """Return *caller*, or its result for *context* if it is a function.

    Raises:
        ConfigError: If the function does not return a `Caller`.
    """
    result = caller if isinstance(caller, Caller) else caller(context)
    if not isinstance(result, Caller):
        raise ConfigError(f"caller must return a Caller(…), got {type(result).__name__}")
    return result


class ToolBroker:
    """Connection between one gateway and one framework. Any thread may use it.

    *approve* is called before a destructive tool; see `ChatOptions.confirm`.
    """

    def __init__(self, gateway: Gateway, *, approve: Approve | None = None) -> None:
        self.gateway = gateway
        self._approve = approve
        self._tool_lists = ToolListBuilder(gateway)

    async def build_tools(
        self,
        messages: Sequence[Message],
        host: Iterable[object],
        *,
        recalled: Sequence[str] = (),
        caller: Caller = ANYONE,
    ) -> ToolList:
        """Return the tools of the model's next turn.

        *host* has the host's tools or their names, which override the gateway's. *recalled* are
        names of tools found before *messages* begin, in the order of the searches.

        Raises:
            InvalidRequestError: If there are too many host tools, or `DiscoveryOptions.mode` is
                ``native``, which frameworks do not support.
        """
        most = self.gateway.options.discovery.proxies_per_conversation
        request = ToolListRequest(
            messages=messages,
            host_tools=_host_tools(host),
            recalled=tuple(recalled)[-most:],
            caller=caller,
        )
        return await self._tool_lists.build(request)

    async def retrieve(
        self, query: str, host: Iterable[object], *, caller: Caller = ANYONE
    ) -> ToolList:
        """Return the tools that match *query*, for frameworks that search by themselves.

        The model uses the call tool for tools that it finds later.

        The query is a task, or the name of a tool. An empty query finds nothing.
        """
        snapshot = await self.gateway.snapshot()
        tool_names: tuple[str, ...] = ()
        if snapshot.exposed(query, snapshot.mask(caller.filters())):
            tool_names = (query,)
        elif query.strip():
            wait = self.gateway.options.search.models_wait
            result = await self.gateway.search(query, caller=caller, wait=wait)
            tool_names = direct_names(result, self.gateway.options.discovery)
        request = ToolListRequest(
            messages=(),
            host_tools=_host_tools(host),
            required=tool_names,
            mode="stable",
            caller=caller,
        )
        return await self._tool_lists.build(request)

    async def answer(
        self, tools: ToolList, name: str, arguments: JsonObject, *, call_id: str = ""
    ) -> ToolAnswer:
        """Answer a call of one of the gateway's tools. Mistakes of the model never raise.

        *tools* are those of the model's turn, or a later list of the same host.
        """
        call = ToolCall(id=call_id, name=name, arguments="", parsed=arguments)
        return await handle_call(self.gateway, tools, call, approve=self._approve)


def _host_tools(host: Iterable[object]) -> tuple[Message, ...]:
    """Return the host's tools in the chat format, only with names."""
    return tuple({"type": "function", "function": {"name": _name(tool)}} for tool in host)


def _name(tool: object) -> str:
    if isinstance(tool, Mapping):
        return next(iter(names_of_tool(tool)), "")
    return tool if isinstance(tool, str) else str(getattr(tool, "name", ""))


def functions_of(tools: ToolList) -> list[Function]:
    """Return the gateway's functions: meta-tools first, then proxies."""
    inner = (tool.get("function") for tool in tools.tools)
    return [
        function for function in inner if isinstance(function, Mapping) and "parameters" in function
    ]


def tool_calls_message(calls: Iterable[tuple[str, str, str]]) -> Message:
    """Return the message in which the model makes *calls*: (id, name, arguments as JSON)."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def tool_result_message(call_id: str, content: str) -> Message:
    """Return the message that answers a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
