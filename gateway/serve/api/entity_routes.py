"""Entities over HTTP: listed, read, and, by callers with the scope, written.

* A caller that may not find an entity learns nothing of it but that its id is taken.
* A caller cannot write what it could not read afterwards.
* What a server lists is changed at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote

from gateway.catalog.entries import Entry, clean_entry, to_entity
from gateway.gateway import Gateway
from gateway.serve.api.auth import ALL_SCOPES, WRITE, ApiCaller
from gateway.serve.api.catalog_view import CatalogViews, is_server_listed
from gateway.serve.api.operations import ApiCall, Reply, operation
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.requests import (
    ENTRY_ID,
    EntityBody,
    EntityChange,
    EntityPageQuery,
    EntityQuery,
    NewEntity,
    SkillQuery,
)
from gateway.serve.api.responses import EntityList, EntityPage, EntityView, HintsView, SearchMode
from gateway.serve.api.search_rows import SEARCH_MODES
from gateway.types import Entity, Hints

ROOT = "/api/entities"
ONE = f"{ROOT}/{{id}}"


class EntityRoutes:
    """The operations on entities, servers, agents and skills.

    Args:
        gateway: The gateway of the catalog.
        views: Shared by all routes.
    """

    def __init__(self, gateway: Gateway, views: CatalogViews) -> None:
        self._gateway = gateway
        self._views = views
        self._write_lock = asyncio.Lock()

    @operation("GET", "/api/servers", parameters=EntityQuery, response=EntityList)
    async def servers(self, call: ApiCall) -> EntityList:
        """List servers, by words."""
        request: EntityQuery = call.request
        return await self._find(call.caller, request, {"server", "virtual_server"})

    @operation("GET", "/api/agents", parameters=EntityQuery, response=EntityList)
    async def agents(self, call: ApiCall) -> EntityList:
        """List agents, by words."""
        request: EntityQuery = call.request
        return await self._find(call.caller, request, {"agent"})

    @operation("GET", "/api/skills/search", parameters=SkillQuery, response=EntityList)
    async def skills(self, call: ApiCall) -> EntityList:
        """List skills, by words."""
        request: SkillQuery = call.request
        query = EntityQuery(query=request.q, tags=request.tags, limit=request.limit)
        return await self._find(call.caller, query, {"skill"})

    async def _find(self, caller: ApiCaller, query: EntityQuery, kinds: set[str]) -> EntityList:
        view = await self._views.current()
        filters = view.filters(caller, kinds=frozenset(kinds), tags=query.tags)
        if not query.query.strip():
            page = await self._gateway.catalog.list(filters, limit=query.limit)
            return _entity_list(page.entities, "browse")
        result = await self._gateway.search(
            query.query, limit=query.limit, filters=filters, ranking="lexical"
        )
        view = await self._views.current()
        entities = [view.entity(match.id) for match in result.matches]
        return _entity_list(
            [entity for entity in entities if entity is not None], SEARCH_MODES[result.mode]
        )

    @operation("GET", ROOT, parameters=EntityPageQuery, response=EntityPage)
    async def list_entities(self, call: ApiCall) -> EntityPage:
        """List entities, in pages."""
        request: EntityPageQuery = call.request
        view = await self._views.current()
        filters = view.filters(
            call.caller,
            kinds=None if request.kind is None else frozenset({request.kind}),
            tags=request.tags,
            include_draft=request.include_draft,
            include_deprecated=request.include_deprecated,
            include_disabled=request.include_disabled,
        )
        page = await self._gateway.catalog.list(filters, after=request.after, limit=request.limit)
        return EntityPage(entities=list(map(entity_view, page.entities)), next=page.next)

    @operation(
        "POST",
        ROOT,
        right=WRITE,
        body=NewEntity,
        response=EntityView,
        status=201,
        refusals=(409,),
    )
    async def create_entity(self, call: ApiCall) -> Reply:
        """Add an entity.

        Raises:
            RefusedError: 409, if its id is taken; 403, if the caller could not see it.
            ConfigError: The catalog refuses it.
        """
        request: NewEntity = call.request
        entry = _new_entry(request, request.kind, request.namespace, request.name)
        async with self._write_lock:
            if await self._gateway.catalog.get(entry.id) is not None:
                raise RefusedError(409, "taken", f"there is {entry.id!r} already: PUT replaces it")
            view = await self._put(call.caller, entry)
        return Reply(value=view, headers={"Location": f"{ROOT}/{quote(view.id, safe='')}"})

    @operation("GET", ONE, response=EntityView, refusals=(404,))
    async def read_entity(self, call: ApiCall) -> EntityView:
        """Read an entity."""
        return entity_view(await self._visible(call))

    @operation(
        "PUT",
        ONE,
        right=WRITE,
        body=EntityBody,
        response=EntityView,
        other_statuses=(201,),
        refusals=(404, 409),
    )
    async def put_entity(self, call: ApiCall) -> Reply:
        """Add or replace an entity.

        Raises:
            RefusedError: 404, if the id is none of an entry; 409, if a server lists it, or the
                caller may not see it; 403, if the caller could not see it afterwards.
            ConfigError: The catalog refuses it.
        """
        async with self._write_lock:
            current = await self._gateway.catalog.get(call.key)
            if current is not None:
                _check_writable(current)
            parts = ENTRY_ID.fullmatch(call.key)
            if parts is None:
                raise RefusedError(
                    404, "unknown_entity", "nothing is called so: ids are kind:namespace/name"
                )
            if current is not None and not _may_see(call.caller, current.scopes):
                raise RefusedError(409, "taken", f"{call.key!r} is taken by another owner")
            view = await self._put(call.caller, _new_entry(call.request, *parts.groups()))
        return Reply(value=view, status=201 if current is None else 200)

    @operation(
        "PATCH", ONE, right=WRITE, body=EntityChange, response=EntityView, refusals=(404, 409)
    )
    async def change_entity(self, call: ApiCall) -> EntityView:
        """Change an entity's status, or enable or disable it."""
        change: EntityChange = call.request
        async with self._write_lock:
            entity = await self._visible(call)
            _check_writable(entity)
            enabled = entity.hints.enabled if change.enabled is None else change.enabled
            entry = Entry(
                kind=entity.kind,
                namespace=entity.server,
                name=entity.name,
                title=entity.definition.title,
                description=entity.description,
                status=change.status or entity.status,
                hints=replace(entity.hints, enabled=enabled),
                scopes=entity.scopes,
                metadata=entity.metadata,
                parent=entity.parent,
            )
            return await self._put(call.caller, entry)

    @operation("DELETE", ONE, right=WRITE, response=None, status=204, refusals=(404, 409))
    async def remove_entity(self, call: ApiCall) -> Reply:
        """Remove an entity."""
        async with self._write_lock:
            _check_writable(await self._visible(call))
            await self._gateway.catalog.remove(call.key)
        return Reply()

    async def _visible(self, call: ApiCall) -> Entity:
        view = await self._views.current()
        filters = view.filters(
            call.caller, include_draft=True, include_deprecated=True, include_disabled=True
        )
        entity = await self._gateway.catalog.get(call.key, filters)
        if entity is None:
            raise RefusedError(404, "unknown_entity", "there is no such entity: list them")
        return entity

    async def _put(self, caller: ApiCaller, entry: Entry) -> EntityView:
        if not _may_see(caller, entry.scopes):
            missing = ", ".join(sorted(entry.scopes - caller.scopes))
            raise RefusedError(
                403, "scope_missing", f"you could not see it: your token lacks the scopes {missing}"
            )
        clean = clean_entry(entry)
        await self._gateway.catalog.put(clean)
        return entity_view(to_entity(clean))


def entity_view(entity: Entity) -> EntityView:
    """Return *entity* whole, as a response shows it."""
    return EntityView(
        id=entity.id,
        kind=entity.kind,
        name=entity.name,
        namespace=entity.server,
        title=entity.definition.title,
        description=entity.description,
        status=entity.status,
        enabled=entity.hints.enabled,
        hints=HintsView.model_validate(entity.hints, from_attributes=True),
        scopes=sorted(entity.scopes),
        parent=entity.parent,
        metadata=entity.metadata,
        listed=is_server_listed(entity),
        digest=entity.digest,
    )


def _entity_list(entities: Sequence[Entity], mode: SearchMode) -> EntityList:
    return EntityList(
        entities=list(map(entity_view, entities)), total=len(entities), search_mode=mode
    )


def _may_see(caller: ApiCaller, scopes: frozenset[str]) -> bool:
    return ALL_SCOPES in caller.scopes or scopes <= caller.scopes


def _check_writable(entity: Entity) -> None:
    if is_server_listed(entity):
        raise RefusedError(409, "listed", f"{entity.id!r} is listed by a server: change it there")


def _new_entry(body: EntityBody, kind: str, namespace: str, name: str) -> Entry:
    return Entry(
        kind=kind,
        namespace=namespace,
        name=name,
        title=body.title,
        description=body.description,
        status=body.status,
        hints=Hints(enabled=body.enabled, **body.hints.model_dump()),
        scopes=frozenset(body.scopes),
        metadata=body.metadata,
        parent=body.parent,
    )
