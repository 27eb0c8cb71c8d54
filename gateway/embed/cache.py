"""Vectors that are embedded once: documents in a store, queries in memory.

* A document's key is the SHA-256 of its text; the store keeps it by model id and key.
* A store that fails is left aside with a diagnostic: vectors then live in memory only.
* Equal queries at the same time make one request, even if the first to ask goes away.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gateway.embed.adapter import request_vectors, split_into_batches
from gateway.embed.protocol import Embedded, Embedder
from gateway.errors import EmbeddingError, Failed, StoreError, attempt, attempt_within
from gateway.runtime.background_loop import in_thread
from gateway.runtime.cache import Cache
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import Matrix, Vector, VectorStore, usable
from gateway.types import Code, Diagnostic

Progress = Callable[[int, int], None]
"""Called with how many texts are done, and of how many."""
_FAILED: Code = "embedding_failed"
LONGEST_S = 300.0
"""How long one request for documents may take: on a slow machine the first one takes a minute."""


class MemoryVectorStore:
    """A `VectorStore` that forgets at the end of the process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Vector] = {}

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Give those of *keys* that are kept."""
        return {key: self._kept[model_id, key] for key in keys if (model_id, key) in self._kept}

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Keep *vectors*."""
        self._kept.update({(model_id, key): row.copy() for key, row in vectors.items()})

    def close(self) -> None:
        """Do nothing: nothing is held."""


def text_key(text: str) -> str:
    """Give the key of a document's text: SHA-256, hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVectors:
    """The vectors of an index build."""

    rows: Mapping[str, Vector]
    """By text key. A text that could not be embedded is absent."""
    put_off: bool = False
    """Whether more would have to be embedded than anybody was to wait for, so that nothing was."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    tokens: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the embedder was asked and failed."""
        return any(each.code == _FAILED for each in self.diagnostics)

    @property
    def mended(self) -> DocumentVectors:
        """The same without its failures, which later vectors made up for."""
        kept = tuple(each for each in self.diagnostics if each.code != _FAILED)
        return replace(self, diagnostics=kept)

    def after(self, first: DocumentVectors) -> DocumentVectors:
        """Add the vectors, the cost and the diagnostics of *first*."""
        return replace(
            self,
            rows={**first.rows, **self.rows},
            embedded=first.embedded + self.embedded,
            tokens=first.tokens + self.tokens,
            diagnostics=tuple(dict.fromkeys((*first.diagnostics, *self.diagnostics))),
        )


async def document_vectors(  # noqa: PLR0913  (keyword-only, all but the texts)
    texts: Sequence[str],
    *,
    embedder: Embedder,
    store: VectorStore,
    telemetry: Telemetry,
    dimensions: int | None = None,
    progress: Progress | None = None,
    most: int | None = None,
    limit_s: float = LONGEST_S,
) -> DocumentVectors:
    """Give the vector of each of *texts*, embedding only those that *store* lacks.

    Args:
        texts: Documents; equal ones are embedded once.
        embedder: Embeds the missing ones.
        store: Where vectors persist.
        telemetry: Where the requests' spans and tokens go.
        dimensions: The length of the vectors that the index has already; None if it has none.
        progress: Called after each request.
        most: If more than so many would have to be embedded, none is: only what *store* has is
            given, as `DocumentVectors.put_off`. None sets no limit.
        limit_s: Seconds that one request may take, > 0; one that hangs counts as failed.

    Returns:
        In every case: what could not be embedded is absent and has a diagnostic.
    """
    wanted = {text_key(text): text for text in texts}
    notes: list[Diagnostic] = []
    rows = dict(await _from_store(store, embedder.info.model_id, list(wanted), notes))
    dimensions = dimensions or _common_length(rows, embedder.info.dimensions)
    rows = {key: row for key, row in rows.items() if _whole(row, dimensions)}
    missing = [key for key in wanted if key not in rows]
    if most is not None and len(missing) > most:
        if progress:
            progress(len(rows), len(wanted))
        return DocumentVectors(rows=rows, put_off=True, diagnostics=tuple(notes))
    embedded = tokens = 0
    for batch in split_into_batches([wanted[key] for key in missing], embedder.info.limits):
        keys = [missing[position] for position in batch]
        part = [wanted[key] for key in keys]
        asked = request_vectors(
            embedder, part, role="document", telemetry=telemetry, dimensions=dimensions
        )
        answer = await _ask(asked, notes, limit_s)
        embedded += len(keys)
        if answer is None:
            break
        fresh = dict(zip(keys, answer.vectors, strict=True))
        dimensions = answer.vectors.shape[1]
        tokens += answer.tokens or 0
        rows.update(fresh)
        await _to_store(store, embedder.info.model_id, fresh, notes)
        if progress:
            progress(len(rows), len(wanted))
    return DocumentVectors(rows=rows, embedded=embedded, tokens=tokens, diagnostics=tuple(notes))


def _whole(row: Vector, dimensions: int | None) -> bool:
    return row.shape[0] == dimensions and not usable(row[None], count=1, dimensions=None)


def _common_length(rows: Mapping[str, Vector], stated: int | None) -> int | None:
    """Give the stated length, or else the commonest: a model may have changed under its name."""
    if stated is not None or not rows:
        return stated
    lengths = [int(row.shape[0]) for row in rows.values()]
    return max(sorted(set(lengths)), key=lengths.count)


async def _ask(
    work: Awaitable[Embedded], notes: list[Diagnostic], limit_s: float
) -> Embedded | None:
    late = EmbeddingError(f"a request for documents took longer than {limit_s:g} s")
    answer = await attempt_within(work, limit_s, late)
    if isinstance(answer, Failed):
        notes.append(Diagnostic(stage="embed", code=_FAILED, detail=answer.reason))
        return None
    return answer


async def _from_store(
    store: VectorStore, model_id: str, keys: Sequence[str], notes: list[Diagnostic]
) -> Mapping[str, Vector]:
    if not keys:
        return {}
    answer = await attempt(in_thread(store.get, model_id, keys))
    if isinstance(answer, Failed):
        notes.append(_store_note(answer))
        return {}
    return answer


async def _to_store(
    store: VectorStore, model_id: str, rows: Mapping[str, Vector], notes: list[Diagnostic]
) -> None:
    answer = await attempt(in_thread(store.put, model_id, rows))
    if isinstance(answer, Failed):
        notes.append(_store_note(answer))
        if _rebuilt(answer):
            await _to_store(store, model_id, rows, notes)


def _rebuilt(failed: Failed) -> bool:
    return isinstance(failed.error, StoreError) and failed.error.rebuilt


def _store_note(failed: Failed) -> Diagnostic:
    code: Code = "store_rebuilt" if _rebuilt(failed) else "store_unavailable"
    return Diagnostic(stage="store", code=code, detail=failed.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRows:
    """The vectors of a search's texts, and what they cost."""

    vectors: Matrix
    """Unit rows, one a text, in the order of the texts."""
    embedded: int = 0
    """How many texts were sent to the embedder, by this search or by one that it waited for."""
    tokens: int = 0


class Embed(Protocol):
    """Embeds query texts."""

    def __call__(self, texts: Sequence[str], *, dimensions: int | None) -> Awaitable[QueryRows]:
        """Give one unit row for each text, and say what that cost."""
        ...


class Flights(Protocol):
    """Runs equal work once: `gateway.runtime.cache.SingleFlight`, or `LoopFlight`."""

    async def run(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, QueryRows]]
    ) -> QueryRows:
        """Await the flight of *key*; start it with *work* if none is under way."""
        ...


class QueryVectors:
    """Embeds queries, each text once while the cache remembers it.

    Args:
        embedder: Asked for what the cache lacks.
        cache: Its answers, by model and text.
        flights: Join equal questions.
        telemetry: Told of each request.
        most_s: Seconds after which an unanswered question is given up; None is never.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        cache: Cache[Vector],
        flights: Flights,
        telemetry: Telemetry,
        most_s: float | None = None,
    ) -> None:
        self._most_s = most_s
        self._embedder = embedder
        self._cache = cache
        self._flights = flights
        self._telemetry = telemetry

    async def __call__(self, texts: Sequence[str], *, dimensions: int | None) -> QueryRows:
        """Give one unit row for each text.

        Args:
            texts: Not empty.
            dimensions: What the index holds; other vectors raise.
        """
        model_id = self._embedder.info.model_id
        rows = {text: self._fit(self._cache.get((model_id, text)), dimensions) for text in texts}
        missing = tuple(text for text, row in rows.items() if row is None)
        answer = QueryRows(vectors=np.empty((0, 0), dtype=np.float32))
        if missing:
            answer = await self._flights.run(
                (model_id, dimensions, missing), lambda: self._bounded(missing, dimensions)
            )
            rows.update(zip(missing, answer.vectors, strict=True))
        found = [row for text in texts if (row := rows[text]) is not None]
        return QueryRows(vectors=_rows(found), embedded=answer.embedded, tokens=answer.tokens)

    @staticmethod
    def _fit(row: Vector | None, dimensions: int | None) -> Vector | None:
        # A model may have changed under its name while the cache remembered it.
        return row if row is None or dimensions in (None, row.shape[0]) else None

    async def _bounded(self, texts: tuple[str, ...], dimensions: int | None) -> QueryRows:
        async with asyncio.timeout(self._most_s):
            return await self._embed(texts, dimensions)

    async def _embed(self, texts: tuple[str, ...], dimensions: int | None) -> QueryRows:
        # Another flight may have ended since the look into the cache.
        model_id = self._embedder.info.model_id
        kept = [self._fit(self._cache.peek((model_id, text)), dimensions) for text in texts]
        rows = [row for row in kept if row is not None]
        if len(rows) == len(texts):
            return QueryRows(vectors=np.stack(rows))
        found: list[Vector] = []
        tokens = 0
        for batch in split_into_batches(texts, self._embedder.info.limits):
            answer = await request_vectors(
                self._embedder,
                texts[batch.start : batch.stop],
                role="query",
                telemetry=self._telemetry,
                dimensions=dimensions,
            )
            found.extend(answer.vectors)
            tokens += answer.tokens or 0
        for text, row in zip(texts, found, strict=True):
            self._cache.put((model_id, text), row)
        return QueryRows(vectors=np.stack(found), embedded=len(texts), tokens=tokens)


def _rows(found: Sequence[Vector]) -> Matrix:
    return found[0][None] if len(found) == 1 else np.array(found)
