"""Discovery for the Microsoft Agent Framework, as a chat middleware.

    agent = Agent(client=client, tools=[...], middleware=[GatewayMiddleware(gateway)])

It stands before each request to the model, inside the framework's function loop: the tools that it
adds are the loop's own. Where the service keeps the conversation, a request brings its newest
messages alone: what was found is then remembered with the run's tools, and in the session.
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
"""Where a session remembers the names of found tools."""


class GatewayMiddleware(ChatMiddleware):
    """Shows the model the meta-tools and what it has found, and answers its calls of them.

    Serves `run`, streamed or not; any number of agents may share one.

    Args:
        gateway: The catalog.
        approve: Asked before a tool may destroy something.
        caller: The party that runs are for, or a function of the chat's context that returns it:
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
        """Add our tools to a request."""
        listed = list(context.options.get("tools") or ())
        host = [tool for tool in listed if not isinstance(tool, GatewayTool)]
        found = _found_tools(context, listed)
        tools = await self._broker.build_tools(
            list(_messages(context.messages)),
            host,
            recalled=found,
            caller=read_caller(self._caller, context),
        )
        # The same list from now on: the search adds what it finds.
        found[:] = [name for name in found if name not in tools.proxies] + list(tools.proxies)
        ours = [
            GatewayTool(function, self._broker, tools, found) for function in functions_of(tools)
        ]
        if ours:
            context.options["tools"] = [*host, *ours]
        await call_next()


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


class GatewayTool(FunctionTool):
    """A tool of ours as the framework has them, with its real schema.

    Arguments are checked by the gateway, whose answers show the schema.
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
        """What was found in this run, the last found last."""
        self._function = function

    def parameters(self) -> dict[str, Any]:
        """Return the schema."""
        schema: dict[str, Any] = self._function["parameters"]
        return schema


def _found_tools(context: ChatContext, tools: Sequence[object]) -> list[str]:
    result = next((tool.found for tool in tools if isinstance(tool, GatewayTool)), None)
    if result is not None:
        return result
    if context.session is None:
        return []
    found: list[str] = context.session.state.setdefault(_STATE, [])
    return found


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
