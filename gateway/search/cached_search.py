"""A search that is traced, measured and cached.

Equal requests on an equal index are answered by the cache; degraded results are not kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import urandom
from typing import Any

from gateway.embed.cache import Flights, QueryEmbedder, QueryEmbeddings
from gateway.embed.protocol import Embedder
from gateway.index.snapshot import Snapshot
from gateway.options import CacheOptions, SearchOptions
from gateway.options.validation import check_members
from gateway.runtime.cache import (
    Cache,
    CacheListener,
    Clock,
    LoopFlight,
    SingleFlight,
    Submit,
    key_of,
)
from gateway.runtime.telemetry import CONTENT_ATTRIBUTES, Attributes, Span, Telemetry
from gateway.runtime.vectors import Vector
from gateway.search.normalize import CachedNormalizer, Normalizer
from gateway.search.pipeline import Search
from gateway.search.state import SHARED_TIMEOUT_FACTOR
from gateway.spelling.corrector import SpellingCorrector
from gateway.spelling.word_lists import find_word_lists
from gateway.types import Diagnostic, SearchRequest, SearchResult, Strategy
from gateway.usage.history import UsageSignals, UsageTracker

_FALLBACK_REASONS = (
    "index_building",
    "embedder_missing",
    "embedding_failed",
    "query_vector_unusable",
    "vectors_incomplete",
)
"""Why words or the graph rank instead of vectors; the first of these that is noted is reported."""


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


def caches_of(
    given: Caches | None, options: CacheOptions, *, clock: Clock, on_event: CacheListener
) -> Caches:
    """Return the caches that a host shares, else new ones; see `Caches.of`.

    Raises:
        ConfigError: What is given is none.
    """
    if given is None:
        return Caches.of(options, clock=clock, on_event=on_event)
    check_members("caches", given, "a Caches", "normalized", "embeddings", "results")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSearch:
    """Runs a `Search` once for equal requests on an equal index."""

    search: Search
    cache: Cache[SearchResult]
    telemetry: Telemetry
    usage: UsageTracker
    identity: tuple[str, ...]
    """Gateway, embedder and normalizer. Part of every key."""

    async def __call__(
        self, snapshot: Snapshot, request: SearchRequest, diagnostics: Sequence[Diagnostic]
    ) -> SearchResult:
        """Return the cached result of *request*, or search.

        Args:
            snapshot: The index.
            request: Checked by `gateway.search.request`.
            diagnostics: Those that the caller has already.
        """
        labels: dict[str, str | int | float | bool] = {
            "gateway.search.strategy": self.search.strategy
        }
        with (
            self.telemetry.span("retrieval", "catalog", self._attributes(request.limit)) as span,
            self.telemetry.timed("gateway.search.duration", labels),
        ):
            signals = await self.usage.signals(snapshot, request.tenant)
            key = self._key(snapshot, request, diagnostics, signals)
            result = self.cache.get(key)
            if result is None:
                result = await self.search(snapshot, request, diagnostics, usage=signals)
                if not result.degraded:
                    self.cache.put(key, replace(result, cached=True))
            labels |= {"gateway.search.mode": result.mode, "gateway.cache.hit": result.cached}
            if span.is_recording():
                self._describe(span, request.queries, result)
        self.usage.note_result(result)
        if not result.cached:
            self._measure(result)
        return result

    def _attributes(self, limit: int) -> Attributes:
        return {
            "gen_ai.data_source.id": "catalog",
            "gen_ai.retrieval.top_k": limit,
            "gateway.search.strategy": self.search.strategy,
        }

    def _key(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        diagnostics: Sequence[Diagnostic],
        signals: UsageSignals,
    ) -> Hashable:
        return key_of(
            self.identity,
            snapshot.version,
            self.search.strategy,
            # Field by field: most are the very objects of the last time, and compared as such.
            request.queries,
            request.context,
            request.limit,
            request.filters,
            request.ranking,
            request.diversify,
            request.display_limit,
            request.tenant,
            signals.fingerprint,
            tuple(diagnostics),
        )

    def _describe(self, span: Span, queries: Sequence[str], result: SearchResult) -> None:
        span.set_attributes(
            {
                "gateway.search.mode": result.mode,
                "gateway.search.eligible": result.counts.eligible,
                "gateway.search.matches": len(result.matches),
                "gateway.cache.hit": result.cached,
            }
        )
        if self.telemetry.capture_content:
            found = [{"id": match.id, "score": match.score} for match in result.matches]
            span.set_attribute(CONTENT_ATTRIBUTES.query, " | ".join(queries))
            span.set_attribute(CONTENT_ATTRIBUTES.documents, json.dumps(found))

    def _measure(self, result: SearchResult) -> None:
        for stage, spent in result.stages.items():
            self.telemetry.record(
                "gateway.search.stage.duration", spent, {"gateway.search.stage": stage}
            )
        lists = {
            "match": result.matches,
            "prerequisite": result.prerequisites,
            "related": result.related,
            "next_step": result.next_steps,
        }
        for kind, found in lists.items():
            self.telemetry.record(
                "gateway.search.results", len(found), {"gateway.match.kind": kind}
            )
        codes = {note.code for note in result.diagnostics}
        if codes & {"graph_fallback", "lexical_fallback"}:
            reason = next((code for code in _FALLBACK_REASONS if code in codes), "no_vectors")
            self.telemetry.add(
                "gateway.search.fallbacks", attributes={"gateway.fallback.reason": reason}
            )


def cached_search(  # noqa: PLR0913  (keyword-only, wired in one place)
    options: SearchOptions,
    *,
    strategy: Strategy,
    embedder: Embedder | None,
    normalizer: Normalizer | None,
    caches: Caches,
    submit: Submit[Any],
    telemetry: Telemetry,
    usage: UsageTracker,
) -> CachedSearch:
    """Put a search together from what a gateway has.

    Args:
        options: Limits and weights.
        strategy: What ranks.
        embedder: None for a search without vectors.
        normalizer: None for queries as they are.
        caches: What is remembered, of queries and of results.
        submit: Starts work on the gateway's own loop.
        telemetry: Told of everything.
        usage: What calls say.

    Raises:
        ConfigError: The normalizer is none.
    """
    model = embedder.info.model_id if embedder else ""
    timeout_s = SHARED_TIMEOUT_FACTOR * options.query_timeout_s
    embed = normalize = None
    if embedder is not None:
        flights = _flights(embedder, submit, caches.embeddings.name, telemetry)
        embed = QueryEmbedder(
            embedder,
            cache=caches.embeddings,
            flights=flights,
            telemetry=telemetry,
            timeout_s=timeout_s,
        )
    if normalizer is not None:
        normalize = _normalizer(normalizer, caches, submit, telemetry, timeout_s)
    search = Search(
        options=options,
        strategy=strategy,
        embed=embed,
        model=model,
        normalize=normalize,
        correct=SpellingCorrector(find_word_lists()) if options.spelling else None,
    )
    rewriter = normalizer.model_id if normalizer is not None else ""
    return CachedSearch(
        search=search,
        cache=caches.results,
        telemetry=telemetry,
        usage=usage,
        identity=(urandom(16).hex(), model, rewriter),
    )


def _normalizer(
    normalizer: Normalizer,
    caches: Caches,
    submit: Submit[Any],
    telemetry: Telemetry,
    timeout_s: float,
) -> CachedNormalizer:
    check_members("normalizer", normalizer, "a Normalizer", "rewrite", "model_id", "provider")
    cache = caches.normalized
    flights = SingleFlight[str](submit, name=cache.name, on_event=telemetry.cache_event)
    return CachedNormalizer(
        normalizer, cache=cache, flights=flights, telemetry=telemetry, most_s=timeout_s
    )


def _flights(
    embedder: Embedder, submit: Submit[QueryEmbeddings], name: str, telemetry: Telemetry
) -> Flights:
    """Return what shares the embedding of equal queries that come at once.

    The client of a service is used on the gateway's own loop alone, since its connections belong to
    it. The local model is asked on the caller's loop: that saves a hop between threads.
    """
    if embedder.info.provider == "local":
        from gateway.embed.local.embedder import LocalEmbedder  # noqa: PLC0415  (whose modules are there if it is)

        if isinstance(embedder, LocalEmbedder):
            return LoopFlight[QueryEmbeddings](name=name, on_event=telemetry.cache_event)
    return SingleFlight[QueryEmbeddings](submit, name=name, on_event=telemetry.cache_event)
