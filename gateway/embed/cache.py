"""Requests to an embedder, and a cache for the vectors of queries.

Equal requests at the same time are sent once, even if the first caller is cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from gateway.embed.protocol import Embedded, Embedder, EmbeddingLimits, Role
from gateway.errors import EmbeddingError
from gateway.runtime.cache import Cache, Share
from gateway.runtime.model_endpoint import ModelEndpoint, TokenUsage
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix, Vector, unit_rows, usable

BLANK = "-"
"""Text sent in place of a blank text, because services refuse empty strings."""


def fit_text(text: str, limits: EmbeddingLimits) -> str:
    """Return *text* in a form that any embedding service accepts.

    Lone surrogates and NUL are replaced, a long text is cut at the end, and a blank text becomes
    `BLANK`.
    """
    clipped = text[: limits.max_chars].encode("utf-8", "replace").decode().replace("\x00", " ")
    return clipped if clipped.strip() else BLANK


def split_into_batches(texts: Sequence[str], limits: EmbeddingLimits) -> Iterator[range]:
    """Split *texts* into batches within *limits*. Yield the positions of each batch."""
    start, size = 0, 0
    for position, text in enumerate(texts):
        full = position - start >= limits.max_texts or size + len(text) > limits.max_request_chars
        if full and position > start:
            yield range(start, position)
            start, size = position, 0
        size += len(text)
    if start < len(texts):
        yield range(start, len(texts))


async def request_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    role: Role,
    telemetry: Telemetry,
    dimensions: int | None = None,
) -> Embedded:
    """Embed *texts* in one request. Return unit vectors, one per text.

    At most ``limits.max_texts`` texts are allowed. Long texts are cut. *dimensions* is the required
    length of the vectors, if known.

    Raises:
        EmbeddingError: If the number or length of the vectors is wrong, or a vector contains NaN or
            only zeros.
        Exception: Any error of the embedder.
    """
    info = embedder.info
    endpoint = info.endpoint or ModelEndpoint(model=info.model_id, provider=info.provider)
    attributes = {"gateway.embedding.texts": len(texts)}
    with telemetry.model_request("embeddings", endpoint, attributes).within() as request:
        answer = await embedder.embed([fit_text(text, info.limits) for text in texts], role=role)
        dimensions = dimensions or info.dimensions
        fault = usable(answer.vectors, count=len(texts), dimensions=dimensions)
        if fault:
            raise EmbeddingError(f"embedder {info.model_id!r}: {fault}")
        dimensions = answer.vectors.shape[1]
        request.describe({"gen_ai.embeddings.dimension.count": dimensions})
        request.count(TokenUsage(input=answer.tokens))
    return Embedded(vectors=unit_rows(answer.vectors), tokens=answer.tokens)


class MemoryVectorStore:
    """A `VectorStore` in memory. Its vectors are lost at the end of the process."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Vector] = {}

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of these *keys*, keyed by text key."""
        return {key: self._rows[model_id, key] for key in keys if (model_id, key) in self._rows}

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Store *vectors*, keyed by text key."""
        self._rows.update({(model_id, key): row.copy() for key, row in vectors.items()})

    def close(self) -> None:
        """Do nothing."""


def text_key(text: str) -> str:
    """Return the key of a document's text: SHA-256 (hex)."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEmbeddings:
    """Vectors of the query texts of one search, and the cost of computing them."""

    vectors: Matrix
    """Unit vectors in the order of the query texts, shape (texts, dimensions)."""
    embedded: int = 0
    """Number of texts sent to the embedder, by this search or an equal one at the same time."""
    tokens: int = 0


Embed: TypeAlias = Callable[[Sequence[str], int | None], Awaitable[QueryEmbeddings]]
"""Embeds queries. The arguments are the texts and the required length of the vectors (None if the
index has no vectors)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEmbedder:
    """Embeds queries, and caches their vectors."""

    embedder: Embedder
    cache: Cache[Vector]
    """Cached vectors of queries, keyed by model and text."""
    share: Share[QueryEmbeddings]
    """Lets equal requests at the same time share one answer."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Maximum time of a request to the embedder, in seconds; None sets no limit."""

    async def __call__(self, texts: Sequence[str], dimensions: int | None) -> QueryEmbeddings:
        """Return a unit vector for each of *texts*, at least one.

        A vector of another length than *dimensions* raises an error; None means any length.

        Raises:
            GatewayError: If the embedder is skipped because it does not respond.
            Exception: Any error of the embedder.
        """
        model_id = self.embedder.info.model_id
        rows = self._cached_rows(texts, dimensions, self.cache.get)
        missing = tuple(text for text in dict.fromkeys(texts) if text not in rows)
        answer = QueryEmbeddings(vectors=np.empty((0, 0), dtype=np.float32))
        if missing:
            key = (model_id, dimensions, missing)
            work = partial(self._embed, missing, dimensions)
            answer = await self.share(key, work)
            rows.update(zip(missing, answer.vectors, strict=True))
        vectors = np.array([rows[text] for text in texts])
        return QueryEmbeddings(vectors=vectors, embedded=answer.embedded, tokens=answer.tokens)

    def _cached_rows(
        self,
        texts: Iterable[str],
        dimensions: int | None,
        read: Callable[[Hashable], Vector | None],
    ) -> dict[str, Vector]:
        """Return the cached vectors of *texts*, keyed by text, except those of another length."""
        keyed = {text: (self.embedder.info.model_id, text) for text in texts}
        rows = {text: row for text, key in keyed.items() if (row := read(key)) is not None}
        return {text: row for text, row in rows.items() if dimensions in (None, row.shape[0])}

    async def _embed(self, texts: tuple[str, ...], dimensions: int | None) -> QueryEmbeddings:
        # An equal request may have filled the cache in the meantime.
        cached = self._cached_rows(texts, dimensions, self.cache.peek)
        if len(cached) == len(texts):
            return QueryEmbeddings(vectors=np.stack([cached[text] for text in texts]))
        model_id, limits = self.embedder.info.model_id, self.embedder.info.limits
        rows: list[Vector] = []
        tokens = 0
        async with asyncio.timeout(self.timeout_s):
            for batch in split_into_batches(texts, limits):
                answer = await request_vectors(
                    self.embedder,
                    texts[batch.start : batch.stop],
                    role="query",
                    telemetry=self.telemetry,
                    dimensions=dimensions,
                )
                rows.extend(answer.vectors)
                tokens += answer.tokens or 0
        for text, row in zip(texts, rows, strict=True):
            self.cache.put((model_id, text), row)
        return QueryEmbeddings(vectors=np.stack(rows), embedded=len(texts), tokens=tokens)
