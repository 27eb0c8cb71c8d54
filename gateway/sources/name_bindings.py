"""Bindings of exposed names to tools: the first tool with a name keeps it.

If that tool's server was removed, another tool gets the name only after an approval.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from gateway.catalog.identity import similar_names
from gateway.runtime.text import digest
from gateway.sources.listing_store import ListingStore, attempt_store
from gateway.types import Diagnostic

_MAX_SIMILAR = 20
_NOTE_PREFIX = "names are not stored for the next start: "


class NameBindings:
    """The tools that hold the exposed names of one gateway. Not thread-safe.

    *scope* returns the owner of the bindings in *store*. If it is empty, they are not stored.
    """

    def __init__(self, store: ListingStore, scope: Callable[[], str]) -> None:
        self._store = store
        self._scope = scope
        self._loaded = ""
        """Owner whose bindings were loaded last; empty before the first loading."""
        self._stored_tools: dict[str, str] = {}
        """Stored id of the last tool that had or wanted a name, keyed by case-folded name."""
        self.holders: dict[str, str] = {}
        """Id of the tool that holds a name, keyed by case-folded name."""
        self.generations: dict[str, int] = {}
        """Order in which tools were first seen, keyed by tool id. Tools that arrived together have
        equal numbers."""

        self._persistent_holders: Mapping[str, str] = {}
        """Stored part of `holders`, which another process would load."""

    @property
    def digest(self) -> str:
        """Digest of the stored bindings, on which exposed names depend."""
        return digest(repr(sorted(self._persistent_holders.items())))

    def load(self, *, again: bool = False) -> tuple[Diagnostic, ...]:
        """Load the stored bindings, once per owner unless *again*; return store diagnostics."""
        scope = self._scope()
        if not scope or (scope == self._loaded and not again):
            return ()
        stored, notes = attempt_store(
            lambda: (self._store.pins(scope), self._store.first_seen(scope)),
            None,
            prefix=_NOTE_PREFIX,
        )
        if stored is None:
            return notes
        pins, times = stored
        self._loaded = scope
        self._stored_tools = {name: last for name, (_, last) in pins.items()}
        self.holders |= {name: holder for name, (holder, _) in pins.items()}
        numbers = {time: number for number, time in enumerate(sorted({*times.values()}))}
        self.generations |= {key: numbers[time] for key, time in times.items()}
        self._persistent_holders = self.holders
        return notes

    def bind(
        self, names: Mapping[str, str], claims: Mapping[str, str], *, keep: bool
    ) -> tuple[Diagnostic, ...]:
        """Record the current names; if *keep*, store new bindings; return store diagnostics.

        Args:
            names: Exposed name of each tool, keyed by tool id.
            claims: Tool that wants a name whose holder is gone, keyed by case-folded name.
            keep: True to store new bindings.
        """
        # Interned, because the index contains the same texts.
        current = {sys.intern(name.casefold()): key for key, name in names.items()}
        before, self.holders = self.holders, {**current, **self.holders}
        newest = max(self.generations.values(), default=-1) + 1
        self.generations = {**dict.fromkeys(names, newest), **self.generations}
        self._persistent_holders = self.holders if keep and self._loaded else before
        bindings = {**current, **claims}
        new = {name: key for name, key in bindings.items() if self._stored_tools.get(name) != key}
        if not (keep and new and self._loaded):
            return ()
        _, notes = attempt_store(
            lambda: self._store.bind(self._loaded, new), None, prefix=_NOTE_PREFIX
        )
        self._stored_tools |= new
        return notes


def renamed(
    lost: Mapping[str, str],
    claims: Mapping[str, str],
    own: Mapping[str, str],
    names: Mapping[str, str],
    holders: Mapping[str, str],
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each tool that was renamed because another tool holds its name.

    Args:
        lost: Case-folded names that tools did not get, keyed by tool id.
        claims: Ids of tools that want a name whose holder is gone, keyed by name.
        own: Names that the tools would have, keyed by tool id.
        names: Exposed names, keyed by tool id.
        holders: Ids of the tools that hold names, keyed by name.
    """
    for key, folded in sorted(lost.items()):
        if folded not in holders:
            continue
        detail = f"{own[key]!r} is the name of {holders[folded]}; {key} became {names[key]}"
        if folded not in claims:
            yield Diagnostic(stage="catalog", code="name_qualified", detail=detail)
            continue
        detail += ", because that server is gone; to reassign the name: "
        detail += f"gateway approve name:{folded}"
        yield Diagnostic(stage="catalog", code="name_withheld", detail=detail)


def similar(own_names: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each group of tools whose names are easily confused.

    *own_names* are the names in the tools' sources, keyed by tool id.
    """
    for keys in similar_names(own_names)[:_MAX_SIMILAR]:
        detail = f"these names are easily confused: {', '.join(keys)}"
        yield Diagnostic(stage="catalog", code="name_similar", detail=detail)
