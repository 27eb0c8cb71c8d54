"""A search that is traced, measured and remembered.

* Equal requests on an equal index are answered by the cache; degraded results are never kept.
* A plain request, one query and nothing besides, that came from the cache once is remembered by its
  text alone (`RememberedSearch.recall`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import urandom
from typing import Any, NamedTuple

from gateway.checks import check_shape
from gateway.embed.cache import Flights, QueryRows, QueryVectors
from gateway.embed.protocol import Embedder
from gateway.index.snapshot import Snapshot
from gateway.options import CacheOptions, SearchOptions
from gateway.runtime.cache import Cache, Clock, LoopFlight, SingleFlight, Submit, Told, key_of
from gateway.runtime.telemetry import Span, Telemetry
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, Attributes
from gateway.runtime.vectors import Vector
from gateway.search.normalize import CachedNormalizer, Normalizer
from gateway.search.patience import SHARED
from gateway.search.pipeline import Search
from gateway.search.spelling.mending import Mending
from gateway.search.spelling.wordlists import installed
from gateway.search.usage.memory import Usage
from gateway.search.usage.signals import Signals
from gateway.types import Diagnostic, Filters, SearchRequest, SearchResult, Strategy

_FALLBACK_REASONS = (
    "index_building",
    "embedder_missing",
    "embedding_failed",
    "query_vector_unusable",
    "vectors_incomplete",
)
"""Why words or the graph rank instead of vectors; the first of these that is noted is reported."""
_ANYBODY = Filters()
_MOST_RECENT = 256
"""So many plain searches are remembered by their text; one more empties the table."""


class _Recent(NamedTuple):
    """What `recall` needs to find, trace and measure a search that the cache answered."""

    version: int
    """Of the index."""
    key: Hashable
    """Under which the cache has the result."""
    attributes: Attributes
    labels: Attributes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Caches:
    """The process-local caches. Several gateways may share them: keys hold who asks."""

    normalized: Cache[str]
    embeddings: Cache[Vector]
    results: Cache[SearchResult]

    @classmethod
    def of(
        cls, options: CacheOptions, *, clock: Clock = time.monotonic, told: Told | None = None
    ) -> Caches:
        """Make the caches that *options* describe.

        Args:
            options: Sizes and lifetimes.
            clock: Seconds that only grow.
            told: Told of each hit and miss.
        """
        cache = partial(Cache[Any], clock=clock, told=told)
        return cls(
            normalized=cache(
                "normalize", max_items=options.normalized_items, ttl_s=options.normalized_ttl_s
            ),
            embeddings=cache(
                "query_embedding", max_items=options.embedding_items, ttl_s=options.embedding_ttl_s
            ),
            results=cache("result", max_items=options.result_items, ttl_s=options.result_ttl_s),
        )


def caches_of(given: Caches | None, options: CacheOptions, *, clock: Clock, told: Told) -> Caches:
    """Give the caches that a host shares, else new ones; see `Caches.of`.

    Raises:
        ConfigError: What is given is none.
    """
    if given is None:
        return Caches.of(options, clock=clock, told=told)
    check_shape("caches", given, "a Caches", "normalized", "embeddings", "results")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedSearch:
    """Runs a `Search` once for equal requests on an equal index."""

    search: Search
    cache: Cache[SearchResult]
    telemetry: Telemetry
    usage: Usage
    identity: tuple[str, ...]
    """Who asks: gateway, embedder and normalizer. Part of every key."""
    recent: dict[str, _Recent] = field(default_factory=dict)
    """Plain searches that the cache answered, by their only query; filled here."""

    async def __call__(
        self, snapshot: Snapshot, request: SearchRequest, notes: Sequence[Diagnostic]
    ) -> SearchResult:
        """Give what *request* was answered with before, or search.

        Args:
            snapshot: The index.
            request: What is asked.
            notes: What is known to be amiss already.
        """
        labels: dict[str, str | int | float | bool] = {
            "gateway.search.strategy": self.search.strategy
        }
        with (
            self.telemetry.span("retrieval", "catalog", self._attributes(request.limit)) as span,
            self.telemetry.timed("gateway.search.duration", labels),
        ):
            signals = await self.usage.signals(snapshot, request.tenant)
            key = self._key(snapshot, request, notes, signals)
            result = self.cache.get(key)
            if result is None:
                result = await self.search(snapshot, request, notes, use=signals)
                if self.cache.keeps and not result.degraded:
                    self.cache.put(key, replace(result, cached=True))
            labels |= {"gateway.search.mode": result.mode, "gateway.cache.hit": result.cached}
            if span.is_recording():
                self._describe(span, request.queries, result)
        self.usage.showed(result)
        if not result.cached:
            self._measure(result)
        elif not (notes or self.usage.options.reads) and _plain(request, self.search.options):
            self._note(request.queries[0], snapshot, key, labels)
        return result

    def recall(self, snapshot: Snapshot, query: str) -> SearchResult | None:
        """Give what a plain search for *query* was answered with, traced and measured as any.

        Args:
            snapshot: The index as it is now.
            query: As it was asked, to the letter.

        Returns:
            None if it must be searched for: the cache never answered it, has dropped the answer, or
            holds it for another index; or what calls say may change it.
        """
        recent = self.recent.get(query)
        if recent is None or recent.version != snapshot.version:
            return None
        began = time.perf_counter()
        result = self.cache.again(recent.key)
        if result is None:
            return None
        span = self.telemetry.begin("retrieval", "catalog", recent.attributes)
        if span.is_recording():
            self._describe(span, (query,), result)
        span.end()
        spent = time.perf_counter() - began
        self.telemetry.record("gateway.search.duration", spent, recent.labels)
        return result

    def _note(self, query: str, snapshot: Snapshot, key: Hashable, labels: Attributes) -> None:
        if len(self.recent) >= _MOST_RECENT:
            self.recent.clear()
        attributes = self._attributes(self.search.options.limit)
        self.recent[query] = _Recent(snapshot.version, key, attributes, {**labels})

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
        notes: Sequence[Diagnostic],
        signals: Signals,
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
            request.spread,
            request.places,
            request.tenant,
            signals.mark,
            tuple(notes),
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


def _plain(request: SearchRequest, options: SearchOptions) -> bool:
    """Whether *request* is one query, and all else in it is the default."""
    return len(request.queries) == 1 and request == SearchRequest(
        queries=request.queries, context="", limit=options.limit, filters=_ANYBODY
    )


def remembered(  # noqa: PLR0913  (keyword-only, wired in one place)
    options: SearchOptions,
    *,
    strategy: Strategy,
    embedder: Embedder | None,
    normalizer: Normalizer | None,
    caches: Caches,
    submit: Submit[Any],
    telemetry: Telemetry,
    usage: Usage,
) -> RememberedSearch:
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
    embed = known = normalize = None
    most_s = SHARED * options.query_timeout_s
    if embedder is not None:
        flights = _flights(embedder, submit, caches.embeddings.name, telemetry)
        embed = QueryVectors(
            embedder, cache=caches.embeddings, flights=flights, telemetry=telemetry, most_s=most_s
        )
        known = embed.known
    if normalizer is not None:
        check_shape("normalizer", normalizer, "a Normalizer", "rewrite", "model_id", "provider")
        rewrites = SingleFlight[str](
            submit, name=caches.normalized.name, told=telemetry.cache_event
        )
        normalize = CachedNormalizer(
            normalizer,
            cache=caches.normalized,
            flights=rewrites,
            telemetry=telemetry,
            most_s=most_s,
        )
    return RememberedSearch(
        search=Search(
            options=options,
            strategy=strategy,
            embed=embed,
            known=known,
            model=embedder.info.model_id if embedder else "",
            normalize=normalize,
            mend=Mending(installed()) if options.spelling else None,
        ),
        cache=caches.results,
        telemetry=telemetry,
        usage=usage,
        identity=(
            urandom(16).hex(),
            embedder.info.model_id if embedder else "",
            normalizer.model_id if normalizer is not None else "",
        ),
    )


def _flights(
    embedder: Embedder, submit: Submit[QueryRows], name: str, telemetry: Telemetry
) -> Flights:
    """Give what shares the embedding of equal queries that come at once.

    The client of a service is used on the gateway's own loop alone, since its connections belong to
    it. The local model is asked on the caller's loop: that saves a hop between threads.
    """
    if embedder.info.provider == "local":
        from gateway.embed.local.embedder import LocalEmbedder  # noqa: PLC0415  (whose modules are there if it is)

        if isinstance(embedder, LocalEmbedder):
            return LoopFlight[QueryRows](name=name, told=telemetry.cache_event)
    return SingleFlight[QueryRows](submit, name=name, told=telemetry.cache_event)
