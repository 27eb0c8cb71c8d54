"""Vectors of documents: each text is embedded once and stored.

* A stored vector is found by the model id and the SHA-256 of the text (the text key).
* If several processes share the store, a text is embedded by the process that claims it. The others
  read its vector, or claim the text when that process fails.
* A refused batch is halved until the refused text is found.
* If the store fails, vectors are only in memory, and a diagnostic says so.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace

from gateway.embed.cache import BLANK, request_vectors, split_into_batches, text_key
from gateway.embed.protocol import Embedded, Embedder, is_refusal
from gateway.errors import EmbeddingError, Failed, StoreError, attempt, attempt_within
from gateway.runtime.background_loop import in_thread
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import SharedVectorStore, Vector, VectorStore, usable
from gateway.types import Code, Diagnostic

Progress = Callable[[int, int], None]
"""Called with the number of finished texts and the total number."""
MAX_REQUEST_S = 300.0
"""Time limit of one request, in seconds. The first request may take a minute."""
_TEXTS_PER_PART = 8192
"""Number of texts whose vectors are passed on before further texts are embedded."""
_FAILURE_CODES = frozenset({"embedding_failed", "vectors_unavailable"})
_MAX_REFUSALS = 256
"""Maximum number of refused batches that are halved. Texts of further ones get no vectors."""
_POLL_S = 0.05
"""Interval of checks for new vectors from other processes, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVectors:
    """Vectors of the documents of an index build, and the cost of computing them."""

    rows: Mapping[str, Vector]
    """Vectors, keyed by text key. Texts that could not be embedded are absent."""
    embedded: int = 0
    """Number of texts sent to the embedder."""
    tokens: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reasons why the service refused a text, keyed by the text."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def followed_by(self, other: DocumentVectors) -> DocumentVectors:
        """Return the costs and diagnostics of both objects together, without vectors."""
        return DocumentVectors(
            rows={},
            embedded=self.embedded + other.embedded,
            tokens=self.tokens + other.tokens,
            refused={**self.refused, **other.refused},
            diagnostics=(*self.diagnostics, *other.diagnostics),
        )

    @property
    def store_faults(self) -> tuple[Code, ...]:
        """Diagnostic codes of all failures of the vector store."""
        return tuple(note.code for note in self.diagnostics if note.stage == "store")

    @property
    def failed(self) -> bool:
        """True if the embedder failed, or if the database of the entities' vectors failed."""
        return any(note.code in _FAILURE_CODES for note in self.diagnostics)


async def embed_documents(  # noqa: PLR0913  (keyword-only, all but the texts)
    texts: Sequence[str],
    *,
    embedder: Embedder,
    store: VectorStore,
    telemetry: Telemetry,
    dimensions: int | None = None,
    progress: Progress | None = None,
    max_new: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    timeout_s: float = MAX_REQUEST_S,
) -> DocumentVectors:
    """Return the vectors of *texts*. Only texts without a vector in *store* are embedded.

    If more than *max_new* texts are missing, none is embedded; None sets no limit. *dimensions* is
    the length of the index's vectors, if known. *progress* is called before the first request and
    after each one. The first request is always sent, and no other after *stop* returned True, so
    that frequent stops cannot prevent progress. A request, and the wait for another process, takes
    at most *timeout_s* seconds.

    Returns:
        Vectors of all texts that could be embedded. Refused texts are in ``refused``. For other
        missing vectors, a diagnostic gives the reason, unless *stop* returned True.
    """
    work = _EmbeddingJob(
        {text_key(text): text for text in texts},
        embedder=embedder,
        store=store,
        telemetry=telemetry,
        timeout_s=timeout_s,
        progress=progress or (lambda *_: None),
        stop=stop,
    )
    rows = dict(await work.read_store([*work.texts]))
    work.dimensions = dimensions or _common_length(rows, embedder.info.dimensions)
    work.keep_usable(rows)
    missing = [key for key in work.texts if key not in work.rows]
    if max_new is not None and len(missing) > max_new:
        missing = []
    if missing or max_new is not None:
        work.progress(len(work.rows), len(work.texts))
    await work.embed(missing)
    return DocumentVectors(
        rows=work.rows,
        embedded=work.embedded,
        tokens=work.tokens,
        refused=work.refused,
        diagnostics=tuple(work.notes),
    )


async def embed_in_parts(
    texts: Sequence[str],
    embed: Callable[..., Awaitable[DocumentVectors]],
    take: Callable[[Mapping[str, Vector]], Awaitable[tuple[Diagnostic, ...]]],
    progress: Progress,
    stop: Callable[[], bool],
) -> DocumentVectors:
    """Embed distinct *texts* in parts, so that not all vectors are in memory at once.

    *embed* returns the vectors of a part, like `embed_documents`. *take* receives them, keyed by
    text key, and returns diagnostics. *stop* is as for `embed_documents`.

    Returns:
        The cost and diagnostics of all parts up to the first failed one, without vectors.
    """
    cost, total = DocumentVectors(rows={}), len(texts)
    for start in range(0, total, _TEXTS_PER_PART):
        if cost.failed or (start and stop()):
            break
        part = texts[start : start + _TEXTS_PER_PART]
        vectors = await embed(
            part, progress=lambda done, _, before=start: progress(before + done, total), stop=stop
        )
        faults = await take(vectors.rows)
        cost = cost.followed_by(replace(vectors, diagnostics=(*vectors.diagnostics, *faults)))
    return cost


@dataclass(slots=True)
class _EmbeddingJob:
    """State of one `embed_documents` call."""

    texts: Mapping[str, str]
    """Texts, keyed by text key."""
    _: KW_ONLY
    embedder: Embedder
    store: VectorStore
    telemetry: Telemetry
    timeout_s: float
    progress: Progress
    stop: Callable[[], bool]
    dimensions: int | None = None
    rows: dict[str, Vector] = field(default_factory=dict)
    embedded: int = 0
    tokens: int = 0
    notes: list[Diagnostic] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _refusals: int = 0
    """Number of requests that the service refused."""
    _refusals_before_test: int = 3
    """Number of refusals after which a plain text is sent as a test, because the service may refuse
    every text. 0 (no test) after the first vector."""
    _shared: SharedVectorStore | None = None
    """The vector store, while it coordinates processes; else None."""

    async def embed(self, keys: Sequence[str]) -> None:
        """Embed the texts with these *keys*, or wait for other processes to do so."""
        if isinstance(self.store, SharedVectorStore):
            # Sorted, because keys with the same prefix are claimed together.
            self._shared, keys = self.store, sorted(keys)
        texts, limits = [self.texts[key] for key in keys], self.embedder.info.limits
        batches: deque[Sequence[str]] = deque()
        batches += (
            [keys[position] for position in batch] for batch in split_into_batches(texts, limits)
        )
        self._refusals_before_test = min(3, 2 * len(keys) - 1)
        max_checks, idle_checks = math.ceil(self.timeout_s / _POLL_S), 0
        while batches and not (self.embedded and self.stop()):
            batch, before = batches.popleft(), len(self.rows) + self._refusals
            remaining = await self._embed_unclaimed(batch)
            if remaining is None:
                return
            batches.extend(remaining)
            if len(self.rows) + self._refusals > before:
                idle_checks = 0
                self.progress(len(self.rows) + len(self.refused), len(self.texts))
                continue
            idle_checks += 1
            if idle_checks % len(batches) == 0:
                await asyncio.sleep(_POLL_S)
            if idle_checks >= max_checks * len(batches):
                self._shared = None

    async def _embed_unclaimed(self, keys: Sequence[str]) -> Sequence[Sequence[str]] | None:
        """Get the vectors of *keys*, except of texts that another process is embedding.

        Return batches of keys that remain. None if the embedder failed.
        """
        async with self._claimed(keys) as claimed:
            if self._shared:
                self.keep_usable(await self.read_store([*claimed]))
            missing = dict.fromkeys(key for key in claimed if key not in self.rows)
            halves = await self._request([*missing])
        others = [key for key in keys if key not in self.rows and key not in missing]
        return None if halves is None else [batch for batch in (*halves, others) if batch]

    async def _request(self, keys: Sequence[str]) -> Sequence[Sequence[str]] | None:
        """Embed the texts with these *keys* in one request, and store the vectors.

        Return the two halves of *keys* if the service refuses a text; else (). None if the embedder
        failed.
        """
        if not keys:
            return ()
        answer = await self._embed_texts([self.texts[key] for key in keys])
        is_refused = isinstance(answer, Failed) and await self._accepts_others(answer)
        middle = len(keys) // 2
        if is_refused and middle and self._refusals <= _MAX_REFUSALS:
            return keys[:middle], keys[middle:]
        self.embedded += len(keys)
        if not isinstance(answer, Failed):
            new = dict(zip(keys, answer.vectors, strict=True))
            self._refusals_before_test, self.dimensions = 0, answer.vectors.shape[1]
            self.rows.update(new)
            await self._write_store(new)
        elif is_refused:
            reason = f"the embedding service refused it: {answer.reason}"
            self.refused |= dict.fromkeys((self.texts[key] for key in keys), reason)
        else:
            note = Diagnostic(stage="embed", code="embedding_failed", detail=answer.reason)
            self.notes.append(note)
            return None
        return ()

    async def _embed_texts(self, texts: Sequence[str]) -> Embedded | Failed:
        request = request_vectors(
            self.embedder,
            texts,
            role="document",
            telemetry=self.telemetry,
            dimensions=self.dimensions,
        )
        detail = f"a request for documents took longer than {self.timeout_s:g} s"
        answer = await attempt_within(request, self.timeout_s, EmbeddingError(detail))
        if not isinstance(answer, Failed):
            self.tokens += answer.tokens or 0
        return answer

    async def _accepts_others(self, answer: Failed) -> bool:
        """Return whether the service refused a request but accepts other texts."""
        if not is_refusal(answer.error):
            return False
        self._refusals += 1
        return self._refusals != self._refusals_before_test or not isinstance(
            await self._embed_texts([BLANK]), Failed
        )

    @asynccontextmanager
    async def _claimed(self, keys: Sequence[str]) -> AsyncIterator[Collection[str]]:
        """Claim *keys* during the block. Yield the keys not claimed by other processes."""
        if self._shared is None:
            yield keys
            return
        claim = self._shared.claim(self.embedder.info.model_id, keys)
        try:
            answer = await attempt(in_thread(claim.take))
            if isinstance(answer, Failed):
                self.notes.append(_store_diagnostic(answer))
                self._shared, answer = None, keys
            yield answer
        finally:
            # If this fails, the connection is lost, which also ends the claim.
            await attempt(in_thread(claim.release))

    def keep_usable(self, rows: Mapping[str, Vector]) -> None:
        """Add the vectors in *rows* that have no NaN and the required length."""
        self.rows |= {
            key: row
            for key, row in rows.items()
            if not usable(row[None], count=1, dimensions=self.dimensions)
        }

    async def read_store(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of *keys*. If the store fails, add a diagnostic."""
        if not keys:
            return {}
        answer = await attempt(in_thread(self.store.get, self.embedder.info.model_id, keys))
        if isinstance(answer, Failed):
            self.notes.append(_store_diagnostic(answer))
            return {}
        return answer

    async def _write_store(self, rows: Mapping[str, Vector]) -> None:
        answer = await attempt(in_thread(self.store.put, self.embedder.info.model_id, rows))
        if isinstance(answer, Failed):
            self.notes.append(_store_diagnostic(answer))
            if self.notes[-1].code == "store_rebuilt":
                await self._write_store(rows)


def _common_length(rows: Mapping[str, Vector], stated: int | None) -> int | None:
    """Return *stated*, or else the most frequent length of the vectors in *rows*, if any.

    The lengths differ if the model changed but kept its name.
    """
    if stated is not None or not rows:
        return stated
    lengths = [int(row.shape[0]) for row in rows.values()]
    return max(sorted(set(lengths)), key=lengths.count)


def _store_diagnostic(failure: Failed) -> Diagnostic:
    is_rebuilt = isinstance(failure.error, StoreError) and failure.error.rebuilt
    code: Code = "store_rebuilt" if is_rebuilt else "store_unavailable"
    return Diagnostic(stage="store", code=code, detail=failure.reason)
