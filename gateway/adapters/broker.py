"""What every adapter asks of a gateway: the tools of a turn, and the answer to a call.

* The framework owns the conversation and runs the tools; an adapter gives its messages as chat
  messages and turns functions of ours into its own kind of tool.
* Nothing is kept between two turns: what was found is read from the messages.
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
"""A tool of ours: ``name``, ``description``, ``parameters`` and, if it is held to them, ``strict``.

The parameters are a JSON Schema of type object: of a found tool its own.
"""


C = TypeVar("C")
CallerOf: TypeAlias = Caller | Callable[[C], Caller]
"""The party that conversations are with, or a function that reads it from the framework's context.

It is asked at each turn, on the thread of the framework.
"""


def read_caller(caller: CallerOf[C], context: C) -> Caller:
    """Return the caller of one turn.

    Raises:
        ConfigError: If the host's function returns something else.
    """
    found = caller if isinstance(caller, Caller) else caller(context)
    if not isinstance(found, Caller):
        raise ConfigError(f"caller must return a Caller(…), got {type(found).__name__}")
    return found


class ToolBroker:
    """Stands between one gateway and one framework. Any thread may use it.

    Args:
        gateway: The catalog.
        approve: Asked before a tool may destroy something; see `ChatOptions.confirm`.
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
        """Return the tools that the model may see next.

        Args:
            messages: The conversation so far, as chat messages.
            host: The tools that are not ours, or their names; they win.
            recalled: Tools that were found before the messages begin, the last found last.
            caller: The party that the conversation is with, as the framework's context has it.

        Raises:
            InvalidRequestError: If there are too many of those, or `DiscoveryOptions.mode` is
                ``native``, which is no framework's business.
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
        """Return the tools that serve *query*, for frameworks that search on their own.

        Such a framework knows of no later finds: those come with their schemas in the result, and
        are called by the call tool.

        Args:
            query: What is wanted, or the name of a tool; empty finds nothing.
            host: The tools that are not ours, or their names.
            caller: The party that the conversation is with.
        """
        snapshot = await self.gateway.snapshot()
        wanted: tuple[str, ...] = ()
        if snapshot.exposed(query, snapshot.mask(caller.filters())):
            wanted = (query,)
        elif query.strip():
            wait = self.gateway.options.search.models_wait
            found = await self.gateway.search(query, caller=caller, wait=wait)
            wanted = direct_names(found, self.gateway.options.discovery)
        request = ToolListRequest(
            messages=(), host_tools=_host_tools(host), required=wanted, mode="stable", caller=caller
        )
        return await self._tool_lists.build(request)

    async def answer(
        self, tools: ToolList, name: str, arguments: JsonObject, *, call_id: str = ""
    ) -> ToolAnswer:
        """Do what a call of ours asks; it never raises for what the model did.

        Args:
            tools: The tools that the model saw, or a later list of the same host.
            name: The tool that it called.
            arguments: As an object.
            call_id: The model's id of the call.
        """
        call = ToolCall(id=call_id, name=name, arguments="", parsed=arguments)
        return await handle_call(self.gateway, tools, call, approve=self._approve)


def _host_tools(host: Iterable[object]) -> tuple[Message, ...]:
    """Write the host's tools, of which their names are all that counts."""
    return tuple({"type": "function", "function": {"name": _name(tool)}} for tool in host)


def _name(tool: object) -> str:
    if isinstance(tool, Mapping):
        return next(iter(names_of_tool(tool)), "")
    return tool if isinstance(tool, str) else str(getattr(tool, "name", ""))


def functions_of(tools: ToolList) -> list[Function]:
    """Return the tools of ours in *tools*: the meta-tools first, then the proxies."""
    inner = (tool.get("function") for tool in tools.tools)
    return [each for each in inner if isinstance(each, Mapping) and "parameters" in each]


def tool_calls_message(calls: Iterable[tuple[str, str, str]]) -> Message:
    """Write the message in which the model calls tools: id, name and arguments as JSON of each."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def tool_result_message(call_id: str, content: str) -> Message:
    """Write the message that answers a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
