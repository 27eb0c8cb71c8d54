"""callbus: BM25, or dense and BM25 fused where vectors are given."""

from __future__ import annotations

import json
from collections.abc import Sequence

from callbus import domain
from callbus.adapters.bm25 import BM25Scorer

from benchmarks.peering.wire import Setting, Tool, Vectors, serve


class Callbus:
    """Its scorers, as its command line puts them together."""

    def __init__(self, setting: Setting) -> None:
        self._scorer = BM25Scorer()
        if setting.vectors.dimensions:
            from callbus.adapters.dense import DenseScorer  # noqa: PLC0415  (needs numpy)
            from callbus.adapters.hybrid import HybridScorer  # noqa: PLC0415  (needs numpy)

            self._scorer = HybridScorer(DenseScorer(_Encoder(setting.vectors)), BM25Scorer())

    async def build(self, tools: Sequence[Tool]) -> str:
        """Index documents of name, description and schema, by server."""
        self._scorer.index([_tool(tool) for tool in tools])
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Rank one query."""
        query = domain.Query(id="q", text=text, qrels={})
        return list(self._scorer.rank([query], limit)[0].tool_ids)


class _Encoder:
    """The text encoder that it asks for."""

    name = "given"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def encode(self, texts: Sequence[str], kind: str = "document") -> object:
        """Return one float32 row a text."""
        import numpy as np  # noqa: PLC0415  (only with vectors)

        del kind
        return np.asarray(self._vectors(texts), dtype=np.float32)


def _tool(tool: Tool) -> domain.Tool:
    doc = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    text = json.dumps(doc, ensure_ascii=False)
    return domain.Tool(id=tool.name, doc=doc, documentation=text, category=tool.server)


if __name__ == "__main__":
    serve(Callbus, package="callbus")
