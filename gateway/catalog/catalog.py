"""All entities of a gateway, to look at, and the entries among them, to change."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Protocol

import numpy as np

from gateway.catalog.entries import Entry, clean_entry, decode_entries
from gateway.catalog.identity import SERVER_KINDS
from gateway.errors import InvalidRequestError
from gateway.options import CatalogOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.text import visible_json
from gateway.runtime.vectors import NDArray
from gateway.types import Access, Entity, Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the catalog's entities."""

    entities: tuple[Entity, ...]
    """Ordered by id."""
    next: str = ""
    """What to give as *after* for the next page; empty on the last one."""
    total: int
    """The number of entities on all pages."""


class View(Protocol):
    """The catalog at one moment."""

    @property
    def entities(self) -> Sequence[Entity]:
        """All of them."""

    def mask(self, filters: Filters) -> NDArray[np.bool_]:
        """Return the eligibility of each entity under *filters*, shape (n,)."""

    def position(self, key: str) -> int:
        """Return the position of the entity with this id; KeyError if there is none."""


class Entries(Protocol):
    """Where entries are kept. Every method may raise `StoreError`."""

    def rows(self) -> Mapping[str, str]:
        """Return each entry as JSON, by id."""

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep *entries*, all or none, instead of those with the same ids."""

    def remove(self, key: str) -> bool:
        """Forget the entry with this id; return whether it was there."""

    def rules(self) -> Mapping[str, str]:
        """Return what was said of the use of listed things, as JSON, by pattern."""

    def put_rule(self, pattern: str, rule: str) -> None:
        """Keep a rule instead of that of the same pattern."""

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


@dataclass(eq=False, repr=False)
class Catalog:
    """All entities of one gateway, to look at, and the entries among them, to change.

    Args:
        store: Where entries are kept.
        view: Gives the catalog as it is now.
        changed: Called after every change of the entries.
        options: How many there may be.
        check_open: Raises what a closed gateway answers; asked before the store is.
        resolve_filters: Replaces ``healthy_only`` by the entities to leave out.
    """

    store: Entries
    view: Callable[[], Awaitable[View]]
    changed: Callable[[], None]
    options: CatalogOptions
    check_open: Callable[[], None]
    resolve_filters: Callable[[Filters], Filters] = lambda filters: filters

    async def put(self, *entries: Entry) -> tuple[str, ...]:
        """Insert *entries*, all or none, replacing those with the same ids; return the ids.

        The next search finds them.

        Raises:
            InvalidRequestError: There would be too many of them, or one is no `Entry`.
            StoreError: They could not be kept.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        for each in entries:
            if not isinstance(each, Entry):
                kind = type(each).__name__
                raise InvalidRequestError(f"put takes entries one by one, as put(*entries): {kind}")
        cleaned = tuple(map(clean_entry, entries))
        await in_thread(self._put, cleaned)
        self.changed()
        return tuple(entry.id for entry in cleaned)

    def _put(self, entries: Sequence[Entry]) -> None:
        every = {*self.store.rows(), *(entry.id for entry in entries)}
        most = self.options.max_entries
        if len(every) > most:
            raise InvalidRequestError(
                f"the catalog takes {most} entries: remove some, or raise "
                "CatalogOptions.max_entries"
            )
        for kind in {entry.kind for entry in entries} & self.options.kinds.keys():
            most = self.options.kinds[kind].max_entries
            if sum(key.startswith(f"{kind}:") for key in every) > most:
                raise InvalidRequestError(
                    f"the catalog takes {most} entries of kind {kind!r}: remove some, or raise "
                    "CustomKind.max_entries"
                )
        self.store.put(entries)

    async def remove(self, key: str) -> bool:
        """Forget the entry with this id; return whether it was there.

        Raises:
            StoreError: It could not be forgotten.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        gone = await in_thread(self.store.remove, key)
        if gone:
            self.changed()
        return gone

    async def govern(self, entity: Entity, use: Mapping[str, object]) -> None:
        """Say what `Access` holds, by its names, of what a server lists.

        It holds beside the host's other rules, and after a restart. What was said here before and
        is not named stays.

        Raises:
            TypeError: A value is of another type.
            StoreError: It could not be kept.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        await in_thread(self._govern, _pattern(entity), use)
        self.changed()

    def governed(self, entity: Entity) -> Access:
        """Return what `govern` was told of *entity*.

        Raises:
            StoreError: It cannot be read.
        """
        return Access(**json.loads(self.store.rules().get(_pattern(entity), "{}")))

    def _govern(self, pattern: str, use: Mapping[str, object]) -> None:
        rule = {**json.loads(self.store.rules().get(pattern, "{}")), **visible_json(use)}
        Access(**rule)
        self.store.put_rule(pattern, json.dumps(rule))

    async def entries(self) -> Sequence[Entry]:
        """Return all entries that can be read, as they were put, by id.

        Raises:
            StoreError: They cannot be read.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        return decode_entries(await in_thread(self.store.rows))

    async def entry(self, key: str) -> Entry | None:
        """Return the entry with this id, as it was put; None if none can be read.

        Raises:
            StoreError: It cannot be read.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        rows = await in_thread(self.store.rows)
        return next(iter(decode_entries({key: rows[key]} if key in rows else {})), None)

    async def get(self, key: str, filters: Filters | None = None) -> Entity | None:
        """Return the entity with this id, an entry or not; None if there is none.

        Args:
            key: Its id.
            filters: The visible entities; None is all.
        """
        view = await self.view()
        try:
            at = view.position(key)
        except KeyError:
            return None
        visible = filters is None or view.mask(self.resolve_filters(filters))[at]
        return view.entities[at] if visible else None

    async def list(
        self, filters: Filters | None = None, *, after: str = "", limit: int = 100
    ) -> Page:
        """Return the entities that follow the id *after*, at most *limit*, by id.

        Args:
            filters: The visible entities; None is all, whatever the kind and the scopes.
            after: The `Page.next` of the page before.
            limit: At least 1.

        Raises:
            InvalidRequestError: If *limit* is below 1.
        """
        if limit < 1:
            raise InvalidRequestError(f"limit must be at least 1, got {limit!r}")
        visible = await self._visible(filters)
        following = (each for each in visible if each.id > after)
        page = heapq.nsmallest(limit + 1, following, key=lambda each: each.id)
        more = page[limit - 1].id if len(page) > limit else ""
        return Page(entities=tuple(page[:limit]), next=more, total=len(visible))

    async def tags(self, filters: Filters | None = None) -> Mapping[str, int]:
        """Count the entities of each tag, by tag; tags without case.

        Args:
            filters: The entities that count; None is all.
        """
        counts: Counter[str] = Counter()
        for entity in await self._visible(filters):
            counts.update({tag.casefold() for tag in entity.hints.tags})
        return {tag: counts[tag] for tag in sorted(counts)}

    async def _visible(self, filters: Filters | None) -> Sequence[Entity]:
        view = await self.view()
        if filters is None:
            return view.entities
        mask = view.mask(self.resolve_filters(filters))
        return [view.entities[at] for at in np.flatnonzero(mask).tolist()]


def _pattern(entity: Entity) -> str:
    itself = entity.kind in SERVER_KINDS
    return escape(entity.server if itself else f"{entity.server}/{entity.name}")
