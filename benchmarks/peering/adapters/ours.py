"""Ours: `Gateway.search` through the public API, without its cache of results."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.data import Benchmark, sources
from benchmarks.peering.wire import Setting, Tool, Vectors, serve
from gateway import Embedder, Gateway, LocalEmbedder, Options
from gateway.embed.protocol import Embedded, EmbedderInfo, Role
from gateway.options import CacheOptions
from gateway.types import Strategy

STRATEGIES: dict[str, Strategy] = {"auto": "auto", "embeddings": "embeddings", "graph": "graph"}


class Metered:
    """An embedder whose process CPU is told apart from that of the search."""

    def __init__(self, embedder: Embedder, meter: Vectors) -> None:
        self._embedder = embedder
        self._meter = meter

    @property
    def info(self) -> EmbedderInfo:
        """That of the embedder inside."""
        return self._embedder.info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Embed and count."""
        began = time.process_time()
        answer = await self._embedder.embed(texts, role=role)
        self._meter.cpu_s += time.process_time() - began
        return answer


class Ours:
    """The gateway of this repository; its option is the ``strategy``."""

    def __init__(self, setting: Setting) -> None:
        strategy = STRATEGIES[str(setting.options.get("strategy", "auto"))]
        embedder = Metered(LocalEmbedder(), setting.vectors) if strategy != "graph" else None
        self._gateway = Gateway(
            strategy=strategy,
            embedder=embedder,
            options=Options(cache=CacheOptions(result_items=0)),
        )
        self._names: dict[str, str] = {}

    async def build(self, tools: Sequence[Tool]) -> str:
        """List the tools and index them."""
        entities = {tool.name: f"{tool.server}/{tool.plain}" for tool in tools}
        self._names = {entity: name for name, entity in entities.items()}
        benchmark = Benchmark(
            name="",
            tools=tuple(_row(tool) for tool in tools),
            queries=(),
            edges=(),
            servers={tool.name: tool.server for tool in tools},
            entity_ids=entities,
            tool_ids=self._names,
        )
        for source in sources(benchmark):
            self._gateway.add_source(source)
        await self._gateway.report()
        return ""

    async def prepare(self, texts: Sequence[str]) -> None:
        """Search each once, so that the gateway has its vector cached."""
        for text in texts:
            await self._gateway.search(text, limit=1)

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Return the matches, without what the graph adds beside them."""
        result = await self._gateway.search(text, limit=limit)
        return [self._names[match.id] for match in result.matches]


def _row(tool: Tool) -> dict[str, object]:
    return {
        "id": tool.name,
        "name": tool.plain,
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
    }


if __name__ == "__main__":
    serve(Ours, package="")
