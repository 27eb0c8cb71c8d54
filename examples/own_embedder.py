"""An embedder of your own: any model that turns texts into vectors.

python examples/own_embedder.py
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import numpy as np

from gateway import Gateway
from gateway.embed.cache import MemoryVectorStore
from gateway.embed.protocol import Embedded, EmbedderInfo, EmbeddingLimits, Role


class LetterEmbedder:
    """Counts groups of three letters. Put the call of your model in its place."""

    info = EmbedderInfo(
        # Stored vectors belong to this name: change it with the model or its settings.
        model_id="letters-3-256",
        provider="example",
        dimensions=256,
        limits=EmbeddingLimits(max_texts=64, max_chars=2_000),
    )

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:  # noqa: ARG002  (queries and documents are read alike)
        """Return a unit vector for each text."""
        # A model that computes here would block the loop.
        return Embedded(vectors=await asyncio.to_thread(self._vectors, texts))

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 256), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            padded = f" {text.casefold()} "
            for start in range(len(padded) - 2):
                digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=1)
                row[digest.digest()[0]] += 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


def convert_currency(amount: float, source: str, target: str) -> str:
    """Convert an amount of money from one currency to another."""
    return f"{amount} {source} in {target}"


def book_train(origin: str, destination: str) -> str:
    """Book a train from one city to another."""
    return f"{origin} to {destination}: booked"


async def main() -> None:
    """Rank by the vectors of the embedder alone."""
    # Without a store of its own, vectors are kept in the user's cache folder.
    vectors = MemoryVectorStore()
    embedder = LetterEmbedder()
    async with Gateway(strategy="embeddings", embedder=embedder, vector_store=vectors) as gateway:
        gateway.add_tool(convert_currency)
        gateway.add_tool(book_train)
        found = await gateway.search("converting currencies", limit=1)
        print(f"{found.matches[0].name}, ranked by {found.mode}")


if __name__ == "__main__":
    asyncio.run(main())
