"""HTTP routes of catalog entities: list and read, and write with the scope `catalog:write`.

Hidden entities are answered like missing ones, so their ids are not revealed. Callers cannot write
entities that they could not read afterwards, nor definitions that a server lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Annotated
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response as HttpResponse

from gateway.catalog.entries import INSTRUCTIONS, Entry, clean_entry, to_entity
from gateway.gateway import Gateway
from gateway.search.rank.parameters import LISTED_SKILL_SCORES
from gateway.serve.api import models
from gateway.serve.api.problems import HEADERS, RefusedError
from gateway.serve.api.routing import (
    BODY_PROBLEMS,
    ApiRoute,
    CurrentCaller,
    EntityList,
    EntityPage,
    Pager,
    ServedGateway,
    SortKey,
    WriterRoute,
    problems,
)
from gateway.serve.api.search_routes import entity_path
from gateway.serve.api.visibility import EVERYTHING, REGISTRY_KINDS, SEARCH_MODES, request_filters
from gateway.types import Caller, Entity, Hints

router = APIRouter(route_class=ApiRoute)
writer_router = APIRouter(route_class=WriterRoute, responses=problems(409))
_view = models.EntityView.model_validate
ROOT = "/api/entities"
ONE = f"{ROOT}/{{id:path}}"


class Entities:
    """Reads and writes the entities that a caller may see."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.write_lock = asyncio.Lock()

    async def find(self, caller: Caller, key: str) -> Entity | None:
        """Return the entity with the id *key*. None if it is unknown or hidden."""
        filters = request_filters(caller, await self._gateway.snapshot(), visibility=EVERYTHING)
        return await self._gateway.catalog.get(key, filters)

    async def get(self, caller: Caller, key: str) -> Entity:
        """Return the entity with the id *key*.

        Raises:
            RefusedError: 404 if it is unknown or hidden.
        """
        entity = await self.find(caller, key)
        if entity is None:
            raise RefusedError(
                404, "unknown_entity", "unknown entity; GET /api/entities lists the entities"
            )
        return entity

    async def check_addable(self, caller: Caller, entry: Entry) -> None:
        """Check that *caller* may add an entity to the namespace of *entry*.

        The caller must see the whole namespace, or else a refusal would reveal ids of hidden
        entities. An apparently empty namespace may contain hidden ones, so only callers that see
        the whole catalog can start one.

        Raises:
            RefusedError: 403 if the caller may not add the entity.
        """
        snapshot = await self._gateway.snapshot()
        visible = snapshot.mask(request_filters(caller, snapshot, visibility=EVERYTHING))
        in_namespace = visible[snapshot.eligibility.of_server(entry.namespace)]
        if not visible.all() and not (in_namespace.size and in_namespace.all()):
            raise RefusedError(
                403,
                "namespace_closed",
                "you may add entities only to namespaces in which you can see every entity; only "
                "callers that see the whole catalog can start a namespace",
            )

    async def put(self, caller: Caller, entry: Entry) -> models.EntityView:
        """Store *entry* and return it as the API shows it.

        Raises:
            RefusedError: 403 if *caller* could not see the entity afterwards.
            ConfigError: If the catalog rejects the entry.
        """
        _check_scopes(caller, entry.scopes)
        clean = clean_entry(entry)
        await self._gateway.catalog.put(clean)
        return _view(to_entity(clean))


async def _entities_of(request: Request) -> Entities:
    entities: Entities = request.app.state.entities
    return entities


ServedEntities = Annotated[Entities, Depends(_entities_of)]
# Limits for the OpenAPI document only. A longer id gets 404.
EntityId = Annotated[
    str,
    Path(
        alias="id",
        description="Id of the entity. A slash may be written as it is or as %2F.",
        json_schema_extra={"minLength": 1, "maxLength": 1024},
        examples=["agent:catalog/travel-planner"],
    ),
]
_ListQuery = Annotated[models.EntityQuery, Query()]


@router.get("/api/servers")
async def servers(caller: CurrentCaller, gateway: ServedGateway, query: _ListQuery) -> EntityList:
    """List servers, or only the servers that contain a text."""
    return await _list_matching(gateway, caller, query, ("servers", {"server", "virtual_server"}))


@router.get("/api/agents")
async def agents(caller: CurrentCaller, gateway: ServedGateway, query: _ListQuery) -> EntityList:
    """List agents, or only the agents that contain a text."""
    return await _list_matching(gateway, caller, query, ("agents", {"agent"}))


@router.get("/api/skills/search")
async def skills(
    caller: CurrentCaller, gateway: ServedGateway, query: Annotated[models.SkillQuery, Query()]
) -> EntityList:
    """List the skills that contain a text, ordered by the fields that contain it, best first."""
    scores = LISTED_SKILL_SCORES
    return await _list_matching(gateway, caller, query, ("skills", {"skill"}), scores=scores)


async def _list_matching(
    gateway: Gateway,
    caller: Caller,
    query: models.EntityQuery,
    listing: tuple[str, set[str]],
    *,
    scores: Mapping[str, float] | None = None,
) -> EntityList:
    """List the entities that contain the requested text, ignoring case. An empty text lists all.

    *listing* has the name of the list for its cursors, and the kinds of its entities. *scores* are
    points, keyed by field. An entity scores the sum for fields that contain the text, and the best
    comes first. None orders by id.
    """
    name, kinds = listing
    pager = Pager(name, query)
    snapshot = await gateway.snapshot()
    mask = snapshot.mask(request_filters(caller, snapshot, frozenset(kinds), query.tags))
    text = query.query.strip().casefold()
    rows: list[models.EntityView] = []
    for position in np.flatnonzero(mask).tolist():
        entity = snapshot.entities[position]
        fields = [name for name, words in _texts(entity).items() if text in words.casefold()]
        score = sum(scores.get(name, 0.0) for name in fields) if scores and text else None
        if fields and score != 0:
            rows.append(_view(entity).model_copy(update={"relevance_score": score}))
    following = sorted((row for row in rows if _sort_key(row) > pager.start), key=_sort_key)
    page = following[: query.limit]
    last = _sort_key(page[-1]) if len(following) > len(page) else None
    return EntityList(
        entities=page,
        metadata=pager.metadata(len(page), last),
        total=len(rows),
        search_mode=SEARCH_MODES["lexical" if text else "browse"],
    )


@router.get(ROOT)
async def list_entities(
    caller: CurrentCaller, gateway: ServedGateway, query: Annotated[models.EntityPageQuery, Query()]
) -> EntityPage:
    """List entities in pages, ordered by id."""
    pager = Pager("entities", query)
    kinds = query.kind and frozenset({REGISTRY_KINDS.get(query.kind, query.kind)})
    snapshot = await gateway.snapshot()
    filters = request_filters(caller, snapshot, kinds or None, query.tags, query)
    page = await gateway.catalog.list(filters, after=pager.start[1], limit=query.limit)
    last = (0.0, page.next) if page.next else None
    return EntityPage(
        entities=list(map(_view, page.entities)),
        metadata=pager.metadata(len(page.entities), last),
        total=page.total,
    )


@writer_router.post(ROOT, status_code=201, responses=BODY_PROBLEMS)
async def create_entity(
    caller: CurrentCaller, entities: ServedEntities, body: models.NewEntity, response: HttpResponse
) -> models.EntityView:
    """Add an entity.

    Requires the scope `catalog:write`.

    Raises:
        RefusedError: 409 if the id is taken. 403 if you may not add entities to the namespace, or
            could not see the entity afterwards.
        ConfigError: If the catalog rejects the entity.
    """
    entry = _to_entry(body, _hints(body))
    async with entities.write_lock:
        if await entities.find(caller, entry.id) is not None:
            raise RefusedError(409, "taken", f"{entry.id!r} already exists; use PUT to replace it")
        await entities.check_addable(caller, entry)
        view = await entities.put(caller, entry)
    response.headers["Location"] = f"{ROOT}/{quote(view.id, safe='')}"
    return view


@router.get(ONE)
async def read_entity(
    caller: CurrentCaller, entities: ServedEntities, key: EntityId
) -> models.EntityView:
    """Read an entity."""
    return _view(await entities.get(caller, key))


@writer_router.put(ONE, responses={201: {"model": models.EntityView}, **BODY_PROBLEMS})
async def put_entity(
    caller: CurrentCaller,
    entities: ServedEntities,
    key: EntityId,
    body: models.EntityBody,
    response: HttpResponse,
) -> models.EntityView:
    """Add or replace an entity.

    Requires the scope `catalog:write`.

    Raises:
        RefusedError: 404 if the id does not have the form kind:namespace/name. 409 if a server
            lists the entity. 403 if you may not add entities to the namespace, or could not see
            the entity afterwards.
        ConfigError: If the catalog rejects the entity.
    """
    async with entities.write_lock:
        current = await entities.find(caller, key)
        if current is not None:
            _check_writable(current)
        parts = models.ENTRY_ID.fullmatch(key)
        if parts is None:
            raise RefusedError(
                404, "unknown_entity", "invalid id; ids have the form kind:namespace/name"
            )
        entry = _to_entry(body, _hints(body), **parts.groupdict())
        if current is None:
            await entities.check_addable(caller, entry)
            response.status_code = 201
        return await entities.put(caller, entry)


@writer_router.patch(ONE, responses=BODY_PROBLEMS)
async def change_entity(
    caller: CurrentCaller,
    gateway: ServedGateway,
    entities: ServedEntities,
    key: EntityId,
    change: models.EntityChange,
) -> models.EntityView:
    """Change an entity's status, tags, scopes, search text or examples, or enable or disable it.

    Requires the scope `catalog:write`. Changes to an entity that a server lists are stored
    separately, and stay in force when the server lists the entity again.

    Raises:
        RefusedError: 404 if the entity is unknown. 403 if you could not see it afterwards.
    """
    changes = change.model_dump(exclude_none=True)
    async with entities.write_lock:
        entity = await entities.get(caller, key)
        _check_scopes(caller, frozenset(change.scopes or ()))
        await gateway.catalog.change([entity.id], changes)
        return _view(await entities.get(caller, key))


@writer_router.delete(ONE, status_code=204)
async def remove_entity(
    caller: CurrentCaller, gateway: ServedGateway, entities: ServedEntities, key: EntityId
) -> HttpResponse:
    """Remove an entity.

    Requires the scope `catalog:write`.
    """
    async with entities.write_lock:
        _check_writable(await entities.get(caller, key))
        await gateway.catalog.remove(key)
    return HttpResponse(status_code=204, headers=HEADERS)


def _sort_key(row: models.EntityView) -> SortKey:
    """Return the sort key of *row*: highest score first, then id."""
    return -(row.relevance_score or 0.0), row.id


def _texts(entity: Entity) -> Mapping[str, str]:
    """Return the searched texts of *entity*, keyed by field."""
    details = entity.definition.details
    tools = [details.get(key) for key in ("tools", "tool_descriptions")]
    return {
        "path": entity_path(entity),
        "name": f"{entity.name} {entity.definition.title}",
        "description": entity.description,
        "tags": " ".join(entity.hints.tags),
        "tools": " ".join(text for texts in tools if isinstance(texts, list) for text in texts),
        "metadata": " ".join(_flatten(entity.metadata)),
    }


def _flatten(value: object) -> Iterator[str]:
    """Yield keys and values in nested metadata as texts, except the instructions."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != INSTRUCTIONS:
                yield key
                yield from _flatten(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _flatten(inner)
    elif value is not None:
        yield str(value)


def _check_scopes(caller: Caller, scopes: frozenset[str]) -> None:
    if not caller.holds(scopes):
        missing = ", ".join(sorted(scopes - caller.scopes))
        raise RefusedError(
            403,
            "scope_missing",
            f"your token lacks the scopes {missing}, so you could not see the entity",
        )


def _check_writable(entity: Entity) -> None:
    if _view(entity).listed:
        raise RefusedError(409, "listed", f"a server lists {entity.id!r}; change it at the server")


def _hints(body: models.EntityBody) -> Hints:
    return Hints(enabled=body.enabled, **body.hints.model_dump())


def _to_entry(body: models.EntityBody | models.EntityView, hints: Hints, **more: str) -> Entry:
    names = {field.name for field in fields(Entry)} - {"hints"}
    return Entry(hints=hints, **(body.model_dump(include=names) | more))
