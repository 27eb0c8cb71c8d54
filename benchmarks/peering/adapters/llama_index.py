"""llama-index: `ObjectIndex` over tools, in its default vector store."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.objects import ObjectIndex
from llama_index.core.tools import FunctionTool, ToolMetadata
from pydantic import PrivateAttr

from benchmarks.peering.wire import Setting, Tool, Vectors, serve


class Handed(BaseEmbedding):  # type: ignore[misc]  # of another environment
    """The vectors that were handed over."""

    _vectors: Vectors = PrivateAttr()

    def __init__(self, vectors: Vectors) -> None:
        super().__init__(model_name="given")
        self._vectors = vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vectors(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vectors([query])[0]


class LlamaIndex:
    """Its own text of a tool, its own retriever."""

    def __init__(self, setting: Setting) -> None:
        self._model = Handed(setting.vectors)

    async def build(self, tools: Sequence[Tool]) -> str:
        """Index every tool at once."""
        objects = [
            FunctionTool(
                fn=_never, metadata=ToolMetadata(name=tool.name, description=tool.description)
            )
            for tool in tools
        ]
        index = ObjectIndex.from_objects(
            objects, index_cls=VectorStoreIndex, embed_model=self._model
        )
        self._retrieve = index.as_retriever(similarity_top_k=10).retrieve
        return ""

    async def search(self, text: str, limit: int) -> Sequence[str]:
        """Retrieve."""
        return [tool.metadata.name for tool in self._retrieve(text)][:limit]


def _never() -> None:
    """Do nothing."""


if __name__ == "__main__":
    serve(LlamaIndex, package="llama-index-core")
