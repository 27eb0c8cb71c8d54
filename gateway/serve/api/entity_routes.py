"""Entities over HTTP: listed, read, and, by callers with the scope, written.

* A caller that may not find an entity learns nothing of it but that its id is taken.
* A caller cannot write what it could not read afterwards.
* What a server lists is changed at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import quote

from starlette.responses import Response

from gateway.catalog.entries import Entry, clean_entry, to_entity
from gateway.gateway import Gateway
from gateway.serve.api.auth import ALL_SCOPES, WRITE, ApiCaller
from gateway.serve.api.catalog_view import EVERYTHING, REGISTRY_KINDS, SEARCH_MODES, CatalogViews
from gateway.serve.api.models import (
    ENTRY_ID,
    EntityBody,
    EntityChange,
    EntityList,
    EntityPage,
    EntityPageQuery,
    EntityQuery,
    EntityView,
    NewEntity,
    SkillQuery,
)
from gateway.serve.api.operations import ApiCall, operation, respond
from gateway.serve.api.problems import RefusedError
from gateway.types import Entity, Hints

_view = EntityView.model_validate
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
        return await self._find(call, {"server", "virtual_server"})

    @operation("GET", "/api/agents", parameters=EntityQuery, response=EntityList)
    async def agents(self, call: ApiCall) -> EntityList:
        """List agents, by words."""
        return await self._find(call, {"agent"})

    @operation("GET", "/api/skills/search", parameters=SkillQuery, response=EntityList)
    async def skills(self, call: ApiCall) -> EntityList:
        """List skills, by words."""
        return await self._find(call, {"skill"})

    async def _find(self, call: ApiCall, kinds: set[str]) -> EntityList:
        request: EntityQuery = call.request
        view = await self._views.current()
        filters = view.filters(call.caller, frozenset(kinds), request.tags)
        mode = SEARCH_MODES["browse"]
        if request.query.strip():
            result = await self._gateway.search(
                request.query, limit=request.limit, filters=filters, ranking="lexical"
            )
            mode = SEARCH_MODES[result.mode]
            view = await self._views.current()
            ids = [match.id for match in result.matches]
            entities: Collection[Entity] = view.visible(ids, filters).values()
        else:
            page = await self._gateway.catalog.list(filters, limit=request.limit)
            entities = page.entities
        rows = list(map(_view, entities))
        return EntityList(entities=rows, total=len(rows), search_mode=mode)

    @operation("GET", ROOT, parameters=EntityPageQuery, response=EntityPage)
    async def list_entities(self, call: ApiCall) -> EntityPage:
        """List entities, in pages."""
        request: EntityPageQuery = call.request
        view = await self._views.current()
        kinds = request.kind and frozenset({REGISTRY_KINDS.get(request.kind, request.kind)})
        filters = view.filters(call.caller, kinds or None, request.tags, request)
        page = await self._gateway.catalog.list(filters, after=request.after, limit=request.limit)
        return EntityPage(entities=list(map(_view, page.entities)), next=page.next)

    @operation("POST", ROOT, right=WRITE, body=NewEntity, response=EntityView, statuses=(201,))
    async def create_entity(self, call: ApiCall) -> Response:
        """Add an entity.

        Raises:
            RefusedError: 409, if there is one of this id; 403, if the caller could not see it.
            ConfigError: The catalog refuses it.
        """
        body: NewEntity = call.request
        entry = _to_entry(body, body.kind, body.namespace, body.name)
        async with self._write_lock:
            if await self._gateway.catalog.get(entry.id) is not None:
                raise RefusedError(409, "taken", f"there is {entry.id!r} already: PUT replaces it")
            view = await self._put(call.caller, entry)
        return respond(view, 201, {"Location": f"{ROOT}/{quote(view.id, safe='')}"})

    @operation("GET", ONE, response=EntityView)
    async def read_entity(self, call: ApiCall) -> EntityView:
        """Read an entity."""
        return _view(await self._visible(call))

    @operation("PUT", ONE, right=WRITE, body=EntityBody, response=EntityView, statuses=(200, 201))
    async def put_entity(self, call: ApiCall) -> Response:
        """Add or replace an entity.

        Raises:
            RefusedError: 404, if the id is none of an entry; 409, if a server lists it, or the
                caller may not see it; 403, if the caller could not see it afterwards.
            ConfigError: The catalog refuses it.
        """
        async with self._write_lock:
            current = await self._gateway.catalog.get(call.key)
            if current is not None:
                if not _may_see(call.caller, current.scopes):
                    raise RefusedError(409, "taken", f"{call.key!r} is taken by another owner")
                _check_writable(current)
            parts = ENTRY_ID.fullmatch(call.key)
            if parts is None:
                raise RefusedError(
                    404, "unknown_entity", "nothing is called so: ids are kind:namespace/name"
                )
            view = await self._put(call.caller, _to_entry(call.request, *parts.groups()))
        return respond(view, 201 if current is None else 200)

    @operation("PATCH", ONE, right=WRITE, body=EntityChange, response=EntityView)
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

    @operation("DELETE", ONE, right=WRITE, response=None, statuses=(204,))
    async def remove_entity(self, call: ApiCall) -> Response:
        """Remove an entity."""
        async with self._write_lock:
            _check_writable(await self._visible(call))
            await self._gateway.catalog.remove(call.key)
        return respond(None, 204)

    async def _visible(self, call: ApiCall) -> Entity:
        view = await self._views.current()
        filters = view.filters(call.caller, shown=EVERYTHING)
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
        return _view(to_entity(clean))


def _may_see(caller: ApiCaller, scopes: frozenset[str]) -> bool:
    return ALL_SCOPES in caller.scopes or scopes <= caller.scopes


def _check_writable(entity: Entity) -> None:
    if _view(entity).listed:
        raise RefusedError(409, "listed", f"{entity.id!r} is listed by a server: change it there")


def _to_entry(body: EntityBody, kind: str, namespace: str, name: str) -> Entry:
    fields = body.model_dump(exclude={"kind", "namespace", "name", "enabled", "hints"})
    hints = Hints(enabled=body.enabled, **body.hints.model_dump())
    return Entry(kind=kind, namespace=namespace, name=name, hints=hints, **fields)
