"""What the API knows of one state of the index besides the index: worked out once for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.catalog.kinds import KINDS
from gateway.index.snapshot import Snapshot
from gateway.search.spread import Worded, words_of
from gateway.serve.api.callers import EVERYTHING, Caller
from gateway.serve.api.problems import RefusedError
from gateway.types import Entity, Filters, Status
from graphs.lexical.analysis import tokens

NAMES: Mapping[str, str] = {"mcp_server": "server", "a2a_agent": "agent"}
"""What registries call kinds that have another name here."""
_ON_DEMAND = frozenset({"prompt", "resource"})
"""Kinds that are looked for only if they are asked for."""
_LISTED = frozenset({"tool", "prompt", "resource"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """One state of the index."""

    snapshot: Snapshot
    scopes: frozenset[str]
    """All that any entity asks for."""
    counts: Mapping[str, int]
    """How many there are of each kind."""
    kinds: frozenset[str]
    """All that there are, or that everybody has."""
    tools: Mapping[str, Sequence[int]]
    """Where the tools of each server stand, by its id."""
    words: dict[int, Worded] = field(default_factory=dict)
    """Of tools that were looked at so far, by where they stand."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> View:
        """Read *snapshot*."""
        tools: defaultdict[str, list[int]] = defaultdict(list)
        for at, entity in enumerate(snapshot.entities):
            if entity.kind == "tool" and entity.parent:
                tools[entity.parent].append(at)
        counts = Counter(each.kind for each in snapshot.entities)
        return cls(
            snapshot=snapshot,
            counts=counts,
            scopes=frozenset[str]().union(*(each.scopes for each in snapshot.entities)),
            kinds=frozenset(KINDS).union(counts),
            tools=tools,
        )

    def filters(
        self,
        caller: Caller,
        *,
        kinds: frozenset[str] | None = None,
        tags: Iterable[str] = (),
        statuses: frozenset[Status] = frozenset({"active"}),
        include_disabled: bool = False,
    ) -> Filters:
        """Say who may be seen by *caller*.

        Args:
            caller: Who asks.
            kinds: None is all.
            tags: All of these.
            statuses: One of these.
            include_disabled: Whether they are there too.
        """
        return Filters(
            kinds=self.kinds if kinds is None else kinds,
            statuses=statuses,
            tags=frozenset(tags),
            scopes=self.scopes if EVERYTHING in caller.scopes else caller.scopes,
            include_disabled=include_disabled,
        )

    def kinds_of(self, names: Sequence[str] | None) -> frozenset[str]:
        """Give the kinds that a client names; None is all that need not be named.

        Raises:
            RefusedError: 404, if there is no such kind.
        """
        if names is None:
            return self.kinds - _ON_DEMAND
        kinds = frozenset(NAMES.get(name, name) for name in names)
        if unknown := sorted(kinds - self.kinds):
            known = ", ".join(sorted(self.kinds))
            told = f"there is nothing of kind {unknown[0]!r}; kinds are {known}"
            raise RefusedError(404, "unknown_kind", told)
        return kinds

    def entity(self, key: str) -> Entity | None:
        """Give the entity with this id; None if there is none."""
        try:
            return self.snapshot.entities[self.snapshot.position(key)]
        except KeyError:
            return None

    def worded(self, at: int) -> Worded:
        """Give the words of the tool that stands at *at*."""
        known = self.words.get(at)
        if known is None:
            entity = self.snapshot.entities[at]
            known = self.words[at] = Worded(
                server=entity.server,
                name=entity.name,
                name_words=words_of(tokens(entity.name)),
                description_words=words_of(tokens(entity.description)),
            )
        return known


class Views:
    """Gives the view of a snapshot, the same one as long as that does not change."""

    def __init__(self) -> None:
        self._last: View | None = None

    def of(self, snapshot: Snapshot) -> View:
        """Give the view of *snapshot*."""
        last = self._last
        if last is None or last.snapshot is not snapshot:
            last = self._last = View.of(snapshot)
        return last


def listed(entity: Entity) -> bool:
    """Say whether a server lists *entity*, or is it: then it is no entry."""
    own = entity.id == f"{entity.kind}:{entity.server}/{entity.name}"
    return entity.kind in _LISTED or not own


def statuses(*, draft: bool, deprecated: bool) -> frozenset[Status]:
    """Give the statuses that may be seen."""
    found: set[Status] = {"active"}
    if draft:
        found.add("draft")
    if deprecated:
        found.add("deprecated")
    return frozenset(found)
