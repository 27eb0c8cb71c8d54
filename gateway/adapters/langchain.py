"""Adapter for LangChain: a middleware of `create_agent`.

    agent = create_agent(model, tools=[...], middleware=[..., GatewayMiddleware(gateway)])

Put it last, so that tools of other middleware count as host tools, which override the gateway's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from gateway.adapters.broker import CallerOf, Function, ToolBroker, functions_of, read_caller
from gateway.discovery.approval import Approve
from gateway.discovery.call_handler import ToolAnswer
from gateway.discovery.tool_list import ToolList
from gateway.errors import MissingExtraError
from gateway.gateway import Gateway
from gateway.types import ANYONE, Caller, InvokeResult

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
    from langchain_core.messages import convert_to_openai_messages
    from langchain_core.tools import BaseTool, ToolException
except ImportError as error:
    raise MissingExtraError("gateway.adapters.langchain", "langchain") from error

Ask = Callable[[dict[str, object]], Coroutine[Any, Any, ToolAnswer]]


class GatewayMiddleware(AgentMiddleware):
    """Middleware that offers the meta-tools and found tools, and answers their calls.

    It supports `invoke` and `ainvoke`, streamed or not. Any number of agents may share it.

    Args:
        approve: Called before a destructive tool.
        caller: Caller of the conversations, or a function that reads it from the runtime:
            ``lambda runtime: runtime.context.caller``.
    """

    def __init__(
        self, gateway: Gateway, *, approve: Approve | None = None, caller: CallerOf[Any] = ANYONE
    ) -> None:
        super().__init__()
        self._broker = ToolBroker(gateway, approve=approve)
        self._caller = caller

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        """Add the gateway's tools to a request."""
        caller = read_caller(self._caller, request.runtime)
        return handler(self._broker.gateway.bridge.call(lambda: self._with_tools(request, caller)))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]
    ) -> Any:
        """Add the gateway's tools to a request."""
        caller = read_caller(self._caller, request.runtime)
        return await handler(await self._with_tools(request, caller))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Any:
        """Run a call of a gateway tool; pass on other calls."""
        bridge, caller = self._broker.gateway.bridge, read_caller(self._caller, request.runtime)
        return handler(bridge.call(lambda: self._with_tool(request, caller)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Run a call of a gateway tool; pass on other calls."""
        caller = read_caller(self._caller, request.runtime)
        return await handler(await self._with_tool(request, caller))

    async def _with_tools(self, request: ModelRequest, caller: Caller) -> ModelRequest:
        messages = convert_to_openai_messages(request.messages)
        tools = await self._broker.build_tools(messages, request.tools, caller=caller)
        ours = [self._tool(function, tools) for function in functions_of(tools)]
        return request.override(tools=[*request.tools, *ours])

    async def _with_tool(self, request: ToolCallRequest, caller: Caller) -> ToolCallRequest:
        if request.tool is not None:
            return request
        call = request.tool_call
        state = request.state if isinstance(request.state, Mapping) else {}
        messages = convert_to_openai_messages(list(state.get("messages", ())))
        tools = await self._broker.build_tools(messages, request.runtime.tools, caller=caller)
        if not tools.is_ours(call["name"]):
            return request
        function = {"name": call["name"], "description": "", "parameters": {}}
        return request.override(tool=self._tool(function, tools, call["id"] or ""))

    def _tool(self, function: Function, tools: ToolList, call_id: str = "") -> GatewayTool:
        return GatewayTool(
            name=function["name"],
            description=function["description"],
            args_schema=function["parameters"],
            ask=partial(self._broker.answer, tools, function["name"], call_id=call_id),
            bridge=self._broker.gateway.bridge,
        )


class GatewayTool(BaseTool):
    """A gateway tool as a LangChain tool. The artifact of its result is the `InvokeResult`."""

    response_format: str = "content_and_artifact"
    handle_tool_error: bool = True
    ask: Ask
    bridge: Any

    def _run(self, /, **arguments: object) -> tuple[str, InvokeResult | None]:
        return _content(self.bridge.call(lambda: self.ask(arguments)))

    async def _arun(self, /, **arguments: object) -> tuple[str, InvokeResult | None]:
        return _content(await self.ask(arguments))


def _content(answer: ToolAnswer) -> tuple[str, InvokeResult | None]:
    if answer.failed:
        raise ToolException(answer.text)
    return answer.text, answer.result
