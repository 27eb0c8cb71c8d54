"""dehydrator: `ToolIndex`, BM25L."""

from __future__ import annotations

from collections.abc import Sequence

from dehydrator import ToolIndex

from benchmarks.peering.wire import Setting, Tool, serve


class Dehydrator:
    """Tools as the Messages API has them."""

    def __init__(self, setting: Setting) -> None:
        del setting
        self._index: ToolIndex | None = None

    async def build(self, tools: Sequence[Tool]) -> str:
        """Index every tool at once."""
        self._index = ToolIndex(
            [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.input_schema,
                }
                for tool in tools
            ],
            top_k=10,
        )
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Rank."""
        found: list[str] = self._index.search(text) if self._index else []
        return found[:limit]


if __name__ == "__main__":
    serve(Dehydrator, package="dehydrator")
