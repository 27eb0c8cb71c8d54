"""What was listed -> a snapshot, again and again: the catalog, its texts and vectors, the index.

Only new or changed texts are embedded, and a change costs what changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from gateway.embed.cache import DocumentVectors, document_vectors
from gateway.embed.protocol import Embedder
from gateway.index.embedding_texts import Texts
from gateway.index.made import Made
from gateway.index.snapshot import Snapshot
from gateway.index.snapshots import Snapshots
from gateway.options import GraphOptions
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.entity_registry import EntityRegistry
from gateway.sources.registry import ListResult, Registration
from gateway.types import Diagnostic
from graphs.markdown.document import Document

_NONE = DocumentVectors(rows={})


class Making:
    """Makes each snapshot from the one before. Not for two builds at once.

    Args:
        embedder: None for an index without vectors.
        store: Where vectors persist.
        derive: Which edges are derived.
        reserved: Names that no tool may have.
        telemetry: Told of the requests to the embedder.
        progress: Told how many of how many texts are embedded.
        hurried: Set while somebody who needs no vectors waits for a build: it is then made with the
            vectors that are kept, and is `Made.early`.
    """

    def __init__(  # noqa: PLR0913  (keyword-only, wired in one place)
        self,
        *,
        embedder: Embedder | None,
        store: VectorStore,
        derive: GraphOptions,
        reserved: frozenset[str],
        telemetry: Telemetry,
        progress: Callable[[int, int], None],
        hurried: asyncio.Event | None = None,
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._derive = derive
        self._reserved = reserved
        self._telemetry = telemetry
        self._progress = progress
        self._known = EntityRegistry(reserved=reserved)
        self._snapshots = self._nothing()
        self._last: Snapshot | None = None
        self._whole = True
        """Whether the last build came to its end."""
        self._rounds: list[DocumentVectors] = []
        """What was embedded between two builds. The next build that puts nothing off takes it."""
        self._hurried = hurried or asyncio.Event()
        self._left: asyncio.Task[DocumentVectors] | None = None
        """What a hurried build began to embed and left to `embed`."""

    async def __call__(
        self,
        registrations: Mapping[str, Registration],
        listed: Mapping[str, ListResult],
        documents: Sequence[Document],
        *,
        version: int,
        diagnostics: Sequence[Diagnostic],
        most: int | None = None,
    ) -> Made:
        """Make the next snapshot; see `gateway.index.made.Make`."""
        if not self._whole:
            # A build that was broken off left half a change behind: begin with nothing.
            self._known = EntityRegistry(reserved=self._reserved)
            self._snapshots = self._nothing()
        self._whole = False
        turnover = self._known.update(registrations, listed)
        texts = self._snapshots.texts
        texts.change(turnover.removed, turnover.added)
        rounds = len(self._rounds)
        ahead = self._ahead(texts)
        vectors = (await self._unhurried(texts, ahead, most)).after(ahead)
        texts.embedded(vectors.rows)
        if not vectors.put_off:
            # Another round may have come to its end meanwhile.
            del self._rounds[:rounds]
        judged = self._embedder is not None and not vectors.put_off
        incomplete = _incomplete(texts) if judged else []
        self._last = self._snapshots.change(
            turnover,
            version=version,
            documents=documents,
            diagnostics=[*diagnostics, *self._known.notes, *vectors.diagnostics, *incomplete],
        )
        self._whole = True
        return Made(
            snapshot=self._last,
            complete=not (incomplete or vectors.put_off),
            early=vectors.put_off,
            embedded=vectors.embedded,
            tokens=vectors.tokens,
        )

    def _nothing(self) -> Snapshots:
        return Snapshots(self._derive)

    async def embed(self) -> None:
        """Embed what the last build put off; what fails is left to a later build."""
        if self._left is not None:
            try:
                self._rounds.append(await self._left)
            finally:
                self._left = None
            return
        texts = self._snapshots.texts
        ahead = self._ahead(texts)
        if not ahead.failed:
            self._rounds.append(await self._embedded(texts, ahead))

    async def _unhurried(
        self, texts: Texts, ahead: DocumentVectors, most: int | None
    ) -> DocumentVectors:
        """Embed what is wanted, until somebody is in a hurry: `embed` then waits for the rest."""
        if self._hurried.is_set() or self._left is not None:
            return await self._embedded(texts, ahead, 0)
        embedding = asyncio.ensure_future(self._embedded(texts, ahead, most))
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait({embedding, hurried}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            embedding.cancel()
            raise
        finally:
            hurried.cancel()
        if embedding.done():
            return await embedding
        self._left = embedding
        return await self._embedded(texts, ahead, 0)

    def _ahead(self, texts: Texts) -> DocumentVectors:
        """Give what was embedded between two builds; its failures only if more is wanted."""
        ahead = reduce(lambda so_far, each: each.after(so_far), self._rounds, _NONE)
        return ahead if texts.wanted else ahead.mended

    async def _embedded(
        self, texts: Texts, ahead: DocumentVectors, most: int | None = None
    ) -> DocumentVectors:
        """Embed what is wanted and not in *ahead*."""
        if self._embedder is None or not texts.wanted:
            return _NONE
        vectors = await document_vectors(
            sorted(text for key, text in texts.wanted.items() if key not in ahead.rows),
            embedder=self._embedder,
            store=self._store,
            telemetry=self._telemetry,
            dimensions=self._last.dimensions if self._last else None,
            progress=self._progress,
            most=0 if ahead.failed else most,
        )
        # An embedder that has just failed is not asked again at once.
        return replace(vectors, put_off=vectors.put_off and not ahead.failed)


def _incomplete(texts: Texts) -> list[Diagnostic]:
    if not texts.wanted:
        return []
    detail = f"{len(texts.rows)} of {texts.count} texts have a vector"
    return [Diagnostic(stage="embed", code="vectors_incomplete", detail=detail)]
