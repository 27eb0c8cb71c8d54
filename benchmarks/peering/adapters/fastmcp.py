"""fastmcp: the search transform's own ranking, without a client and a server around it."""

from __future__ import annotations

from collections.abc import Sequence

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

from benchmarks.peering.wire import Setting, serve
from benchmarks.peering.wire import Tool as Given


class FastMcp:
    """BM25 over name, description and parameters."""

    def __init__(self, setting: Setting) -> None:
        del setting
        self._transform = BM25SearchTransform(max_results=10)
        self._tools: list[Tool] = []

    async def build(self, tools: Sequence[Given]) -> str:
        """Make its tools; the first search indexes them."""
        self._tools = [
            Tool(name=tool.name, description=tool.description, parameters=tool.input_schema)
            for tool in tools
        ]
        await self.search("index", 10)
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Rank as its search tool does."""
        found = await self._transform._search(self._tools, text)  # noqa: SLF001  (no public door)
        return [tool.name for tool in found[:limit]]


if __name__ == "__main__":
    serve(FastMcp, package="fastmcp")
