"""pydantic-ai-slim: the local keyword ranker of its tool search."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets._tool_search import keywords_search_fn

from benchmarks.peering.wire import Setting, Tool, serve


class PydanticAi:
    """It keeps no index: every search reads every tool."""

    def __init__(self, setting: Setting) -> None:
        del setting
        self._tools: list[ToolDefinition] = []

    async def build(self, tools: Sequence[Tool]) -> str:
        """Make its definitions."""
        self._tools = [
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=tool.input_schema,
            )
            for tool in tools
        ]
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Rank."""
        found = keywords_search_fn(None, [text], self._tools)
        names: list[str] = await found if inspect.isawaitable(found) else found
        return list(names)[:limit]


if __name__ == "__main__":
    serve(PydanticAi, package="pydantic-ai-slim")
