"""What the API derives from one snapshot of the index: computed once a snapshot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.catalog.kinds import KINDS
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.search.rank.display import ToolWords, words_of
from gateway.serve.api.auth import ALL_SCOPES, ApiCaller
from gateway.serve.api.problems import RefusedError
from gateway.types import Entity, Filters, Status
from graphs.lexical.analysis import tokens

REGISTRY_KINDS: Mapping[str, str] = {"mcp_server": "server", "a2a_agent": "agent"}
"""The kinds that registries call by another name."""
_ON_REQUEST = frozenset({"prompt", "resource"})
"""Kinds that are searched only where a request names them."""
_SERVER_LISTED = frozenset({"tool", "prompt", "resource"})


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
    words: dict[int, ToolWords] = field(default_factory=dict)
    """The words of tools, by position; filled on use."""

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
        *,
        kinds: frozenset[str] | None = None,
        tags: Iterable[str] = (),
        include_draft: bool = False,
        include_deprecated: bool = False,
        include_disabled: bool = False,
    ) -> Filters:
        """Return the filters that hold what *caller* may find; *kinds* None is every kind."""
        statuses: set[Status] = {"active"}
        if include_draft:
            statuses.add("draft")
        if include_deprecated:
            statuses.add("deprecated")
        return Filters(
            kinds=self.kinds if kinds is None else kinds,
            statuses=frozenset(statuses),
            tags=frozenset(tags),
            scopes=self.scopes if ALL_SCOPES in caller.scopes else caller.scopes,
            include_disabled=include_disabled,
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

    def entity(self, key: str) -> Entity | None:
        """Return the entity with this id; None if there is none."""
        try:
            return self.snapshot.entities[self.snapshot.position(key)]
        except KeyError:
            return None

    def tool_words(self, position: int) -> ToolWords:
        """Return the words of the tool at *position*."""
        if position not in self.words:
            entity = self.snapshot.entities[position]
            self.words[position] = ToolWords(
                server=entity.server,
                name=entity.name,
                name_words=words_of(tokens(entity.name)),
                description_words=words_of(tokens(entity.description)),
            )
        return self.words[position]


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


def is_server_listed(entity: Entity) -> bool:
    """Return whether a server lists *entity*, or is it: then it is no entry of the catalog."""
    is_entry_id = entity.id == f"{entity.kind}:{entity.server}/{entity.name}"
    return entity.kind in _SERVER_LISTED or not is_entry_id
