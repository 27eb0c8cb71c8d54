"""The local embedder's vectors for peers that need some, behind the OpenAI API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway import Embedder
from gateway.embed.cache import fit_text, split_into_batches, text_key
from gateway.runtime.vectors import Matrix, VectorStore, unit_rows
from gateway.testing.endpoint import Loopback


class Vectors:
    """Unit rows, each text embedded once and then stored.

    Args:
        embedder: None for no vectors.
        store: Where vectors are stored.
    """

    def __init__(self, embedder: Embedder | None, store: VectorStore) -> None:
        self._embedder = embedder
        self._store = store

    @property
    def model_id(self) -> str:
        """The model; empty without an embedder."""
        return self._embedder.info.model_id if self._embedder else ""

    @property
    def dimensions(self) -> int:
        """Length of a row; 0 without an embedder."""
        return (self._embedder.info.dimensions or 0) if self._embedder else 0

    async def rows(self, texts: Sequence[str]) -> Matrix:
        """Return one row per text.

        Raises:
            ValueError: If there is no embedder.
        """
        if self._embedder is None:
            raise ValueError("vectors are requested, and there is no embedder")
        keys = {text_key(text): text for text in texts}
        rows = dict(self._store.get(self.model_id, list(keys)))
        missing = [key for key in keys if key not in rows]
        limits = self._embedder.info.limits
        fitted = [fit_text(keys[key], limits) for key in missing]
        for batch in split_into_batches(fitted, limits):
            embedded = await self._embedder.embed(fitted[batch.start : batch.stop], role="document")
            fresh = dict(
                zip(missing[batch.start : batch.stop], unit_rows(embedded.vectors), strict=True)
            )
            self._store.put(self.model_id, fresh)
            rows |= fresh
        return np.stack([rows[text_key(text)] for text in texts])

    @contextmanager
    def endpoint(self) -> Iterator[str]:
        """Serve the vectors on the loopback as the OpenAI API does; yield the base URL."""
        loopback = Loopback(
            Starlette(routes=[Route("/v1/embeddings", self._embeddings, methods=["POST"])])
        )
        loopback.start()
        try:
            yield f"http://127.0.0.1:{loopback.port}/v1"
        finally:
            loopback.close()

    async def _embeddings(self, request: Request) -> JSONResponse:
        texts = (await request.json())["input"]
        rows = await self.rows([texts] if isinstance(texts, str) else texts)
        data = [
            {"object": "embedding", "index": index, "embedding": row.tolist()}
            for index, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return JSONResponse(
            {"object": "list", "data": data, "model": self.model_id, "usage": usage}
        )
