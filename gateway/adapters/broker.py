"""What every adapter asks of a gateway: the tools of a turn, and the answer to a call.

* The framework owns the conversation and runs the tools; an adapter gives its messages as chat
  messages and turns functions of ours into its own kind of tool.
* Nothing is kept between two turns: what was found is read from the messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import AnswerOptions, ToolAnswer, ToolCall, handle_call
from gateway.discovery.render_results import direct_names
from gateway.discovery.tool_list import ToolList, ToolListBuilder, ToolListRequest
from gateway.discovery.window import Message
from gateway.gateway import Gateway
from gateway.types import Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A tool of ours, in parts that every framework has a place for."""

    name: str
    description: str
    parameters: dict[str, object]
    """A JSON Schema of type object: of a found tool its own."""
    strict: bool = False
    """Whether the model is held to the schema."""


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
        self, messages: Sequence[Message], host: Iterable[str], *, recalled: Sequence[str] = ()
    ) -> ToolList:
        """Return the tools that the model may see next.

        Args:
            messages: The conversation so far, as chat messages.
            host: Names of the tools that are not ours; they win.
            recalled: Tools that were found before the messages begin, the last found last.

        Raises:
            InvalidRequestError: If there are too many of those, or `DiscoveryOptions.mode` is
                ``native``, which is no framework's business.
        """
        most = self.gateway.options.discovery.proxies_per_conversation
        request = ToolListRequest(
            messages=messages, host_tools=_host_tools(host), recalled=tuple(recalled)[-most:]
        )
        return await self._tool_lists.build(request)

    async def retrieve(self, query: str, host: Iterable[str]) -> ToolList:
        """Return the tools that serve *query*, for frameworks that search on their own.

        Such a framework knows of no later finds: those come with their schemas in the result, and
        are called by the call tool.

        Args:
            query: What is wanted, or the name of a tool; empty finds nothing.
            host: Names of the tools that are not ours.
        """
        wanted = await self._tools_for(query)
        request = ToolListRequest(
            messages=(), host_tools=_host_tools(host), required=wanted, mode="stable"
        )
        return await self._tool_lists.build(request)

    async def _tools_for(self, query: str) -> tuple[str, ...]:
        if not query.strip():
            return ()
        snapshot = await self.gateway.snapshot()
        if snapshot.exposed(query, snapshot.mask(Filters())):
            return (query,)
        found = await self.gateway.search(query)
        return direct_names(found, self.gateway.options.discovery)

    async def answer(
        self,
        tools: ToolList,
        name: str,
        arguments: Mapping[str, object] | str,
        *,
        call_id: str = "",
    ) -> ToolAnswer:
        """Do what a call of ours asks; it never raises for what the model did.

        Args:
            tools: The tools that the model saw, or a later list of the same host.
            name: The tool that it called.
            arguments: As an object, or as the model wrote them.
            call_id: The model's id of the call.
        """
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        options = AnswerOptions(
            schemas=tools.mode == "stable",
            shown=frozenset(tools.proxies),
            hidden=tools.host,
            max_result_chars=self.gateway.options.chat.max_result_chars,
            approve=self._approve,
        )
        call = ToolCall(id=call_id, name=name, arguments=text)
        return await handle_call(self.gateway, tools.names, call, options)


def _host_tools(host: Iterable[str]) -> tuple[Message, ...]:
    """Write the host's tools, of which their names are all that counts."""
    return tuple({"type": "function", "function": {"name": name}} for name in host)


def functions_of(tools: ToolList) -> list[Function]:
    """Return the tools of ours in *tools*: the meta-tools first, then the proxies."""
    inner = (tool.get("function") for tool in tools.tools)
    definitions = [each for each in inner if isinstance(each, Mapping) and "parameters" in each]
    return [
        Function(
            name=str(each["name"]),
            description=str(each.get("description", "")),
            parameters=dict(each["parameters"]),
            strict=each.get("strict") is True,
        )
        for each in definitions
    ]


def tool_calls_message(calls: Iterable[tuple[str, str, str]]) -> Message:
    """Write the message in which the model calls tools: id, name and arguments as JSON of each."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def tool_result_message(call_id: str, content: str) -> Message:
    """Write the message that answers a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
