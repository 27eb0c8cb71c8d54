"""Vectors of documents: each text is embedded once, and kept in a store.

* The key of a document is the SHA-256 of its text; the store keeps it by model id and key.
* Where several processes share the store, each text is embedded by one of them: it claims the
  texts of a request, and the others take their vectors from the store. If it fails or is gone,
  another claims them.
* A store that fails leaves a diagnostic: vectors then live in memory only, and this process
  embeds all by itself.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace

from gateway.embed.cache import request_vectors, split_into_batches, text_key
from gateway.embed.protocol import Embedder
from gateway.errors import EmbeddingError, Failed, StoreError, attempt, attempt_within
from gateway.runtime.background_loop import in_thread
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import SharedVectorStore, Vector, VectorStore, usable
from gateway.types import Code, Diagnostic

Progress = Callable[[int, int], None]
"""Called with how many texts are done, and of how many."""
MAX_REQUEST_S = 300.0
"""How long one request for documents may take: on a slow machine the first one takes a minute."""
_PART_TEXTS = 8192
"""So many texts are embedded before their vectors are handed on."""
_FAILURES = frozenset({"embedding_failed", "vectors_unavailable"})
_LOOK_S = 0.05
"""How long to wait before another look at texts that other processes embed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVectors:
    """The vectors of an index build."""

    rows: Mapping[str, Vector]
    """By text key. A text that could not be embedded is absent."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    tokens: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()

    def followed_by(self, other: DocumentVectors) -> DocumentVectors:
        """Return the costs and notes of both, without any rows."""
        return DocumentVectors(
            rows={},
            embedded=self.embedded + other.embedded,
            tokens=self.tokens + other.tokens,
            diagnostics=(*self.diagnostics, *other.diagnostics),
        )

    @property
    def store_faults(self) -> tuple[Code, ...]:
        """How the store failed, each time."""
        return tuple(note.code for note in self.diagnostics if note.stage == "store")

    @property
    def failed(self) -> bool:
        """Whether the embedder was asked and failed, or what is made of vectors was not kept."""
        return any(note.code in _FAILURES for note in self.diagnostics)


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
        timeout_s: Seconds that one request may take, > 0; one that hangs counts as failed. So
            long does it wait for vectors of other processes, too, as long as none comes.

    Returns:
        In every case: what could not be embedded is absent and has a diagnostic.
    """
    work = _Documents(
        {text_key(text): text for text in texts},
        embedder=embedder,
        store=store,
        telemetry=telemetry,
        timeout_s=timeout_s,
        progress=progress or (lambda *_: None),
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
        rows=work.rows, embedded=work.embedded, tokens=work.tokens, diagnostics=tuple(work.notes)
    )


async def embed_in_parts(
    texts: Sequence[str],
    embed: Callable[..., Awaitable[DocumentVectors]],
    take: Callable[[Mapping[str, Vector]], Awaitable[tuple[Diagnostic, ...]]],
    progress: Progress,
) -> DocumentVectors:
    """Embed *texts* part by part, so that not all vectors are held at once.

    Args:
        texts: Documents, different ones; what belongs together stands together.
        embed: Returns the vectors of a part, as `embed_documents` does; it gets ``progress``.
        take: Called with the vectors of each part, by text key; returns what went wrong.
        progress: Called with how many of all texts are done.

    Returns:
        What it cost, without vectors. After a part that failed no other is embedded.
    """
    cost, total = DocumentVectors(rows={}), len(texts)
    for start in range(0, total, _PART_TEXTS):
        if cost.failed:
            break
        part = texts[start : start + _PART_TEXTS]
        found = await embed(
            part, progress=lambda done, _, before=start: progress(before + done, total)
        )
        faults = await take(found.rows)
        cost = cost.followed_by(replace(found, diagnostics=(*found.diagnostics, *faults)))
    return cost


@dataclass(slots=True)
class _Documents:
    """The vectors of some texts, as far as they are there."""

    texts: Mapping[str, str]
    """By key."""
    _: KW_ONLY
    embedder: Embedder
    store: VectorStore
    telemetry: Telemetry
    timeout_s: float
    progress: Progress
    dimensions: int | None = None
    rows: dict[str, Vector] = field(default_factory=dict)
    embedded: int = 0
    tokens: int = 0
    notes: list[Diagnostic] = field(default_factory=list)
    _shared: SharedVectorStore | None = None
    """The store, as long as others may embed the same texts and it says which."""

    async def embed(self, keys: Sequence[str]) -> None:
        """Embed the texts of *keys*, but for those that another process embeds."""
        if isinstance(self.store, SharedVectorStore):
            # Keys that begin alike are claimed at once.
            self._shared, keys = self.store, sorted(keys)
        texts, limits = [self.texts[key] for key in keys], self.embedder.info.limits
        batches = deque([keys[at] for at in batch] for batch in split_into_batches(texts, limits))
        looks, lost = math.ceil(self.timeout_s / _LOOK_S), 0
        while batches:
            batch, before = batches.popleft(), len(self.rows)
            if not await self._embed_own(batch):
                return
            if others := [key for key in batch if key not in self.rows]:
                batches.append(others)
            if len(self.rows) > before:
                lost = 0
                self.progress(len(self.rows), len(self.texts))
                continue
            lost += 1
            if lost % len(batches) == 0:
                await asyncio.sleep(_LOOK_S)
            if lost >= looks * len(batches):
                self._shared = None

    async def _embed_own(self, keys: Sequence[str]) -> bool:
        """Get the vectors of *keys* that no other process embeds; return whether it can."""
        async with self._claimed(keys) as own:
            if self._shared:
                self.keep_usable(await self.read_store([*own]))
            return await self._request([key for key in own if key not in self.rows])

    async def _request(self, keys: Sequence[str]) -> bool:
        """Embed the texts of *keys* in one request, and keep the vectors; return whether it can."""
        if not keys:
            return True
        texts = [self.texts[key] for key in keys]
        request = request_vectors(
            self.embedder,
            texts,
            role="document",
            telemetry=self.telemetry,
            dimensions=self.dimensions,
        )
        detail = f"a request for documents took longer than {self.timeout_s:g} s"
        answer = await attempt_within(request, self.timeout_s, EmbeddingError(detail))
        self.embedded += len(keys)
        if isinstance(answer, Failed):
            note = Diagnostic(stage="embed", code="embedding_failed", detail=answer.reason)
            self.notes.append(note)
            return False
        new = dict(zip(keys, answer.vectors, strict=True))
        self.dimensions = answer.vectors.shape[1]
        self.tokens += answer.tokens or 0
        self.rows.update(new)
        await self._write_store(new)
        return True

    @asynccontextmanager
    async def _claimed(self, keys: Sequence[str]) -> AsyncIterator[Collection[str]]:
        """Yield those of *keys* that no other process embeds until the end of the block."""
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
            # If the connection is gone, so is the claim.
            await attempt(in_thread(claim.release))

    def keep_usable(self, rows: Mapping[str, Vector]) -> None:
        """Take those of *rows* that have the right length."""
        self.rows |= {
            key: row
            for key, row in rows.items()
            if not usable(row[None], count=1, dimensions=self.dimensions)
        }

    async def read_store(self, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return what the store has of *keys*; nothing and a diagnostic if it fails."""
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
    """Return the stated length, else the commonest: a model may have changed under its name."""
    if stated is not None or not rows:
        return stated
    lengths = [int(row.shape[0]) for row in rows.values()]
    return max(sorted(set(lengths)), key=lengths.count)


def _store_diagnostic(failure: Failed) -> Diagnostic:
    is_rebuilt = isinstance(failure.error, StoreError) and failure.error.rebuilt
    code: Code = "store_rebuilt" if is_rebuilt else "store_unavailable"
    return Diagnostic(stage="store", code=code, detail=failure.reason)
