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
    """Outcome of a change of several entities."""

    changed: tuple[str, ...]
    """Ids of the entities for which the new values were stored. Other rules may still override the
    values: a tool of a disabled server stays disabled."""
    failed: Mapping[str, str]
    """Reasons why other entities were not changed, or kept a removed tag, keyed by id."""


class View(Protocol):
    """Snapshot of all entities in the catalog."""

    @property
    def entities(self) -> Sequence[Entity]:
        """All entities, in the order of `mask` and `position`."""

    def mask(self, filters: Filters) -> NDArray[np.bool_]:
        """Return an array that is True for each entity that passes *filters*, shape (n,)."""

    def position(self, key: str) -> int:
        """Return the index in `entities` of the entity with the id *key*.

        Raises:
            KeyError: If the id is unknown.
        """


class Entries(Protocol):
    """Store of entries and access rules. Every method may raise `StoreError`."""

    def rows(self) -> Mapping[str, str]:
        """Return each entry as JSON, keyed by id."""

    def put(self, entries: Sequence[Entry]) -> None:
        """Insert *entries*, or replace those with the same ids; either all or none."""

    def remove(self, key: str) -> bool:
        """Delete the entry with the id *key*. Return False if it does not exist."""

    def rules(self) -> Mapping[str, str]:
        """Return the access rules for listed entities as JSON, keyed by pattern."""

    def put_rules(self, rules: Mapping[str, str]) -> None:
        """Insert *rules*, or replace those with the same patterns; either all or none."""

    def close(self) -> None:
        """Release all resources. The next call opens the store again."""


@dataclass(eq=False, repr=False)
class Catalog:
    """Catalog of one gateway. All entities can be read; entries and access rules can be changed.

    Methods may raise `StoreError` if the store fails, and `ClosedError` after the gateway was
    closed.

    Args:
        changed: Called after every change.
        options: Returns the limits, including the kinds declared so far.
        check_open: Raises `ClosedError` after the gateway was closed.
        resolve_filters: Replaces ``healthy_only`` by the entities to exclude.
        around_change: Returns a context manager for each change; see `CallHook.change`.

    Example:
        >>> await gateway.catalog.put(Entry(kind="agent", name="planner", description="Plan trips"))
        ('agent:catalog/planner',)
        >>> [entity.id for entity in (await gateway.catalog.list()).entities]
        ['agent:catalog/planner', 'local/add']
        >>> await gateway.catalog.remove("agent:catalog/planner")
        True
    """

    store: Entries
    view: Callable[[], Awaitable[View]]
    changed: Callable[[], None]
    options: Callable[[], CatalogOptions]
    check_open: Callable[[], None]
    resolve_filters: Callable[[Filters], Filters]
    around_change: Callable[..., AbstractAsyncContextManager[None]]

    async def put(self, *entries: Entry) -> tuple[str, ...]:
        """Insert *entries*, or replace those with the same ids; either all or none. Return the ids.

        Raises:
            InvalidRequestError: If an argument is not an `Entry`, or a limit would be exceeded.
        """
        self.check_open()
        for item in entries:
            if not isinstance(item, Entry):
                kind = type(item).__name__
                raise InvalidRequestError(f"put takes Entry objects, as put(*entries), got {kind}")
        cleaned = tuple(map(clean_entry, entries))
        async with self.around_change("catalog.put", *(item.id for item in cleaned)):
            await in_thread(self._put, cleaned)
        self.changed()
        return tuple(entry.id for entry in cleaned)

    def _put(self, entries: Sequence[Entry]) -> None:
        every = {*self.store.rows(), *(entry.id for entry in entries)}
        options = self.options()
        most = options.max_entries
        if len(every) > most:
            raise InvalidRequestError(
                f"the catalog can have {most} entries: remove some, or raise "
                "CatalogOptions.max_entries"
            )
        for kind in {entry.kind for entry in entries} & options.kinds.keys():
            most = options.kinds[kind].max_entries
            if sum(key.startswith(f"{kind}:") for key in every) > most:
                raise InvalidRequestError(
                    f"the catalog can have {most} entries of kind {kind!r}: remove some, or raise "
                    "CustomKind.max_entries"
                )
        self.store.put(entries)

    async def remove(self, key: str) -> bool:
        """Delete the entry with the id *key*. Return False if it does not exist."""
        self.check_open()
        async with self.around_change("catalog.remove", key):
            gone = await in_thread(self.store.remove, key)
        if gone:
            self.changed()
        return gone

    async def govern(self, entity: Entity, use: Mapping[str, object]) -> None:
        """Set fields of `Access` for an entity that a server lists.

        The values in *use*, keyed by field, are stored as a rule in addition to the host's other
        rules. Other fields keep their stored values.

        Raises:
            TypeError: If a value has the wrong type.
        """
        self.check_open()
        async with self.around_change("catalog.change", entity.id, detail=_change_detail(use)):
            await in_thread(self._govern, _pattern(entity), use)
        self.changed()

    def governed(self, entity: Entity) -> Access:
        """Return the access rule that `govern` stored for *entity*."""
        return Access(**json.loads(self.store.rules().get(_pattern(entity), "{}")))

    def _govern(self, pattern: str, use: Mapping[str, object]) -> None:
        self.store.put_rules({pattern: _merge_rule(self.store.rules().get(pattern, "{}"), use)})

    async def use_of(self, entity: Entity) -> Access:
        """Return the `Access` that `change` can replace: of an entry, or the stored rule."""
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
        """Change fields of `Access` for several entities at once.

        An entry is changed itself. For an entity that a server lists, a rule is stored (see
        `govern`). So *remove_tags* cannot remove tags from the server or another rule. The report
        contains such entities as failed.

        Args:
            ids: Ids of the entities.
            use: New values, keyed by the field of `Access`; other fields keep their values.
            add_tags: Tags to add to the stored tags of each entity.
            remove_tags: Tags to remove, compared without case.
            filters: Only entities that pass these filters can be changed; None allows all.

        Raises:
            InvalidRequestError: If a value has the wrong type.
        """
        self.check_open()
        keys, removed = [*dict.fromkeys(ids)], {tag.casefold() for tag in remove_tags}
        before = await self._by_id(keys, filters)
        added = tuple(add_tags)
        detail = _change_detail({**use, "add_tags": [*added], "remove_tags": sorted(removed)})
        try:
            async with self.around_change("catalog.change", *before, detail=detail):
                await in_thread(self._change, tuple(before.values()), use, added, removed)
        except TypeError as error:
            raise InvalidRequestError(str(error)) from None
        self.changed()
        after = await self._by_id(before, None)
        failed = {key: "nothing has this id" for key in keys if key not in after}
        for key, entity in after.items() if removed else ():
            if remaining := sorted(
                removed.intersection(tag.casefold() for tag in entity.hints.tags)
            ):
                failed[key] = (
                    f"its server or another rule gives the tag {remaining[0]!r}: remove it there"
                )
        return ChangeReport(changed=tuple(key for key in keys if key not in failed), failed=failed)

    def _change(
        self,
        entities: Sequence[Entity],
        use: Mapping[str, object],
        added: Sequence[str],
        removed: AbstractSet[str],
    ) -> None:
        Access(**use)  # type: ignore[arg-type]  # checks the values
        rows, rules = self.store.rows(), self.store.rules()
        entries: list[Entry] = []
        changed: dict[str, str] = {}
        for entity in entities:
            entry = decode_entries({entity.id: rows[entity.id]} if entity.id in rows else {})
            pattern = _pattern(entity)
            rule = rules.get(pattern, "{}")
            changes = dict(use)
            if added or removed:
                present = entry[0].hints.tags if entry else Access(**json.loads(rule)).tags
                tags = {tag.casefold(): tag for tag in (*added, *present)}
                changes["tags"] = [tag for key, tag in tags.items() if key not in removed]
            if entry:
                entries.append(clean_entry(with_use(entry[0], changes)))
            else:
                changed[pattern] = _merge_rule(rule, changes)
        if entries:
            self.store.put(entries)
        if changed:
            self.store.put_rules(changed)

    async def _by_id(self, ids: Iterable[str], filters: Filters | None) -> dict[str, Entity]:
        view, entities = await self.view(), {}
        visible = None if filters is None else view.mask(self.resolve_filters(filters))
        for key in ids:
            with suppress(KeyError):
                position = view.position(key)
                if visible is None or visible[position]:
                    entities[key] = view.entities[position]
        return entities

    async def entries(self) -> Sequence[Entry]:
        """Return all readable entries as they were put, ordered by id."""
        self.check_open()
        return decode_entries(await in_thread(self.store.rows))

    async def entry(self, key: str) -> Entry | None:
        """Return the entry with the id *key* as it was put; None if missing or unreadable."""
        self.check_open()
        rows = await in_thread(self.store.rows)
        return next(iter(decode_entries({key: rows[key]} if key in rows else {})), None)

    async def get(self, key: str, filters: Filters | None = None) -> Entity | None:
        """Return the entry or listed entity with the id *key*.

        Return None if it does not exist, or does not pass *filters*.
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
        """Return a page of at most *limit* entities with ids greater than *after*, ordered by id.

        Args:
            filters: The visible entities; None is all, of any kind and scopes.
            selection: Restricts the entities further, and requests facets; None does neither.
            after: The `Page.next` of the previous page.
            limit: At least 1; None is all.

        Raises:
            InvalidRequestError: If *limit* is below 1.
        """
        if limit is not None and limit < 1:
            raise InvalidRequestError(f"limit must be at least 1, got {limit!r}")
        entities = await self._visible(filters)
        facets: Mapping[str, Mapping[str, int]] = {}
        if selection is not None:
            entities, facets = select(entities, selection)
        following = [entity for entity in entities if entity.id > after]
        limit = len(following) if limit is None else limit
        page = heapq.nsmallest(limit + 1, following, key=lambda entity: entity.id)
        more = page[limit - 1].id if len(page) > limit else ""
        return Page(entities=tuple(page[:limit]), next=more, total=len(entities), facets=facets)

    async def tags(self, filters: Filters | None = None) -> Mapping[str, int]:
        """Return the number of entities that pass *filters*, keyed by tag in lower case."""
        counts: Counter[str] = Counter()
        for entity in await self._visible(filters):
            counts.update({tag.casefold() for tag in entity.hints.tags})
        return {tag: counts[tag] for tag in sorted(counts)}

    async def _visible(self, filters: Filters | None) -> Sequence[Entity]:
        view = await self.view()
        if filters is None:
            return view.entities
        mask = view.mask(self.resolve_filters(filters))
        return [view.entities[position] for position in np.flatnonzero(mask).tolist()]


def _change_detail(use: Mapping[str, object]) -> str:
    return json.dumps({name: value for name, value in use.items() if value != []}, default=str)


def _merge_rule(before: str, use: Mapping[str, object]) -> str:
    rule = {**json.loads(before), **visible_json(use)}
    Access(**rule)
    return json.dumps(rule)


def _pattern(entity: Entity) -> str:
    itself = entity.kind in SERVER_KINDS
    return escape(entity.server if itself else f"{entity.server}/{entity.name}")
