"""Requests to an embedder, each text once: documents are kept in a store, queries in memory.

* The key of a document is the SHA-256 of its text; the store keeps it by model id and key.
* A store that fails leaves a diagnostic: vectors then live in memory only.
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
from gateway.errors import EmbeddingError, Failed, StoreError, attempt, attempt_within
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Cache, Share
from gateway.runtime.model_endpoint import ModelEndpoint, TokenUsage
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix, Vector, VectorStore, unit_rows, usable
from gateway.types import Code, Diagnostic

BLANK = "-"
"""Sent for a blank text: services refuse the empty string."""
Progress = Callable[[int, int], None]
"""Called with how many texts are done, and of how many."""
MAX_REQUEST_S = 300.0
"""How long one request for documents may take: on a slow machine the first one takes a minute."""


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
class DocumentVectors:
    """The vectors of an index build."""

    rows: Mapping[str, Vector]
    """By text key. A text that could not be embedded is absent."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    tokens: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def store_faults(self) -> tuple[Code, ...]:
        """How the store failed, each time."""
        return tuple(note.code for note in self.diagnostics if note.stage == "store")

    @property
    def failed(self) -> bool:
        """Whether the embedder was asked and failed."""
        return any(diagnostic.code == "embedding_failed" for diagnostic in self.diagnostics)


async def embed_documents(  # noqa: PLR0913  (keyword-only, all but the texts)
    texts: Sequence[str],
    *,
    embedder: Embedder,
    store: VectorStore,
    telemetry: Telemetry,
    dimensions: int | None = None,
    progress: Progress | None = None,
    max_new: int | None = None,
    timeout_s: float = MAX_REQUEST_S,
) -> DocumentVectors:
    """Return the vector of each of *texts*, embedding only those that *store* lacks.

    Args:
        texts: Documents; equal ones are embedded once.
        embedder: Embeds the missing ones.
        store: Where vectors persist.
        telemetry: Records the requests' spans and tokens.
        dimensions: The length of the vectors that the index has already; None if it has none.
        progress: Called before the first request and after each.
        max_new: If more texts would have to be embedded, none is: only what *store* has is
            returned. None sets no limit.
        timeout_s: Seconds that one request may take, > 0; one that hangs counts as failed.

    Returns:
        In every case: what could not be embedded is absent and has a diagnostic.
    """
    wanted = {text_key(text): text for text in texts}
    notes: list[Diagnostic] = []
    rows = dict(await _read_store(store, embedder.info.model_id, list(wanted), notes))
    dimensions = dimensions or _common_length(rows, embedder.info.dimensions)
    rows = {
        key: row
        for key, row in rows.items()
        if not usable(row[None], count=1, dimensions=dimensions)
    }
    missing = [key for key in wanted if key not in rows]
    embedded = tokens = 0
    if max_new is not None and len(missing) > max_new:
        missing = []
    if progress and (missing or max_new is not None):
        progress(len(rows), len(wanted))
    for batch in split_into_batches([wanted[key] for key in missing], embedder.info.limits):
        keys = [missing[position] for position in batch]
        batch_texts = [wanted[key] for key in keys]
        request = request_vectors(
            embedder, batch_texts, role="document", telemetry=telemetry, dimensions=dimensions
        )
        timeout_error = EmbeddingError(f"a request for documents took longer than {timeout_s:g} s")
        answer = await attempt_within(request, timeout_s, timeout_error)
        embedded += len(keys)
        if isinstance(answer, Failed):
            note = Diagnostic(stage="embed", code="embedding_failed", detail=answer.reason)
            notes.append(note)
            break
        new = dict(zip(keys, answer.vectors, strict=True))
        dimensions = answer.vectors.shape[1]
        tokens += answer.tokens or 0
        rows.update(new)
        await _write_store(store, embedder.info.model_id, new, notes)
        if progress:
            progress(len(rows), len(wanted))
    return DocumentVectors(rows=rows, embedded=embedded, tokens=tokens, diagnostics=tuple(notes))


def _common_length(rows: Mapping[str, Vector], stated: int | None) -> int | None:
    """Return the stated length, else the commonest: a model may have changed under its name."""
    if stated is not None or not rows:
        return stated
    lengths = [int(row.shape[0]) for row in rows.values()]
    return max(sorted(set(lengths)), key=lengths.count)


async def _read_store(
    store: VectorStore, model_id: str, keys: Sequence[str], notes: list[Diagnostic]
) -> Mapping[str, Vector]:
    if not keys:
        return {}
    answer = await attempt(in_thread(store.get, model_id, keys))
    if isinstance(answer, Failed):
        notes.append(_store_diagnostic(answer))
        return {}
    return answer


async def _write_store(
    store: VectorStore, model_id: str, rows: Mapping[str, Vector], notes: list[Diagnostic]
) -> None:
    answer = await attempt(in_thread(store.put, model_id, rows))
    if isinstance(answer, Failed):
        notes.append(_store_diagnostic(answer))
        if notes[-1].code == "store_rebuilt":
            await _write_store(store, model_id, rows, notes)


def _store_diagnostic(failure: Failed) -> Diagnostic:
    is_rebuilt = isinstance(failure.error, StoreError) and failure.error.rebuilt
    code: Code = "store_rebuilt" if is_rebuilt else "store_unavailable"
    return Diagnostic(stage="store", code=code, detail=failure.reason)


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
