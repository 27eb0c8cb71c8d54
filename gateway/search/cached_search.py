"""A search that is traced, measured and cached.

Equal requests on an equal index are answered by the cache; degraded results are not kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from os import urandom
from typing import Any

from gateway.embed.cache import QueryEmbedder
from gateway.embed.protocol import Embedder, is_preparing
from gateway.index.snapshot import Snapshot
from gateway.options import CacheOptions, SearchOptions
from gateway.options.validation import check_members
from gateway.runtime.breaker import ServiceGuard
from gateway.runtime.cache import Cache, CacheListener, Clock, SingleFlight, Submit, key_of
from gateway.runtime.telemetry import Labels, Telemetry, TimedSpan
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES
from gateway.runtime.vectors import Vector
from gateway.search.learned import NO_SIGNALS, UsageLog, UsageSignals
from gateway.search.normalize import CachedNormalizer, Normalizer
from gateway.search.pipeline import Search
from gateway.search.query import Correct
from gateway.search.rank.policies import CatalogRanking, all_rankings
from gateway.search.signals.every import all_signals
from gateway.search.signals.signal import Signal
from gateway.types import Diagnostic, SearchRequest, SearchResult, Strategy

_FALLBACK_REASONS = (
    "index_building",
    "embedder_missing",
    "embedding_failed",
    "query_vector_unusable",
    "vectors_incomplete",
    "vectors_unavailable",
)
"""Why words or the graph rank instead of vectors; the first of these that is noted is reported."""

_WEAK = frozenset({"no_match", "low_confidence_results"})
"""What says that a result may not be what was wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Caches:
    """The process-local caches. Several gateways may share them: keys hold the gateway."""

    normalized: Cache[str]
    embeddings: Cache[Vector]
    results: Cache[SearchResult]

    @classmethod
    def of(
        cls,
        options: CacheOptions,
        *,
        clock: Clock = time.monotonic,
        on_event: CacheListener | None = None,
    ) -> Caches:
        """Make the caches that *options* describe.

        Args:
            options: Sizes and lifetimes.
            clock: Seconds that only grow.
            on_event: Called on each hit and miss.
        """
        cache = partial(Cache[Any], clock=clock, on_event=on_event)
        return cls(
            normalized=cache(
                "normalize", max_items=options.normalized_items, ttl_s=options.normalized_ttl_s
            ),
            embeddings=cache(
                "query_embedding", max_items=options.embedding_items, ttl_s=options.embedding_ttl_s
            ),
            results=cache("result", max_items=options.result_items, ttl_s=options.result_ttl_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSearch:
    """Runs a `Search` once for equal requests on an equal index."""

    search: Search
    cache: Cache[SearchResult]
    telemetry: Telemetry
    usage: UsageLog | None
    """The log of calls and searches; None notes nothing and has no signals."""
    identity: tuple[str, ...]
    """Gateway, embedder and normalizer. Part of every key."""
    queue: Sized | None = None
    """The queries that are being embedded; None without an embedder."""

    def without_normalizer(self) -> CachedSearch:
        """Return the same search for queries as they are, with cached results of its own."""
        search = replace(self.search, normalize=None)
        return replace(self, search=search, identity=_identity(search))

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return how long the queue of the embedder is."""
        queue = self.queue
        return {} if queue is None else {"gateway.embedding.queue": {"query": len(queue)}}

    async def __call__(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        diagnostics: Sequence[Diagnostic],
        *,
        task: str | None = "",
    ) -> SearchResult:
        """Return the cached result of *request*, or search.

        Args:
            snapshot: The index.
            request: Checked by `gateway.search.request`.
            diagnostics: Those that the caller has already.
            task: What it belongs to, for the log of calls; None keeps it out of that.
        """
        strategy = self.search.strategy
        labels: Labels = {"gateway.search.strategy": strategy}
        attributes: Labels = {
            "gen_ai.data_source.id": "catalog",
            "gen_ai.request.top_k": request.limit,
        }
        search = self.telemetry.operation(
            "retrieval", "catalog", attributes, metric="gateway.search.duration", labels=labels
        )
        with search.within():
            signals = await self.signals(snapshot, request.tenant)
            notes = tuple(diagnostics)
            key = key_of(self.identity, snapshot.version, request, signals.fingerprint, notes)
            cached = self.cache.get(key)
            if cached is not None:
                result = _copy(cached)
            else:
                result = await self.search(snapshot, request, notes, usage=signals)
                if not result.degraded:
                    self.cache.put(key, _copy(result))
            labels |= {"gateway.search.mode": result.mode, "gateway.cache.hit": result.cached}
            if search.is_recording:
                self._describe(search, request.queries, result)
        for code in {note.code for note in result.diagnostics} & _WEAK:
            self.telemetry.add("gateway.search.weak_results", 1, {"gateway.diagnostic.code": code})
        if not result.cached:
            self._measure(result)
        if self.usage is not None and task is not None:
            self.usage.note_search(request.queries, result, task=task, tenant=request.tenant)
        return result

    async def signals(self, snapshot: Snapshot, tenant: str) -> UsageSignals:
        """Return the lessons of past calls; see `UsageLog.signals`."""
        return NO_SIGNALS if self.usage is None else await self.usage.signals(snapshot, tenant)

    def _describe(self, search: TimedSpan, queries: Sequence[str], result: SearchResult) -> None:
        described: Labels = {
            "gateway.search.mode": result.mode,
            "gateway.search.eligible": result.counts.eligible,
            "gateway.search.matches": len(result.matches),
            "gateway.cache.hit": result.cached,
        }
        if self.telemetry.capture_content:
            matches = [{"id": match.id, "score": match.score} for match in result.matches]
            described[CONTENT_ATTRIBUTES.query] = " | ".join(queries)
            described[CONTENT_ATTRIBUTES.documents] = json.dumps(matches)
        search.describe(described)

    def _measure(self, result: SearchResult) -> None:
        record = self.telemetry.record
        for stage, spent in result.stages.items():
            record("gateway.search.stage.duration", spent, {"gateway.search.stage": stage})
        lists = {
            "match": result.matches,
            "prerequisite": result.prerequisites,
            "related": result.related,
            "next_step": result.next_steps,
        }
        for kind, matches in lists.items():
            record("gateway.search.results", len(matches), {"gateway.match.kind": kind})
        codes = {note.code for note in result.diagnostics}
        if codes & {"graph_fallback", "lexical_fallback"}:
            reason = next((code for code in _FALLBACK_REASONS if code in codes), "no_vectors")
            labels = {"gateway.fallback.reason": reason}
            self.telemetry.add("gateway.search.fallbacks", attributes=labels)


def _copy(result: SearchResult) -> SearchResult:
    """Return *result* for the cache, or from it: what its caller may change is a copy."""
    return replace(result, cached=True, stages=dict(result.stages))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParts:
    """What a search is put together from."""

    options: SearchOptions
    strategy: Strategy
    embedder: Embedder | None
    """None for a search without vectors."""
    normalizer: Normalizer | None
    """None for queries as they are."""
    correct: Correct | None
    """None for a search that corrects no spelling."""
    signals: Sequence[Signal]
    """Those of plugins."""
    rankings: Mapping[str, Callable[[], CatalogRanking]]
    """Functions of plugins that make ranking policies, keyed by name."""
    usage: UsageLog | None
    """None for a search that nobody notes, and that learns nothing from calls."""
    caches: Caches
    submit: Submit[Any]
    """Starts work on the gateway's own loop."""
    telemetry: Telemetry


def cached_search(parts: SearchParts) -> CachedSearch:
    """Put a search together from what a gateway has.

    Raises:
        ConfigError: The normalizer is none, or the caches are.
    """
    search, queue = _make_search(parts)
    return CachedSearch(
        search=search,
        cache=parts.caches.results,
        telemetry=parts.telemetry,
        usage=parts.usage,
        identity=_identity(search, parts.normalizer),
        queue=queue,
    )


def _identity(search: Search, normalizer: Normalizer | None = None) -> tuple[str, ...]:
    return urandom(16).hex(), search.model, normalizer.model_id if normalizer else ""


def _make_search(parts: SearchParts) -> tuple[Search, Sized | None]:
    """Make the stages of a search.

    Returns:
        The search, and the queries that are being embedded; None without an embedder.
    """
    embedder, normalizer, caches = parts.embedder, parts.normalizer, parts.caches
    check_members("caches", caches, "a Caches", "normalized", "embeddings", "results")
    # Shared work outlives a search that gave it up: a late caller still waits for something, and a
    # request without an answer is not waited for by all to come.
    patience_s = parts.options.query_timeout_s
    shared: dict[str, Any] = {"telemetry": parts.telemetry, "timeout_s": 3 * patience_s}
    flights = partial(SingleFlight[Any], parts.submit, on_event=parts.telemetry.cache_event)
    guard = partial(ServiceGuard, patience_s=patience_s, submit=parts.submit)
    embed = normalize = queue = None
    if embedder is not None:
        cache = caches.embeddings
        queue = flights(name=cache.name)
        share = partial(guard("embedder").run, queue)
        embed = QueryEmbedder(embedder=embedder, cache=cache, share=share, **shared)
    if normalizer is not None:
        check_members("normalizer", normalizer, "a Normalizer", "rewrite", "model_id", "provider")
        normalize = CachedNormalizer(
            normalizer=normalizer,
            cache=caches.normalized,
            share=partial(guard("normalizer").run, flights(name=caches.normalized.name)),
            **shared,
        )
    search = Search(
        options=parts.options,
        strategy=parts.strategy,
        embed=embed,
        model=embedder.info.model_id if embedder else "",
        is_preparing=partial(is_preparing, embedder),
        normalize=normalize,
        correct=parts.correct,
        signals=all_signals(parts.options, parts.signals),
        rankings=all_rankings({name: make() for name, make in parts.rankings.items()}),
    )
    return search, queue
