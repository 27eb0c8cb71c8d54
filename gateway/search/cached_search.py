"""A search with tracing, metrics and a result cache.

The cache key contains the request and the version of the index. Degraded results are not cached.
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
"""Reasons why words or the graph ranked instead of vectors, as diagnostic codes. Telemetry reports
the first one that a result contains."""

_WEAK_RESULT_CODES = frozenset({"no_match", "low_confidence_results"})
"""Diagnostic codes for a result without a confident match."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Caches:
    """Caches of rewrites, query vectors and search results, which several gateways can share.

    The key of a result contains its gateway.
    """

    normalized: Cache[tuple[str, ...]]
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
        """Create caches with the sizes and lifetimes in *options*.

        *on_event* is called on each hit and miss.
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
    """A `Search` with a cache of its results."""

    search: Search
    cache: Cache[SearchResult]
    telemetry: Telemetry
    usage: UsageLog | None
    """Log of calls and searches. If None, searches are not logged, and past calls do not affect
    ranks."""
    identity: tuple[str, ...]
    """Ids of gateway, embedder and normalizer. Part of every cache key."""
    queue: Sized | None = None
    """Queries that are being embedded. None without an embedder."""

    def without_normalizer(self) -> CachedSearch:
        """Return a copy of this search that neither rewrites queries nor shares cached results."""
        search = replace(self.search, normalize=None)
        return replace(self, search=search, identity=_identity(search))

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return a gauge: the number of queries that wait for the embedder."""
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
        """Return the cached result of *request*, or run the search.

        *request* and *diagnostics* are as for `Search`. *task* is the id of the task, for the usage
        log; with None, the search is not logged.
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
                result = _copy_result(cached)
            else:
                result = await self.search(snapshot, request, notes, usage=signals)
                if not result.degraded:
                    self.cache.put(key, _copy_result(result))
            labels |= {"gateway.search.mode": result.mode, "gateway.cache.hit": result.cached}
            if search.is_recording:
                self._describe(search, request.queries, result)
        for code in {note.code for note in result.diagnostics} & _WEAK_RESULT_CODES:
            self.telemetry.add("gateway.search.weak_results", 1, {"gateway.diagnostic.code": code})
        if not result.cached:
            self._record_metrics(result)
        if self.usage is not None and task is not None:
            self.usage.note_search(request.queries, result, task=task, tenant=request.tenant)
        return result

    async def signals(self, snapshot: Snapshot, tenant: str) -> UsageSignals:
        """Return the signals learned from the calls that *tenant* may use."""
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

    def _record_metrics(self, result: SearchResult) -> None:
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


def _copy_result(result: SearchResult) -> SearchResult:
    """Copy *result* into or out of the cache, because callers may change its mutable parts."""
    return replace(result, cached=True, stages=dict(result.stages))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchParts:
    """Components from which `cached_search` builds the search of a gateway."""

    options: SearchOptions
    strategy: Strategy
    embedder: Embedder | None
    normalizer: Normalizer | None
    correct: Correct | None
    signals: Sequence[Signal]
    """Ranking signals of plugins."""
    rankings: Mapping[str, Callable[[], CatalogRanking]]
    """Factories of the plugins' ranking policies, keyed by name."""
    usage: UsageLog | None
    """Log of calls and searches; None without a log."""
    caches: Caches
    submit: Submit[Any]
    """Starts a coroutine on the gateway's event loop."""
    telemetry: Telemetry


def cached_search(parts: SearchParts) -> CachedSearch:
    """Build the search of a gateway from its components.

    Raises:
        ConfigError: If the normalizer or the caches have the wrong type.
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
    embedder, normalizer, caches = parts.embedder, parts.normalizer, parts.caches
    check_members("caches", caches, "a Caches", "normalized", "embeddings", "results")
    # A request to a model may run longer than its search, so that later searches get the answer.
    # The timeout ends requests that are never answered.
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
