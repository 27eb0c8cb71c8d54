"""Search over HTTP: one ranking, shown as a list and as the groups that registries give."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.runtime.cache import Cache
from gateway.serve.api.answers import Grouped, Receipt, Tags
from gateway.serve.api.asked import Ranking, SemanticSearch
from gateway.serve.api.callers import Caller
from gateway.serve.api.grouping import Answer, hits_of
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.reading import adapter
from gateway.serve.api.views import View, Views, statuses
from gateway.types import Filters, RankingPolicy, SearchResult

_FUSIONS: Mapping[str, Ranking] = {"rrf": "hybrid", "legacy": "legacy"}
MAX_TAGS = 500


def ranking_of(fusion: str, gateway: Gateway) -> Ranking:
    """Say what weighs the evidence where a search does not say.

    Args:
        fusion: ``rrf`` or ``legacy``. Where there are no vectors to fuse, ``rrf`` is words alone.
        gateway: What is searched.

    Raises:
        ConfigError: There is no such fusion.
    """
    if fusion not in _FUSIONS:
        raise ConfigError(f"SEARCH_FUSION_METHOD must be rrf or legacy, got {fusion!r}")
    vectors = gateway.embedder is not None and gateway.strategy != "graph"
    return "lexical" if fusion == "rrf" and not vectors else _FUSIONS[fusion]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """What an equal search was answered."""

    view: View
    result: SearchResult
    grouped: bytes
    """A `Grouped` as JSON."""
    receipt: Receipt


class Searching:
    """Answers searches.

    Args:
        gateway: Whose catalog it is.
        views: Shared by all of the API.
        ranking: What weighs the evidence where a request does not say.
        now: Tells the time, for receipts.
    """

    def __init__(
        self,
        gateway: Gateway,
        views: Views,
        *,
        ranking: Ranking,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._gateway = gateway
        self._views = views
        self._ranking: Ranking = ranking
        self._now = now
        self._key = secrets.token_bytes(32)
        options = gateway.options.cache
        self._written = Cache[_Told](
            "answer", max_items=options.result_items, ttl_s=options.result_ttl_s
        )

    async def search(self, caller: Caller, asked: SemanticSearch) -> bytes:
        """Search the catalog; give a `Found`, as JSON.

        What an equal search found is written once; only the receipt is new.

        Raises:
            RefusedError: 400, if nothing is asked; 404, if there is no such kind.
        """
        began = time.perf_counter()
        if not asked.query.strip() and not asked.tags:
            raise RefusedError(400, "nothing_asked", "give a query, or tags, or both")
        view = self._views.of(await self._gateway.snapshot())
        filters = view.filters(
            caller,
            kinds=view.kinds_of(asked.entity_types),
            tags=asked.tags,
            statuses=statuses(draft=asked.include_draft, deprecated=asked.include_deprecated),
            include_disabled=asked.include_disabled,
        )
        ranking: RankingPolicy = asked.ranking or self._ranking
        result = await self._gateway.search(
            asked.query or None,
            limit=self._gateway.options.search.max_limit,
            filters=filters,
            ranking=ranking,
            spread=True,
            places=asked.max_results,
        )
        # The catalog may have changed meanwhile: what is shown is looked up as it is now.
        view = self._views.of(await self._gateway.snapshot())
        key = (asked, filters, ranking)
        known = self._written.get(key)
        if known is None or known.result is not result or known.view is not view:
            known = self._told(view, filters, asked, result, ranking)
            self._written.put(key, known)
        receipt = replace(
            known.receipt,
            id=uuid.uuid4().hex,
            time=self._now().isoformat(timespec="milliseconds"),
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )
        told = adapter(Receipt).dump_json(receipt)
        return known.grouped[:-1] + b',"discovery_receipt":' + told + b"}"

    def _told(
        self,
        view: View,
        filters: Filters,
        asked: SemanticSearch,
        result: SearchResult,
        ranking: RankingPolicy,
    ) -> _Told:
        hits = hits_of(view, result, asked.max_results)
        answer = Answer(view=view, filters=filters, asked=asked, hits=hits)
        grouped = adapter(Grouped).dump_json(answer.grouped(result, ranking), by_alias=True)
        request = repr((asked, sorted(filters.scopes))).encode("utf-8", "replace")
        ids = "\n".join(hit.entity.id for hit in hits).encode("utf-8", "replace")
        receipt = Receipt(
            id="",
            time="",
            duration_ms=0.0,
            stop_reason="results_returned" if hits else "no_match",
            eligible=result.counts.eligible,
            candidates=result.counts.candidates,
            returned=len(hits),
            returned_by_kind=Counter(hit.entity.kind for hit in hits),
            index=view.snapshot.version,
            request_hash=hashlib.blake2b(request, key=self._key, digest_size=16).hexdigest(),
            result_hash=hashlib.sha256(ids).hexdigest(),
        )
        return _Told(view=view, result=result, grouped=grouped, receipt=receipt)

    async def tags(self, caller: Caller) -> Tags:
        """Give the tags of what *caller* may find, the first `MAX_TAGS` of them."""
        view = self._views.of(await self._gateway.snapshot())
        counts = await self._gateway.catalog.tags(view.filters(caller))
        kept = dict(sorted(counts.items())[:MAX_TAGS])
        return Tags(tags=list(kept), counts=kept)
