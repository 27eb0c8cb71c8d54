"""Which tool holds an exposed name: the one that had it first, also while it is not there.

A name that was held by a tool of a server that left is given to no other until that is approved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from gateway.catalog.identity import similar_names
from gateway.runtime.text import digest
from gateway.sources.listing_store import ListingStore, attempt_store
from gateway.types import Diagnostic

_MAX_SIMILAR = 20
"""How many groups of similar names are noted."""
_PREFIX = "names are not kept for the next start: "


class NameBindings:
    """The holders of names in one gateway, and in the store. Not for two threads at once.

    Args:
        store: Where they are kept.
        scope: Returns under which owner; names of other owners do not matter. Empty keeps none.
    """

    def __init__(self, store: ListingStore, scope: Callable[[], str]) -> None:
        self._store = store
        self._scope = scope
        self._loaded = ""
        """The owner that was read last."""
        self._seen: dict[str, str] = {}
        """The tool that wanted a name last, as it is stored."""
        self.holders: dict[str, str] = {}
        """The id of the tool that holds a name, by the name without case."""
        self.generations: dict[str, int] = {}
        """When tools were seen first, by id: the lower the earlier; equal for those that came at
        once."""

        self._basis: Mapping[str, str] = {}
        """The holders that another process would know when it names the same tools."""

    @property
    def digest(self) -> str:
        """The digest of what the names of a build depend on, besides its tools."""
        return digest(repr(sorted(self._basis.items())))

    def load(self, *, again: bool = False) -> tuple[Diagnostic, ...]:
        """Read what is stored, once for each owner; return why it cannot be read."""
        scope = self._scope()
        if not scope or (scope == self._loaded and not again):
            return ()
        found, notes = attempt_store(
            lambda: (self._store.pins(scope), self._store.first_seen(scope)), None, prefix=_PREFIX
        )
        if found is None:
            return notes
        pins, times = found
        self._loaded = scope
        self._seen = {name: seen for name, (_, seen) in pins.items()}
        self.holders |= {name: holder for name, (holder, _) in pins.items()}
        numbers = {time: number for number, time in enumerate(sorted({*times.values()}))}
        self.generations |= {key: numbers[time] for key, time in times.items()}
        self._basis = self.holders
        return notes

    def bind(
        self, names: Mapping[str, str], claims: Mapping[str, str], *, keep: bool
    ) -> tuple[Diagnostic, ...]:
        """Note which tool has which name now, and store what is new; return why it is not stored.

        Args:
            names: The exposed name of each tool, by id.
            claims: The id of the tool that wants a name whose holder is gone, by the name without
                case.
            keep: Whether to store it.
        """
        # The index keeps the same texts.
        current = {sys.intern(name.casefold()): key for key, name in names.items()}
        before, self.holders = self.holders, {**current, **self.holders}
        newest = max(self.generations.values(), default=-1) + 1
        self.generations = {**dict.fromkeys(names, newest), **self.generations}
        self._basis = self.holders if keep and self._loaded else before
        wanted = {**current, **claims}
        new = {name: key for name, key in wanted.items() if self._seen.get(name) != key}
        if not (keep and new and self._loaded):
            return ()
        _, notes = attempt_store(lambda: self._store.bind(self._loaded, new), None, prefix=_PREFIX)
        self._seen |= new
        return notes


def renamed(
    lost: Mapping[str, str],
    claims: Mapping[str, str],
    own: Mapping[str, str],
    names: Mapping[str, str],
    holders: Mapping[str, str],
) -> Iterator[Diagnostic]:
    """Yield a note for each tool that has another name than its own, since a tool holds that."""
    for key, folded in sorted(lost.items()):
        if folded not in holders:
            continue
        detail = f"{own[key]!r} is the name of {holders[folded]}; {key} became {names[key]}"
        if folded not in claims:
            yield Diagnostic(stage="catalog", code="name_qualified", detail=detail)
            continue
        detail += f", since that server is gone; to pass it on: gateway approve name:{folded}"
        yield Diagnostic(stage="catalog", code="name_withheld", detail=detail)


def similar(own_names: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a note on each group of names that may be taken for each other."""
    for keys in similar_names(own_names)[:_MAX_SIMILAR]:
        detail = f"look before you take one for the other: {', '.join(keys)}"
        yield Diagnostic(stage="catalog", code="name_similar", detail=detail)
