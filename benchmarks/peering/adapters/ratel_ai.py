"""ratel-ai: `ToolCatalog`, BM25 or hybrid over an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ratel_ai import ExecutableTool, ToolCatalog

from benchmarks.peering.wire import Setting, Tool, serve


class Ratel:
    """Its own ways of searching, by the option ``method``."""

    def __init__(self, setting: Setting) -> None:
        self._hybrid = setting.options.get("method") == "hybrid"
        embedding = {"url": f"{setting.endpoint}/embeddings", "model": "given"}
        self._catalog = (
            ToolCatalog(method="hybrid", embedding=embedding) if self._hybrid else ToolCatalog()
        )

    async def build(self, tools: Sequence[Tool]) -> str:
        """Register every tool at once."""
        await self._catalog.register(
            [
                ExecutableTool(
                    id=tool.name,
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.input_schema,
                    output_schema=tool.output_schema or {"type": "object"},
                    execute=_never,
                )
                for tool in tools
            ]
        )
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Ask the catalog."""
        if self._hybrid:
            return [hit.tool_id for hit in await self._catalog.search_async(text, limit)]
        return [hit.tool_id for hit in self._catalog.search(text, limit)]


def _never(arguments: Mapping[str, object]) -> None:
    del arguments


if __name__ == "__main__":
    serve(Ratel, package="ratel-ai")
