"""graph-tool-call: `ToolGraph.retrieve`, with vectors where they are given."""

from __future__ import annotations

from collections.abc import Sequence

from graph_tool_call import ToolGraph

from benchmarks.peering.wire import Setting, Tool, serve


class GraphToolCall:
    """Its default mode; it finds dependencies by itself."""

    def __init__(self, setting: Setting) -> None:
        self._graph = ToolGraph()
        self._vectors = setting.vectors

    async def build(self, tools: Sequence[Tool]) -> str:
        """Read the tools as MCP lists them."""
        self._graph.ingest_mcp_tools(
            [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.input_schema,
                }
                for tool in tools
            ]
        )
        if self._vectors.dimensions:
            self._graph.enable_embedding(self._vectors)
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Retrieve."""
        return [tool.name for tool in self._graph.retrieve(text, top_k=limit)]


if __name__ == "__main__":
    serve(GraphToolCall, package="graph-tool-call")
