"""langgraph-bigtool: its own retrieval function over langgraph's in-memory store."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.memory import InMemoryStore
from langgraph_bigtool.tools import get_default_retrieval_tool

from benchmarks.peering.wire import Setting, Tool, serve

_SPACE = ("tools",)


class Bigtool:
    """Name and description as one text, as its manual shows."""

    def __init__(self, setting: Setting) -> None:
        self._vectors = setting.vectors
        self._store = InMemoryStore(
            index={
                "embed": setting.vectors,
                "dims": setting.vectors.dimensions,
                "fields": ["description"],
            }
        )
        self._retrieve, _ = get_default_retrieval_tool(_SPACE, limit=10)

    async def build(self, tools: Sequence[Tool]) -> str:
        """Put one item a tool."""
        texts = {tool.name: f"{tool.name}: {tool.description}" for tool in tools}
        self._vectors(list(texts.values()))
        for name, text in texts.items():
            self._store.put(_SPACE, name, {"description": text})
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Retrieve."""
        found: list[str] = self._retrieve(text, store=self._store)
        return found[:limit]


if __name__ == "__main__":
    serve(Bigtool, package="langgraph-bigtool")
