"""Our embedder's vectors for peers that need some: each text embedded once, then kept on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from gateway import Embedder
from gateway.embed.adapter import fit_text, split_into_batches
from gateway.embed.cache import text_key
from gateway.embed.protocol import Role
from gateway.runtime.vectors import Matrix, VectorStore, unit_rows
from gateway.testing.loopback import Loopback


class Vectors:
    """Gives unit rows.

    Args:
        embedder: Who embeds; None gives no vectors.
        store: What keeps them.
    """

    def __init__(self, embedder: Embedder | None, store: VectorStore) -> None:
        self.role: Role = "document"
        """What the texts are that come through the endpoint."""
        self._embedder = embedder
        self._store = store

    @property
    def model_id(self) -> str:
        """Who embeds; empty if nobody does."""
        return self._embedder.info.model_id if self._embedder else ""

    @property
    def dimensions(self) -> int:
        """Length of a row; 0 if nobody embeds."""
        return (self._embedder.info.dimensions or 0) if self._embedder else 0

    async def rows(self, texts: Sequence[str], role: Role) -> Matrix:
        """Give one row a text.

        Raises:
            ValueError: If nobody embeds.
        """
        if self._embedder is None:
            raise ValueError("vectors are asked for, and there is no embedder")
        model = f"{self.model_id} {role}"
        wanted = {text_key(text): text for text in texts}
        rows = dict(self._store.get(model, list(wanted)))
        missing = [key for key in wanted if key not in rows]
        limits = self._embedder.info.limits
        cut = [fit_text(wanted[key], limits) for key in missing]
        for batch in split_into_batches(cut, limits):
            answer = await self._embedder.embed(cut[batch.start : batch.stop], role=role)
            keys = missing[batch.start : batch.stop]
            fresh = dict(zip(keys, unit_rows(answer.vectors), strict=True))
            self._store.put(model, fresh)
            rows |= fresh
        stacked: Matrix = np.stack([rows[text_key(text)] for text in texts])
        return stacked

    @contextmanager
    def endpoint(self) -> Iterator[str]:
        """Serve the vectors on this machine as the OpenAI API does; gives the address."""
        loopback = Loopback(
            Starlette(routes=[Route("/v1/embeddings", self._post, methods=["POST"])])
        )
        loopback.start()
        try:
            yield f"http://127.0.0.1:{loopback.port}/v1"
        finally:
            loopback.close()

    async def _post(self, request: Request) -> JSONResponse:
        asked = (await request.json())["input"]
        rows = await self.rows([asked] if isinstance(asked, str) else asked, self.role)
        data = [
            {"object": "embedding", "index": index, "embedding": row.tolist()}
            for index, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        model = self.model_id
        return JSONResponse({"object": "list", "data": data, "model": model, "usage": usage})
