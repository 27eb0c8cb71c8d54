"""Adapter for Pydantic AI: a capability of an agent.

    agent = Agent(model, tools=[...], capabilities=[GatewayCapability(gateway)])

The capability appends the gateway's tools to all tools of the agent, which override equal names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
from gateway.discovery.tool_list import ToolList
from gateway.discovery.window import Message
from gateway.errors import MissingExtraError
from gateway.gateway import Gateway
from gateway.types import ANYONE

try:
    from pydantic_ai import RunContext, ToolDefinition, ToolFailed
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ToolSearch
    from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
    from pydantic_ai.toolsets.abstract import ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError as error:
    raise MissingExtraError("gateway.adapters.pydantic_ai", "pydantic-ai") from error

_ANYTHING = SchemaValidator(core_schema.dict_schema())
"""Accepts all objects, because the gateway checks the arguments of a call."""


class GatewayCapability(AbstractCapability[Any]):
    """Capability that offers the meta-tools and found tools, and answers their calls.

    Args:
        approve: Called before a destructive tool.
        caller: Caller of the conversations, or a function that reads it from the run's context:
            ``lambda ctx: ctx.deps.caller``.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        approve: Approve | None = None,
        caller: CallerOf[RunContext[Any]] = ANYONE,
    ) -> None:
        self._broker = ToolBroker(gateway, approve=approve)
        self._caller = caller

    def get_ordering(self) -> CapabilityOrdering:
        """Wrap the framework's own tool search, whose tool then counts as a host tool."""
        return CapabilityOrdering(position="outermost", wraps=[ToolSearch])

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Append the gateway's tools to those of the agent."""
        return GatewayToolset(toolset, self._broker, self._caller)


@dataclass
class GatewayToolset(WrapperToolset[Any]):
    """The tools of *wrapped*, followed by the gateway's tools."""

    broker: ToolBroker
    caller: CallerOf[RunContext[Any]] = ANYONE

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools of *wrapped* and of the gateway, keyed by name."""
        theirs = await self.wrapped.get_tools(ctx)
        caller = read_caller(self.caller, ctx)
        tools = await self.broker.build_tools(list(_messages(ctx.messages)), theirs, caller=caller)
        ours = {
            function["name"]: self._tool(function, tools, ctx) for function in functions_of(tools)
        }
        return {**theirs, **ours}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Answer a call of a gateway tool, or pass the call to *wrapped*.

        Raises:
            ToolFailed: If a call of a gateway tool failed, with the text for the model.
        """
        if not isinstance(tool, _Tool):
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        call_id = ctx.tool_call_id or ""
        answer = await self.broker.answer(tool.tools, name, tool_args, call_id=call_id)
        if answer.failed:
            raise ToolFailed(answer.text)
        return answer.text

    def _tool(self, function: Function, tools: ToolList, ctx: RunContext[Any]) -> _Tool:
        definition = ToolDefinition(
            name=function["name"],
            description=function["description"],
            parameters_json_schema=function["parameters"],
            strict=function.get("strict"),
        )
        return _Tool(
            toolset=self,
            tool_def=definition,
            max_retries=ctx.max_retries,
            args_validator=_ANYTHING,
            tools=tools,
        )


@dataclass(kw_only=True)
class _Tool(ToolsetTool[Any]):
    tools: ToolList


def _messages(history: Sequence[ModelMessage]) -> Iterator[Message]:
    for message in history:
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if calls:
            yield tool_calls_message(
                (call.tool_call_id, call.tool_name, call.args_as_json_str()) for call in calls
            )
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                yield tool_result_message(part.tool_call_id, part.model_response_str())
            elif isinstance(part, UserPromptPart):
                yield {"role": "user", "content": _text(part)}


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "\n".join(content for content in part.content if isinstance(content, str))
