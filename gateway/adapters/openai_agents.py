"""Adapter for the OpenAI Agents SDK: an MCP server of an agent.

    agent = Agent(name=..., tools=[...], mcp_servers=[GatewayServer(gateway)])

The SDK lists a server's tools before each turn, which adds found tools. It does not tell a server
the run's calls, so this server stores the calls that it answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from gateway.adapters.broker import (
    CallerOf,
    ToolBroker,
    functions_of,
    read_caller,
    tool_calls_message,
    tool_result_message,
)
from gateway.discovery.approval import Approve
from gateway.discovery.tool_list import ToolList
from gateway.discovery.window import Message
from gateway.discovery.wire_formats import messages_of
from gateway.errors import MissingExtraError
from gateway.gateway import Gateway
from gateway.types import ANYONE, Caller

try:
    from agents import AgentBase, RunContextWrapper
    from agents.mcp import MCPServer
    from mcp import types
except ImportError as error:
    raise MissingExtraError("gateway.adapters.openai_agents", "openai-agents") from error

_RUN = "gateway/run"


@dataclass(eq=False, slots=True, kw_only=True, weakref_slot=True)
class _Run:
    """Messages about the calls answered in one run."""

    id: str = field(default_factory=lambda: uuid4().hex)
    tools: ToolList | None = None
    messages: list[Message] = field(default_factory=list)


class GatewayServer(MCPServer):
    """MCP server that offers the meta-tools and found tools, and answers their calls.

    It needs no connection, and any number of runs may share it.

    Args:
        approve: Called before a destructive tool.
        caller: Caller of the runs, or a function that reads it from the run's context:
            ``lambda run: run.context.caller``. With a function, requests outside a run get only
            tools that need no scope.
        more: Other arguments of the SDK's servers: guardrails, approval, error functions.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        approve: Approve | None = None,
        caller: CallerOf[RunContextWrapper[Any]] = ANYONE,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._broker = ToolBroker(gateway, approve=approve)
        self._caller = caller
        self._runs: WeakKeyDictionary[RunContextWrapper[Any], _Run] = WeakKeyDictionary()
        self._run_by_id: WeakValueDictionary[str, _Run] = WeakValueDictionary()

    @property
    def name(self) -> str:
        """Name of the server in traces."""
        return "gateway"

    async def connect(self) -> None:
        """Do nothing, because the gateway connects to its servers."""

    async def cleanup(self) -> None:
        """Do nothing, because the gateway's owner closes it."""

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase | None = None
    ) -> list[types.Tool]:
        """Return the tools of the next turn. Tools of *agent* override the gateway's."""
        run = self._run(run_context)
        before = run_context.turn_input if run_context is not None else []
        tools = await self._broker.build_tools(
            [*messages_of(before), *run.messages],
            agent.tools if agent else (),
            caller=self._read_caller(run_context),
        )
        run.tools = tools
        return [
            types.Tool(
                name=function["name"],
                description=function["description"],
                input_schema=function["parameters"],
                _meta={_RUN: run.id},
            )
            for function in functions_of(tools)
        ]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> types.CallToolResult:
        """Answer a call."""
        run = self._run_by_id.get(str((meta or {}).get(_RUN, ""))) or _Run()
        tools = run.tools
        if tools is None:
            tools = await self._broker.build_tools((), (), caller=self._read_caller(None))
        call_id = f"{run.id}-{len(run.messages)}"
        parsed = arguments or {}
        answer = await self._broker.answer(tools, tool_name, parsed, call_id=call_id)
        run.messages.append(tool_calls_message([(call_id, tool_name, json.dumps(parsed))]))
        run.messages.append(tool_result_message(call_id, answer.text))
        content = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[content], is_error=answer.failed)

    async def list_prompts(self) -> types.ListPromptsResult:
        """Return no prompts."""
        return types.ListPromptsResult(prompts=[])

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> types.GetPromptResult:
        """Return an empty result."""
        del name, arguments
        return types.GetPromptResult(messages=[])

    def _read_caller(self, context: RunContextWrapper[Any] | None) -> Caller:
        if context is None:
            return self._caller if isinstance(self._caller, Caller) else ANYONE
        return read_caller(self._caller, context)

    def _run(self, context: RunContextWrapper[Any] | None) -> _Run:
        run = _Run() if context is None else self._runs.setdefault(context, _Run())
        self._run_by_id[run.id] = run
        return run
