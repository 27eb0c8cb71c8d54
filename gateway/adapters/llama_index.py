"""Adapter for LlamaIndex: a tool retriever of an agent.

    agent = FunctionAgent(llm=llm, tools=tools, tool_retriever=GatewayRetriever(gateway, tools))

LlamaIndex retrieves by the user's message, and again by the name of each called tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.adapters.broker import CallerOf, Function, ToolBroker, functions_of, read_caller
from gateway.discovery.approval import Approve
from gateway.discovery.tool_list import ToolList
from gateway.errors import MissingExtraError
from gateway.gateway import Gateway
from gateway.runtime.text import clean
from gateway.types import ANYONE, Caller

try:
    from llama_index.core.objects import ObjectRetriever
    from llama_index.core.schema import QueryBundle
    from llama_index.core.tools import AsyncBaseTool, BaseTool, ToolMetadata, ToolOutput
except ImportError as error:
    raise MissingExtraError("gateway.adapters.llama_index", "llama-index") from error

_DESCRIPTION_CHARS = 1024


class GatewayRetriever(ObjectRetriever):
    """Retriever of the meta-tools and of the tools that match a text.

    Args:
        tools: The agent's own tools or functions, whose names override the gateway's.
        approve: Called before a destructive tool.
        caller: Caller of the conversations, or a function that returns it for a text. To serve
            several callers, let the function read a context variable.
    """

    def __init__(
        self,
        gateway: Gateway,
        tools: Sequence[Any] = (),
        *,
        approve: Approve | None = None,
        caller: CallerOf[str] = ANYONE,
    ) -> None:
        super().__init__(None, None)
        self._broker = ToolBroker(gateway, approve=approve)
        self._caller = caller
        self._host = [_name(tool) for tool in tools]

    def retrieve(self, str_or_query_bundle: str | QueryBundle) -> list[AsyncBaseTool]:
        """Return the tools that match a text, for blocking callers."""
        query = _query(str_or_query_bundle)
        caller = read_caller(self._caller, query)
        return self._broker.gateway.bridge.call(lambda: self._retrieve(query, caller))

    async def aretrieve(self, str_or_query_bundle: str | QueryBundle) -> list[AsyncBaseTool]:
        """Return the tools that match a text, or the tool with this name."""
        query = _query(str_or_query_bundle)
        return await self._retrieve(query, read_caller(self._caller, query))

    async def _retrieve(self, query: str, caller: Caller) -> list[AsyncBaseTool]:
        tools = await self._broker.retrieve(query, self._host, caller=caller)
        return [GatewayTool(function, self._broker, tools) for function in functions_of(tools)]


class GatewayTool(AsyncBaseTool):
    """A gateway tool as a LlamaIndex tool."""

    def __init__(self, function: Function, broker: ToolBroker, tools: ToolList) -> None:
        self._function = function
        self._broker = broker
        self._tools = tools
        self._metadata = _Metadata(
            name=function["name"],
            description=clean(function["description"], limit=_DESCRIPTION_CHARS),
            fn_schema=None,
        )
        self._metadata.parameters = function["parameters"]

    @property
    def metadata(self) -> ToolMetadata:
        """Name, description and schema of the tool."""
        return self._metadata

    def call(self, /, **arguments: Any) -> ToolOutput:
        """Answer a call, for blocking callers."""
        return self._broker.gateway.bridge.call(lambda: self.acall(**arguments))

    async def acall(self, /, **arguments: Any) -> ToolOutput:
        """Answer a call."""
        answer = await self._broker.answer(self._tools, self._function["name"], arguments)
        return ToolOutput(
            content=answer.text,
            tool_name=self._function["name"],
            raw_input=arguments,
            raw_output=answer.result,
            is_error=answer.failed,
        )


class _Metadata(ToolMetadata):
    parameters: dict[str, object]

    def get_parameters_dict(self) -> dict[str, object]:
        return self.parameters


def _query(text: str | QueryBundle) -> str:
    return text if isinstance(text, str) else text.query_str


def _name(tool: Any) -> str:
    return str(tool.metadata.name if isinstance(tool, BaseTool) else tool.__name__)
