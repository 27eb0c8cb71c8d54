"""Entities over HTTP: listed, read, and, by callers with the scope, written.

* Whoever may not find an entity does not learn that it is there, but for the id being taken.
* Nobody writes what they could not read afterwards.
* What a server lists is changed at the server.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import get_args
from urllib.parse import quote

from gateway.catalog.entries import Entry, cleaned, entity_of
from gateway.gateway import Gateway
from gateway.serve.api.answers import Listed, Thing, Things
from gateway.serve.api.asked import (
    ENTRY_ID,
    EntityBody,
    EntityChange,
    Filtering,
    Listing,
    NewEntity,
    SkillSearch,
)
from gateway.serve.api.callers import EVERYTHING, Caller
from gateway.serve.api.grouping import MODES
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.rows import thing
from gateway.serve.api.views import Views, listed, statuses
from gateway.types import Entity, Hints, Status

ROOT = "/api/entities"
_EVERY_STATUS: frozenset[Status] = frozenset(get_args(Status))


def place(key: str) -> str:
    """Give the address of the entity with this id."""
    return f"{ROOT}/{quote(key, safe='')}"


class Entities:
    """Answers what is asked about entities.

    Args:
        gateway: Whose catalog it is.
        views: Shared by all of the API.
    """

    def __init__(self, gateway: Gateway, views: Views) -> None:
        self._gateway = gateway
        self._views = views
        self._writing = asyncio.Lock()

    async def page(self, caller: Caller, asked: Listing) -> Things:
        """List entities by id."""
        view = self._views.of(await self._gateway.snapshot())
        filters = view.filters(
            caller,
            kinds=None if asked.kind is None else frozenset({asked.kind}),
            tags=asked.tags,
            statuses=statuses(draft=asked.include_draft, deprecated=asked.include_deprecated),
            include_disabled=asked.include_disabled,
        )
        found = await self._gateway.catalog.list(filters, after=asked.after, limit=asked.limit)
        return Things(entities=[thing(each) for each in found.entities], next=found.next)

    async def filtered(self, caller: Caller, asked: Filtering, kinds: frozenset[str]) -> Listed:
        """List those of *kinds* that hold words, or all of them."""
        view = self._views.of(await self._gateway.snapshot())
        filters = view.filters(caller, kinds=kinds, tags=asked.tags)
        if not asked.query.strip():
            found = await self._gateway.catalog.list(filters, limit=asked.limit)
            things = [thing(each) for each in found.entities]
            return Listed(entities=things, total=len(things), search_mode="browse")
        result = await self._gateway.search(
            asked.query, limit=asked.limit, filters=filters, ranking="lexical"
        )
        view = self._views.of(await self._gateway.snapshot())
        entities = (view.entity(match.id) for match in result.matches)
        things = [thing(each) for each in entities if each is not None]
        return Listed(entities=things, total=len(things), search_mode=MODES[result.mode])

    async def skills(self, caller: Caller, asked: SkillSearch) -> Listed:
        """Search skills by words."""
        wanted = Filtering(query=asked.q, tags=asked.tags, limit=asked.limit)
        return await self.filtered(caller, wanted, frozenset({"skill"}))

    async def one(self, caller: Caller, key: str) -> Thing:
        """Give one entity, whatever its status.

        Raises:
            RefusedError: 404.
        """
        return thing(await self._seen(caller, key))

    async def create(self, caller: Caller, asked: NewEntity) -> Thing:
        """Add an entity.

        Raises:
            RefusedError: 409, if its id is taken; 403, if the caller could not see it.
            ConfigError: It cannot be one.
        """
        entry = _entry(asked, asked.kind, asked.namespace, asked.name)
        async with self._writing:
            if await self._gateway.catalog.get(entry.id) is not None:
                raise RefusedError(409, "taken", f"there is {entry.id!r} already: PUT replaces it")
            return await self._put(caller, entry)

    async def put(self, caller: Caller, key: str, asked: EntityBody) -> tuple[Thing, bool]:
        """Add or replace the entity with the id *key*; say whether it is new.

        Raises:
            RefusedError: 404, if nothing may be called so; 409, if a server lists it, or the
                caller may not see it; 403, if they could not see it afterwards.
            ConfigError: It cannot be one.
        """
        async with self._writing:
            before = await self._gateway.catalog.get(key)
            if before is not None:
                _own(before)
            entry = _entry(asked, *_parts(key))
            if before is not None and not _may_see(caller, before.scopes):
                raise RefusedError(409, "taken", f"{key!r} is taken by somebody else")
            return await self._put(caller, entry), before is None

    async def change(self, caller: Caller, key: str, asked: EntityChange) -> Thing:
        """Change an entity's status, or whether it is enabled.

        Raises:
            RefusedError: 404; 409, if a server lists it.
        """
        async with self._writing:
            entity = await self._seen(caller, key)
            _own(entity)
            enabled = entity.hints.enabled if asked.enabled is None else asked.enabled
            entry = _written(entity)
            entry = replace(
                entry,
                status=asked.status or entry.status,
                hints=replace(entry.hints, enabled=enabled),
            )
            return await self._put(caller, entry)

    async def remove(self, caller: Caller, key: str) -> None:
        """Remove an entity.

        Raises:
            RefusedError: 404; 409, if a server lists it.
        """
        async with self._writing:
            _own(await self._seen(caller, key))
            await self._gateway.catalog.remove(key)

    async def _seen(self, caller: Caller, key: str) -> Entity:
        view = self._views.of(await self._gateway.snapshot())
        filters = view.filters(caller, statuses=_EVERY_STATUS, include_disabled=True)
        found = await self._gateway.catalog.get(key, filters)
        if found is None:
            raise RefusedError(404, "unknown_entity", "there is no such entity: list them")
        return found

    async def _put(self, caller: Caller, entry: Entry) -> Thing:
        if not _may_see(caller, entry.scopes):
            missing = ", ".join(sorted(entry.scopes - caller.scopes))
            raise RefusedError(
                403, "scope_missing", f"you could not see it: your token lacks the scopes {missing}"
            )
        kept = cleaned(entry)
        await self._gateway.catalog.put(kept)
        return thing(entity_of(kept))


def _may_see(caller: Caller, scopes: frozenset[str]) -> bool:
    return EVERYTHING in caller.scopes or scopes <= caller.scopes


def _own(entity: Entity) -> None:
    if listed(entity):
        raise RefusedError(
            409, "listed", f"{entity.id!r} is what a server says of itself: change it there"
        )


def _parts(key: str) -> tuple[str, str, str]:
    found = ENTRY_ID.fullmatch(key)
    if found is None:
        raise RefusedError(
            404, "unknown_entity", "nothing is called so: ids are kind:namespace/name"
        )
    return found[1], found[2], found[3]


def _entry(asked: EntityBody, kind: str, namespace: str, name: str) -> Entry:
    hints = asked.hints
    return Entry(
        kind=kind,
        namespace=namespace,
        name=name,
        title=asked.title,
        description=asked.description,
        status=asked.status,
        hints=Hints(
            aliases=hints.aliases,
            keywords=hints.keywords,
            categories=hints.categories,
            tags=hints.tags,
            examples=hints.examples,
            enabled=asked.enabled,
        ),
        scopes=frozenset(asked.scopes),
        metadata=asked.metadata,
        parent=asked.parent,
    )


def _written(entity: Entity) -> Entry:
    return Entry(
        kind=entity.kind,
        namespace=entity.server,
        name=entity.name,
        title=entity.definition.title,
        description=entity.description,
        status=entity.status,
        hints=entity.hints,
        scopes=entity.scopes,
        metadata=entity.metadata,
        parent=entity.parent,
    )
