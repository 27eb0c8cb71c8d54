"""Search over HTTP: one ranking, shown as a list and in the groups of registries."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.serve.api.catalog_view import CatalogView, CatalogViews
from gateway.serve.api.operations import ApiCall, operation
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.requests import Ranking, SemanticSearch
from gateway.serve.api.responses import Receipt, SearchResponse, TagCounts
from gateway.serve.api.search_rows import (
    SEARCH_MODES,
    Hit,
    RowBuilder,
    diagnostic_notes,
    find_hits,
    ranked_result,
)
from gateway.types import Filters, SearchResult

_FUSIONS: Mapping[str, Ranking] = {"rrf": "hybrid", "legacy": "legacy"}
MAX_TAGS = 500


def default_ranking(fusion: str, gateway: Gateway) -> Ranking:
    """Return how evidence is weighed where a search does not say.

    Args:
        fusion: ``rrf`` or ``legacy``. Where there are no vectors to fuse, ``rrf`` is words alone.
        gateway: The searched gateway.

    Raises:
        ConfigError: There is no such fusion.
    """
    if fusion not in _FUSIONS:
        raise ConfigError(f"SEARCH_FUSION_METHOD must be rrf or legacy, got {fusion!r}")
    has_vectors = gateway.embedder is not None and gateway.strategy != "graph"
    return "lexical" if fusion == "rrf" and not has_vectors else _FUSIONS[fusion]


class SearchRoutes:
    """The operations under ``/api/search``.

    Args:
        gateway: The searched gateway.
        views: Shared by all routes.
        ranking: How evidence is weighed where a request does not say.
    """

    def __init__(self, gateway: Gateway, views: CatalogViews, *, ranking: Ranking) -> None:
        self._gateway = gateway
        self._views = views
        self._ranking: Ranking = ranking
        self._hash_key = secrets.token_bytes(32)

    @operation("POST", "/api/search/semantic", body=SemanticSearch, response=SearchResponse)
    async def search(self, call: ApiCall) -> SearchResponse:
        """Search the catalog by meaning and words.

        Raises:
            RefusedError: 400, without query and tags; 404, if there is no such kind.
        """
        started = time.perf_counter()
        request: SemanticSearch = call.request
        if not request.query.strip() and not request.tags:
            raise RefusedError(400, "nothing_asked", "give a query, or tags, or both")
        view = await self._views.current()
        filters = view.filters(
            call.caller,
            kinds=view.resolve_kinds(request.entity_types),
            tags=request.tags,
            **request.model_dump(include=_FLAGS),
        )
        ranking = request.ranking or self._ranking
        result = await self._gateway.search(
            request.query or None,
            limit=self._gateway.options.search.max_limit,
            filters=filters,
            ranking=ranking,
            diversify=True,
            display_limit=request.max_results,
        )
        # The catalog may have changed during the search: rows show it as it is now.
        view = await self._views.current()
        hits = find_hits(view, result, request.max_results)
        groups = RowBuilder(view, filters, request).groups(hits)
        fields: dict[str, Any] = {
            **groups,
            **{f"total_{name}": len(rows) for name, rows in groups.items()},
        }
        return SearchResponse(
            query=request.query,
            search_mode=SEARCH_MODES[result.mode],
            ranking=ranking,
            confidence=round(max((hit.match.confidence for hit in hits), default=0.0), 4),
            results=[ranked_result(hit, rank) for rank, hit in enumerate(hits, 1)],
            diagnostics=diagnostic_notes(result.diagnostics),
            discovery_receipt=self._receipt(view, filters, request, result, hits, started),
            **fields,
        )

    def _receipt(
        self,
        view: CatalogView,
        filters: Filters,
        request: SemanticSearch,
        result: SearchResult,
        hits: Sequence[Hit],
        started: float,
    ) -> Receipt:
        fingerprint = repr((request, sorted(filters.scopes))).encode("utf-8", "replace")
        ids = "\n".join(hit.entity.id for hit in hits).encode("utf-8", "replace")
        return Receipt(
            id=uuid.uuid4().hex,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            stop_reason="results_returned" if hits else "no_match",
            eligible=result.counts.eligible,
            candidates=result.counts.candidates,
            returned=len(hits),
            returned_by_kind=Counter(hit.entity.kind for hit in hits),
            index=view.snapshot.version,
            request_hash=hashlib.blake2b(
                fingerprint, key=self._hash_key, digest_size=16
            ).hexdigest(),
            result_hash=hashlib.sha256(ids).hexdigest(),
        )

    @operation("GET", "/api/search/tags", response=TagCounts)
    async def tags(self, call: ApiCall) -> TagCounts:
        """List the tags of what you may find."""
        view = await self._views.current()
        counts = await self._gateway.catalog.tags(view.filters(call.caller))
        shown_counts = dict(sorted(counts.items())[:MAX_TAGS])
        return TagCounts(tags=list(shown_counts), counts=shown_counts)


_FLAGS = {"include_draft", "include_deprecated", "include_disabled"}
