"""An embedder that embeds each query once, however many ways of searching are asked with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway import Embedder
from gateway.embed.protocol import Embedded, Role
from gateway.runtime.vectors import Vector


class Recalled:
    """Remembers the vectors of queries; documents are kept by the gateway's own store.

    Args:
        embedder: Who embeds what was not asked before.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.info = embedder.info
        self._embedder = embedder
        self._known: dict[str, Vector] = {}

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return one row a text."""
        if role != "query":
            return await self._embedder.embed(texts, role=role)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            answer = await self._embedder.embed(new, role=role)
            self._known.update(zip(new, answer.vectors, strict=True))
        return Embedded(vectors=np.stack([self._known[text] for text in texts]))
