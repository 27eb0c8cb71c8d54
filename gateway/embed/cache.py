"""Requests to an embedder, and queries that are embedded once for as long as they are cached.

* Vectors of documents are kept in a store: see `gateway.embed.documents`.
* Equal queries at the same time make one request, even if the first caller goes away.
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
"""Sent for a blank text: services refuse the empty string."""


def fit_text(text: str, limits: EmbeddingLimits) -> str:
    """Return *text* as any embedder takes it: no lone surrogate, no NUL, not blank, not too long.

    The end is cut, since names and purposes stand first.
    """
    clipped = text[: limits.max_chars].encode("utf-8", "replace").decode().replace("\x00", " ")
    return clipped if clipped.strip() else BLANK


def split_into_batches(texts: Sequence[str], limits: EmbeddingLimits) -> Iterator[range]:
    """Yield consecutive ranges of positions of *texts*, each within the *limits*."""
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
    """Embed *texts* in one request and return unit rows.

    Args:
        embedder: The embedder.
        texts: At most ``limits.max_texts``; each is cut to ``limits.max_chars``.
        role: Whether they are documents or a query.
        telemetry: Records the span, the duration and the tokens.
        dimensions: The length that each vector must have; None if that is not known yet.

    Raises:
        EmbeddingError: The answer has another count or length, NaN, or a vector of zeros.
        Exception: Whatever the embedder raises.
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
    """A `VectorStore` in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Vector] = {}

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return those of *keys* that are stored."""
        return {key: self._rows[model_id, key] for key in keys if (model_id, key) in self._rows}

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Store *vectors*."""
        self._rows.update({(model_id, key): row.copy() for key, row in vectors.items()})

    def close(self) -> None:
        """Do nothing: nothing is open."""


def text_key(text: str) -> str:
    """Return the key of a document's text: SHA-256, hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEmbeddings:
    """The vectors of a search's texts, and their cost."""

    vectors: Matrix
    """Unit rows, one a text, in the order of the texts."""
    embedded: int = 0
    """How many texts were sent to the embedder, by this search or by one that it waited for."""
    tokens: int = 0


Embed: TypeAlias = Callable[[Sequence[str], int | None], Awaitable[QueryEmbeddings]]
"""Query texts and the length of the index's vectors -> one unit row for each text, and the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEmbedder:
    """Embeds queries, each text once for as long as it is cached."""

    embedder: Embedder
    """Embeds what the cache lacks."""
    cache: Cache[Vector]
    """Vectors by model and text."""
    share: Share[QueryEmbeddings]
    """Joins equal requests."""
    telemetry: Telemetry
    timeout_s: float | None = None
    """Seconds after which a request is given up; None is never."""

    async def __call__(self, texts: Sequence[str], dimensions: int | None) -> QueryEmbeddings:
        """Return one unit row for each text.

        Args:
            texts: Not empty.
            dimensions: The length of the index's vectors; others raise.

        Raises:
            GatewayError: The embedder is skipped, since it hangs.
            Exception: Whatever the embedder raises.
        """
        model_id = self.embedder.info.model_id
        rows = self._find(texts, dimensions, self.cache.get)
        missing = tuple(text for text in dict.fromkeys(texts) if text not in rows)
        answer = QueryEmbeddings(vectors=np.empty((0, 0), dtype=np.float32))
        if missing:
            key = (model_id, dimensions, missing)
            work = partial(self._embed, missing, dimensions)
            answer = await self.share(key, work)
            rows.update(zip(missing, answer.vectors, strict=True))
        vectors = np.array([rows[text] for text in texts])
        return QueryEmbeddings(vectors=vectors, embedded=answer.embedded, tokens=answer.tokens)

    def _find(
        self,
        texts: Iterable[str],
        dimensions: int | None,
        read: Callable[[Hashable], Vector | None],
    ) -> dict[str, Vector]:
        """Return the cached rows of *texts*; a model may have changed under its name."""
        keyed = {text: (self.embedder.info.model_id, text) for text in texts}
        rows = {text: row for text, key in keyed.items() if (row := read(key)) is not None}
        return {text: row for text, row in rows.items() if dimensions in (None, row.shape[0])}

    async def _embed(self, texts: tuple[str, ...], dimensions: int | None) -> QueryEmbeddings:
        # An equal request may have ended since its caller looked.
        found = self._find(texts, dimensions, self.cache.peek)
        if len(found) == len(texts):
            return QueryEmbeddings(vectors=np.stack([found[text] for text in texts]))
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
