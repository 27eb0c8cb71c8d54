"""What the API derives from one snapshot of the index: computed once a snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.catalog.kinds import KINDS
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.serve.api.auth import ALL_SCOPES, ApiCaller
from gateway.serve.api.models import SearchMode, Visibility
from gateway.serve.api.problems import RefusedError
from gateway.types import Entity, Filters, RankingMode, Status

REGISTRY_KINDS: Mapping[str, str] = {"mcp_server": "server", "a2a_agent": "agent"}
"""The kinds that registries call by another name."""
SEARCH_MODES: Mapping[RankingMode, SearchMode] = {
    "hybrid": "hybrid",
    "vector": "vector",
    "lexical": "lexical-only",
    "graph": "graph",
    "browse": "browse",
    "empty": "empty",
}
"""The ranking modes in the words of registries."""
EVERYTHING = Visibility(include_draft=True, include_deprecated=True, include_disabled=True)
_ACTIVE = Visibility()
_ON_REQUEST = frozenset({"prompt", "resource"})
"""Kinds that are searched only where a request names them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CatalogView:
    """One snapshot, with counts and look-ups."""

    snapshot: Snapshot
    scopes: frozenset[str]
    """The scopes of all entities."""
    counts: Mapping[str, int]
    """How many entities there are of each kind."""
    tools: Mapping[str, Sequence[int]]
    """The positions of the tools of each server, by its id."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> CatalogView:
        """Return the view of *snapshot*."""
        tools: defaultdict[str, list[int]] = defaultdict(list)
        for position, entity in enumerate(snapshot.entities):
            if entity.kind == "tool" and entity.parent:
                tools[entity.parent].append(position)
        return cls(
            snapshot=snapshot,
            counts=Counter(entity.kind for entity in snapshot.entities),
            scopes=frozenset[str]().union(*(entity.scopes for entity in snapshot.entities)),
            tools=tools,
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The built-in kinds and those of the entities."""
        return frozenset(KINDS).union(self.counts)

    def filters(
        self,
        caller: ApiCaller,
        kinds: frozenset[str] | None = None,
        tags: Iterable[str] = (),
        shown: Visibility = _ACTIVE,
    ) -> Filters:
        """Return the filters that hold what *caller* may find; *kinds* None is every kind."""
        statuses: dict[Status, bool] = {
            "active": True,
            "draft": shown.include_draft,
            "deprecated": shown.include_deprecated,
        }
        return Filters(
            kinds=self.kinds if kinds is None else kinds,
            statuses=frozenset(status for status, is_shown in statuses.items() if is_shown),
            tags=frozenset(tags),
            scopes=self.scopes if ALL_SCOPES in caller.scopes else caller.scopes,
            include_disabled=shown.include_disabled,
        )

    def resolve_kinds(self, names: Sequence[str] | None) -> frozenset[str]:
        """Return the kinds that a request names; None is all that need not be named.

        Raises:
            RefusedError: 404, if there is no such kind.
        """
        if names is None:
            return self.kinds - _ON_REQUEST
        kinds = frozenset(REGISTRY_KINDS.get(name, name) for name in names)
        if unknown := sorted(kinds - self.kinds):
            known = ", ".join(sorted(self.kinds))
            detail = f"there is nothing of kind {unknown[0]!r}; kinds are {known}"
            raise RefusedError(404, "unknown_kind", detail)
        return kinds

    def visible(self, ids: Iterable[str], filters: Filters) -> dict[str, Entity]:
        """Return the entities of *ids* that *filters* hold, by id.

        A search reads an older snapshot: what is gone or closed meanwhile is left out.
        """
        mask, by_id = self.snapshot.mask(filters), self.snapshot.eligibility.by_id
        return {
            key: self.snapshot.entities[by_id[key]]
            for key in ids
            if key in by_id and mask[by_id[key]]
        }


class CatalogViews:
    """Makes the view of the gateway's snapshot; the same snapshot has the same view."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._latest: CatalogView | None = None

    async def current(self) -> CatalogView:
        """Return the view of the gateway's snapshot as it is now."""
        snapshot = await self._gateway.snapshot()
        if self._latest is None or self._latest.snapshot is not snapshot:
            self._latest = CatalogView.from_snapshot(snapshot)
        return self._latest
