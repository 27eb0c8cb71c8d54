"""The state of one search (diagnostics, counts, times), and embedding of its queries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from gateway.embed.cache import Embed, QueryEmbeddings
from gateway.errors import (
    ClosedError,
    EmbeddingError,
    Failed,
    GatewayError,
    attempt_call,
    attempt_within,
)
from gateway.index.candidates import CatalogVectors
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.options import SearchOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.vectors import Vector
from gateway.search.learned import NO_SIGNALS, UsageSignals
from gateway.search.query import Query
from gateway.types import (
    Code,
    Counts,
    Diagnostic,
    Match,
    RankingMode,
    SearchRequest,
    SearchResult,
    Stage,
)

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class SearchState:
    """The state of a running search."""

    options: SearchOptions
    snapshot: Snapshot
    request: SearchRequest
    mask: Mask
    """Eligible entities, shape (n,)."""
    diagnostics: list[Diagnostic]
    """Diagnostics in the order in which the stages add them."""
    usage: UsageSignals = NO_SIGNALS
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds spent so far in each stage, keyed by stage."""
    recorded_at: float = field(default_factory=time.perf_counter)
    """Time of the last `record_time`, from `time.perf_counter`."""
    counts: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = Counts(eligible=int(np.count_nonzero(self.mask)))

    def record_time(self, stage: Stage) -> None:
        """Add the time since the last call of this method to *stage*."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self.recorded_at
        self.recorded_at = now

    def add_diagnostic(self, stage: Stage, code: Code, detail: str = "") -> None:
        """Add a diagnostic."""
        self.diagnostics.append(Diagnostic(stage=stage, code=code, detail=detail))

    def copy(self) -> SearchState:
        """Return a copy for an attempt that may fail. Changes to it do not affect this state."""
        copied = replace(self, diagnostics=[*self.diagnostics], seconds={**self.seconds})
        copied.counts = self.counts
        return copied

    def result(self, mode: RankingMode, matches: tuple[Match, ...] = ()) -> SearchResult:
        """Return a result with these matches, and the diagnostics, counts and times so far."""
        return SearchResult(
            matches=matches,
            mode=mode,
            diagnostics=tuple(self.diagnostics),
            counts=self.counts,
            normalized=self.request.queries,
            stages=self.seconds,
        )

    async def attempt_stage(
        self, stage: Stage, code: Code, works: Sequence[Awaitable[T]]
    ) -> list[T | None]:
        """Await all *works* of an optional stage, with the timeout of queries.

        Returns:
            The result of each work; None if it failed or timed out. A diagnostic with *code* or
            ``query_vector_unusable`` then gives the reason.

        Raises:
            ClosedError: If the gateway was closed.
        """
        timeout_s = self.options.query_timeout_s
        results = await asyncio.gather(*(with_timeout(work, timeout_s) for work in works))
        self.record_time(stage)
        return [self._result_of(stage, code, result) for result in results]

    def _result_of(self, stage: Stage, code: Code, result: T | Failed) -> T | None:
        if not isinstance(result, Failed):
            return result
        if isinstance(result.error, ClosedError):
            raise result.error
        unusable = isinstance(result.error, EmbeddingError)
        self.add_diagnostic(stage, "query_vector_unusable" if unusable else code, result.reason)
        return None


async def with_timeout(work: Awaitable[T], timeout_s: float) -> T | Failed:
    """Await *work* for at most *timeout_s* seconds. Return its result, or the failure."""
    timeout_error = GatewayError(
        f"it took longer than {timeout_s:g} s (SearchOptions.query_timeout_s)"
    )
    return await attempt_within(work, timeout_s, timeout_error)


async def with_vectors(
    vectors: CatalogVectors | None, work: Callable[[], T], timeout_s: float
) -> T | Failed:
    """Run *work*, which reads *vectors*; in a thread if *vectors* are in a database.

    Returns:
        The result of *work*. A `Failed` if the database times out or *work* raises a
        `GatewayError`.
    """
    if vectors is None or not vectors.blocking:
        answer = attempt_call(work)
    else:
        answer = await with_timeout(in_thread(work), timeout_s)
    if isinstance(answer, Failed) and not isinstance(answer.error, GatewayError):
        raise answer.error
    return answer


async def request_vectors(
    state: SearchState, embed: Embed, queries: Sequence[Query]
) -> dict[str, Vector]:
    """Embed all queries in one request. If it fails or is late, send one request for each query.

    Returns:
        The vectors, keyed by text. Texts that could not be embedded are absent.
    """
    groups = [list(dict.fromkeys(query.texts_to_embed)) for query in queries]
    everything, dimensions = list(dict.fromkeys(chain(*groups))), state.snapshot.dimensions
    results: list[QueryEmbeddings | None] = []
    if len(groups) > 1:
        work = embed(everything, dimensions)
        result = await with_timeout(work, state.options.query_timeout_s / 2)
        if not isinstance(result, Failed):
            groups, results = [everything], [result]
    if not results:
        works = [embed(texts, dimensions) for texts in groups]
        results = await state.attempt_stage("embed", "embedding_failed", works)
    state.record_time("embed")
    answers = [
        (texts, embeddings) for texts, embeddings in zip(groups, results, strict=True) if embeddings
    ]
    state.counts = replace(
        state.counts,
        embedded_texts=sum(embeddings.embedded for _, embeddings in answers),
        tokens=sum(embeddings.tokens for _, embeddings in answers),
    )
    return {
        text: row
        for texts, embeddings in answers
        for text, row in zip(texts, embeddings.vectors, strict=True)
    }
