"""Adapter for the Microsoft Agent Framework: a chat middleware.

    agent = Agent(client=client, tools=[...], middleware=[GatewayMiddleware(gateway)])

The middleware runs before each request to the model, inside the framework's function loop. Found
tools are stored with the run's tools and in the session, because a request may contain only the
newest messages.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from gateway.adapters.broker import (
    CallerOf,
    Function,
    ToolBroker,
    functions_of,
    read_caller,
    tool_calls_message,
    tool_result_message,
)
from gateway.discovery.approval import Approve
from gateway.discovery.render_results import direct_names_in
from gateway.discovery.tool_list import ToolList
from gateway.discovery.window import Message
from gateway.errors import MissingExtraError
from gateway.gateway import Gateway
from gateway.types import ANYONE

try:
    from agent_framework import ChatContext, ChatMiddleware, FunctionTool
    from agent_framework import Message as ChatMessage
except ImportError as error:
    raise MissingExtraError("gateway.adapters.agent_framework", "agent-framework") from error

_STATE = "gateway"
"""Key of the found tools' names in a session's state."""


class GatewayMiddleware(ChatMiddleware):
    """Middleware that offers the meta-tools and found tools, and answers their calls.

    It supports `run`, streamed or not. Any number of agents may share it.

    Args:
        approve: Called before a destructive tool.
        caller: Caller of the runs, or a function that reads it from the chat's context:
            ``lambda context: context.kwargs["caller"]``.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        approve: Approve | None = None,
        caller: CallerOf[ChatContext] = ANYONE,
    ) -> None:
        self._broker = ToolBroker(gateway, approve=approve)
        self._caller = caller

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Add the gateway's tools to a request."""
        listed = list(context.options.get("tools") or ())
        host = [tool for tool in listed if not isinstance(tool, GatewayTool)]
        found_names = _found_tools(context, listed)
        tools = await self._broker.build_tools(
            list(_messages(context.messages)),
            host,
            recalled=found_names,
            caller=read_caller(self._caller, context),
        )
        # Changed in place, because tools of the same run share the list.
        found_names[:] = [name for name in found_names if name not in tools.proxies] + list(
            tools.proxies
        )
        ours = [
            GatewayTool(function, self._broker, tools, found_names)
            for function in functions_of(tools)
        ]
        if ours:
            context.options["tools"] = [*host, *ours]
        await call_next()


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


class GatewayTool(FunctionTool):
    """A tool of the gateway as a tool of the framework.

    The gateway checks the arguments, and answers wrong ones with the schema.
    """

    def __init__(
        self, function: Function, broker: ToolBroker, tools: ToolList, found: list[str]
    ) -> None:
        async def call(**arguments: Any) -> str:
            answer = await broker.answer(tools, function["name"], arguments)
            if answer.search is not None:
                found.extend(name for name in direct_names_in(answer.text) if name not in found)
            return answer.text

        super().__init__(
            name=function["name"],
            description=function["description"],
            func=call,
            input_model=_Anything,
        )
        self.found = found
        """Names of the tools found in this run, in the order of the searches."""
        self._function = function

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the tool's arguments."""
        schema: dict[str, Any] = self._function["parameters"]
        return schema


def _found_tools(context: ChatContext, tools: Sequence[object]) -> list[str]:
    result = next((tool.found for tool in tools if isinstance(tool, GatewayTool)), None)
    if result is not None:
        return result
    if context.session is None:
        return []
    stored_names: list[str] = context.session.state.setdefault(_STATE, [])
    return stored_names


def _messages(messages: Sequence[ChatMessage]) -> Iterator[Message]:
    for message in messages:
        parts = message.contents
        calls = [part for part in parts if part.type == "function_call"]
        if calls:
            yield tool_calls_message(
                (part.call_id or "", part.name or "", _json(part)) for part in calls
            )
        for part in parts:
            if part.type == "function_result":
                yield tool_result_message(part.call_id or "", str(part.result or ""))
        if message.role == "user":
            yield {"role": "user", "content": message.text}


def _json(call: Any) -> str:
    arguments = call.arguments
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}))
