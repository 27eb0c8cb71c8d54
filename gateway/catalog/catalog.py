"""All entities of a gateway, to look at, and the entries among them, to change."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from glob import escape
from typing import Protocol

import numpy as np

from gateway.catalog.entries import HINTED, Entry, clean_entry, decode_entries, with_use
from gateway.catalog.identity import SERVER_KINDS
from gateway.catalog.selection import Page, Selection, select
from gateway.errors import InvalidRequestError
from gateway.options import CatalogOptions
from gateway.runtime.background_loop import in_thread
from gateway.runtime.text import visible_json
from gateway.runtime.vectors import NDArray
from gateway.types import Access, Entity, Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """What became of a change of several entities."""

    changed: tuple[str, ...]
    """The ids of those that are as wanted now."""
    failed: Mapping[str, str]
    """Why the others are not, by id."""


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

    def put_rules(self, rules: Mapping[str, str]) -> None:
        """Keep *rules*, all or none, instead of those of the same patterns."""

    def close(self) -> None:
        """Let go of what is held; the next call takes it up again."""


@dataclass(eq=False, repr=False)
class Catalog:
    """All entities of one gateway, to look at, and the entries among them, to change.

    Args:
        store: Where entries are kept.
        view: Gives the catalog as it is now.
        changed: Called after every change of the entries.
        options: Returns how many there may be, with the kinds that are declared by now.
        check_open: Raises what a closed gateway answers; asked before the store is.
        resolve_filters: Replaces ``healthy_only`` by the entities to leave out.
        around_change: Returns a context for each change; see `CallHook.change`.
    """

    store: Entries
    view: Callable[[], Awaitable[View]]
    changed: Callable[[], None]
    options: Callable[[], CatalogOptions]
    check_open: Callable[[], None]
    resolve_filters: Callable[[Filters], Filters]
    around_change: Callable[..., AbstractAsyncContextManager[None]]

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
        async with self.around_change("catalog.put", *(each.id for each in cleaned)):
            await in_thread(self._put, cleaned)
        self.changed()
        return tuple(entry.id for entry in cleaned)

    def _put(self, entries: Sequence[Entry]) -> None:
        every = {*self.store.rows(), *(entry.id for entry in entries)}
        options = self.options()
        most = options.max_entries
        if len(every) > most:
            raise InvalidRequestError(
                f"the catalog takes {most} entries: remove some, or raise "
                "CatalogOptions.max_entries"
            )
        for kind in {entry.kind for entry in entries} & options.kinds.keys():
            most = options.kinds[kind].max_entries
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
        async with self.around_change("catalog.remove", key):
            gone = await in_thread(self.store.remove, key)
        if gone:
            self.changed()
        return gone

    async def govern(self, entity: Entity, use: Mapping[str, object]) -> None:
        """Set members of the `Access` of what a server lists.

        It holds beside the host's other rules, and after a restart. What was set here before and
        is not named stays.

        Raises:
            TypeError: A value is of another type.
            StoreError: It could not be kept.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        async with self.around_change("catalog.change", entity.id, detail=_written(use)):
            await in_thread(self._govern, _pattern(entity), use)
        self.changed()

    def governed(self, entity: Entity) -> Access:
        """Return what `govern` was told of *entity*.

        Raises:
            StoreError: It cannot be read.
        """
        return Access(**json.loads(self.store.rules().get(_pattern(entity), "{}")))

    def _govern(self, pattern: str, use: Mapping[str, object]) -> None:
        self.store.put_rules({pattern: _rule(self.store.rules().get(pattern, "{}"), use)})

    async def use_of(self, entity: Entity) -> Access:
        """Return what is said here of an entity, which `change` replaces: of an entry, or beside
        what a server lists.

        Raises:
            StoreError: It cannot be read.
        """
        entry = await self.entry(entity.id)
        if entry is None:
            return await in_thread(self.governed, entity)
        return Access(
            status=entry.status,
            scopes=entry.scopes,
            **{name: getattr(entry.hints, name) for name in HINTED},
        )

    async def change(
        self,
        ids: Iterable[str],
        use: Mapping[str, object],
        *,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
        filters: Filters | None = None,
    ) -> ChangeReport:
        """Change what `Access` holds, by its names, of entries and of what servers list, at once.

        An entry is changed itself; of what a server lists it is kept beside it, see `govern`. So a
        tag that a server or another rule gives stays, which the report says.

        Args:
            ids: Of the entities.
            use: What is not named stays.
            add_tags: Added to those that were said here.
            remove_tags: Compared without case.
            filters: The visible entities; None is all.

        Raises:
            InvalidRequestError: A value is of another type.
            StoreError: It could not be kept.
            ClosedError: The gateway was closed.
        """
        self.check_open()
        wanted, removed = [*dict.fromkeys(ids)], {tag.casefold() for tag in remove_tags}
        before = await self._by_id(wanted, filters)
        added = tuple(add_tags)
        detail = _written({**use, "add_tags": [*added], "remove_tags": sorted(removed)})
        try:
            async with self.around_change("catalog.change", *before, detail=detail):
                await in_thread(self._change, tuple(before.values()), use, added, removed)
        except TypeError as error:
            raise InvalidRequestError(str(error)) from None
        self.changed()
        after = await self._by_id(before, None)
        failed = {key: "nothing has this id" for key in wanted if key not in after}
        for key, entity in after.items() if removed else ():
            if left := sorted(removed.intersection(tag.casefold() for tag in entity.hints.tags)):
                failed[key] = f"its server or another rule gives the tag {left[0]!r}: take it there"
        return ChangeReport(
            changed=tuple(key for key in wanted if key not in failed), failed=failed
        )

    def _change(
        self,
        entities: Sequence[Entity],
        use: Mapping[str, object],
        added: Sequence[str],
        removed: AbstractSet[str],
    ) -> None:
        Access(**use)  # type: ignore[arg-type]  # it checks its values
        rows, rules = self.store.rows(), self.store.rules()
        entries: list[Entry] = []
        changed: dict[str, str] = {}
        for entity in entities:
            own = decode_entries({entity.id: rows[entity.id]} if entity.id in rows else {})
            pattern = _pattern(entity)
            rule = rules.get(pattern, "{}")
            changes = dict(use)
            if added or removed:
                present = own[0].hints.tags if own else Access(**json.loads(rule)).tags
                tags = {tag.casefold(): tag for tag in (*added, *present)}
                changes["tags"] = [tag for key, tag in tags.items() if key not in removed]
            if own:
                entries.append(clean_entry(with_use(own[0], changes)))
            else:
                changed[pattern] = _rule(rule, changes)
        if entries:
            self.store.put(entries)
        if changed:
            self.store.put_rules(changed)

    async def _by_id(self, ids: Iterable[str], filters: Filters | None) -> dict[str, Entity]:
        view, found = await self.view(), {}
        visible = None if filters is None else view.mask(self.resolve_filters(filters))
        for key in ids:
            with suppress(KeyError):
                at = view.position(key)
                if visible is None or visible[at]:
                    found[key] = view.entities[at]
        return found

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
        return (await self._by_id([key], filters)).get(key)

    async def list(
        self,
        filters: Filters | None = None,
        selection: Selection | None = None,
        *,
        after: str = "",
        limit: int | None = 100,
    ) -> Page:
        """Return the entities that follow the id *after*, at most *limit*, by id.

        Args:
            filters: The visible entities; None is all, whatever the kind and the scopes.
            selection: Which of them are wanted, with facets; None is all, without any.
            after: The `Page.next` of the page before.
            limit: At least 1; None is all.

        Raises:
            InvalidRequestError: If *limit* is below 1.
        """
        if limit is not None and limit < 1:
            raise InvalidRequestError(f"limit must be at least 1, got {limit!r}")
        found = await self._visible(filters)
        facets: Mapping[str, Mapping[str, int]] = {}
        if selection is not None:
            found, facets = select(found, selection)
        following = [entity for entity in found if entity.id > after]
        limit = len(following) if limit is None else limit
        page = heapq.nsmallest(limit + 1, following, key=lambda entity: entity.id)
        more = page[limit - 1].id if len(page) > limit else ""
        return Page(entities=tuple(page[:limit]), next=more, total=len(found), facets=facets)

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


def _written(use: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in use.items() if value != []}, default=str)


def _rule(before: str, use: Mapping[str, object]) -> str:
    """Return a rule of the store with what *use* says.

    Raises:
        TypeError: A value is of another type.
    """
    rule = {**json.loads(before), **visible_json(use)}
    Access(**rule)
    return json.dumps(rule)


def _pattern(entity: Entity) -> str:
    itself = entity.kind in SERVER_KINDS
    return escape(entity.server if itself else f"{entity.server}/{entity.name}")
