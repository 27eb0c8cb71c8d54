"""Vectors of documents: each text is embedded once, and kept in a store.

* The key of a document is the SHA-256 of its text; the store keeps it by model id and key.
* Where several processes share the store, each text is embedded by one of them: it claims the
  texts of a request, and the others take their vectors from the store. If it fails or is gone,
  another claims them.
* If the service refuses a batch, the batch is halved until the refused text is found: only that
  text has no vector.
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

from gateway.embed.cache import BLANK, request_vectors, split_into_batches, text_key
from gateway.embed.protocol import Embedded, Embedder, is_refusal
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
_MAX_REFUSALS = 256
"""Maximum number of refused batches that are halved; the texts of later ones are given up."""
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
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reasons of the service, keyed by the text that it refuses."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def followed_by(self, other: DocumentVectors) -> DocumentVectors:
        """Return the costs and notes of both, without any rows."""
        return DocumentVectors(
            rows={},
            embedded=self.embedded + other.embedded,
            tokens=self.tokens + other.tokens,
            refused={**self.refused, **other.refused},
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
        In every case: a text that could not be embedded is absent. It is in ``refused``, or a
        diagnostic says why.
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
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons, keyed by text."""
    _refusals: int = 0
    """Number of requests that were refused."""
    _patience: int = 3
    """Number of refusals after which the service may refuse everything; 0 after a vector."""
    _shared: SharedVectorStore | None = None
    """The store, as long as others may embed the same texts and it says which."""

    async def embed(self, keys: Sequence[str]) -> None:
        """Embed the texts of *keys*, but for those that another process embeds."""
        if isinstance(self.store, SharedVectorStore):
            # Keys that begin alike are claimed at once.
            self._shared, keys = self.store, sorted(keys)
        texts, limits = [self.texts[key] for key in keys], self.embedder.info.limits
        batches: deque[Sequence[str]] = deque()
        batches += ([keys[at] for at in batch] for batch in split_into_batches(texts, limits))
        self._patience = min(3, 2 * len(keys) - 1)
        looks, lost = math.ceil(self.timeout_s / _LOOK_S), 0
        while batches:
            batch, before = batches.popleft(), len(self.rows) + self._refusals
            left = await self._embed_own(batch)
            if left is None:
                return
            batches.extend(left)
            if len(self.rows) + self._refusals > before:
                lost = 0
                self.progress(len(self.rows) + len(self.refused), len(self.texts))
                continue
            lost += 1
            if lost % len(batches) == 0:
                await asyncio.sleep(_LOOK_S)
            if lost >= looks * len(batches):
                self._shared = None

    async def _embed_own(self, keys: Sequence[str]) -> Sequence[Sequence[str]] | None:
        """Get the vectors of *keys* that no other process embeds.

        Returns:
            Batches that are left: the halves of a refused one, and the texts of other processes.
            None if the embedder failed.
        """
        async with self._claimed(keys) as own:
            if self._shared:
                self.keep_usable(await self.read_store([*own]))
            wanted = dict.fromkeys(key for key in own if key not in self.rows)
            halves = await self._request([*wanted])
        others = [key for key in keys if key not in self.rows and key not in wanted]
        return None if halves is None else [batch for batch in (*halves, others) if batch]

    async def _request(self, keys: Sequence[str]) -> Sequence[Sequence[str]] | None:
        """Embed the texts of *keys* in one request, and keep the vectors.

        Returns:
            The halves of *keys* if the service refuses one of the texts; None if it failed.
        """
        if not keys:
            return ()
        answer = await self._ask([self.texts[key] for key in keys])
        is_refused = isinstance(answer, Failed) and await self._accepts_others(answer)
        middle = len(keys) // 2
        if is_refused and middle and self._refusals <= _MAX_REFUSALS:
            return keys[:middle], keys[middle:]
        self.embedded += len(keys)
        if not isinstance(answer, Failed):
            new = dict(zip(keys, answer.vectors, strict=True))
            self._patience, self.dimensions = 0, answer.vectors.shape[1]
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

    async def _ask(self, texts: Sequence[str]) -> Embedded | Failed:
        """Send one request, and count the tokens of the answer."""
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
        """Return whether the service refused the texts of one request, and embeds others.

        Refusals without any vector may mean that it refuses everything: a plain text decides.
        """
        if not is_refusal(answer.error):
            return False
        self._refusals += 1
        return self._refusals != self._patience or not isinstance(await self._ask([BLANK]), Failed)

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
