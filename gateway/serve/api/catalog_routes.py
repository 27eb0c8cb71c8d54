"""The catalog over HTTP: entities, listed, read and, by callers with the scope, written; and the
state of its index.

* A caller that may not find an entity learns nothing of it, not even that its id is taken: who adds
  an entity must see all that is in its namespace.
* A caller cannot write what it could not read afterwards.
* What a server lists is changed at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
from starlette.responses import Response as HttpResponse

from gateway.catalog.entries import INSTRUCTIONS, Entry, clean_entry, to_entity
from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.runtime import VERSION
from gateway.search.rank.parameters import LISTED_SKILL_SCORES
from gateway.serve.api import models
from gateway.serve.api.operations import ApiCall, operation, respond
from gateway.serve.api.pager import Pager, Place
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.search_routes import entity_path
from gateway.serve.api.visibility import (
    EVERYTHING,
    REGISTRY_KINDS,
    SEARCH_MODES,
    request_filters,
    sizes_of,
)
from gateway.serve.auth import ADMIN, LIVENESS, WRITE
from gateway.types import Caller, Entity, Hints

_view = models.EntityView.model_validate
ROOT = "/api/entities"
ONE = f"{ROOT}/{{id}}"
BUILD_WAIT_S = 1.0
"""How long a question waits for a build that is under way."""


class IndexStatus(models.Response):
    """The size and state of the index; counts are of what you may see, whatever its status."""

    generation: int
    """Counts changes of the catalog."""
    entities: int
    by_kind: Mapping[str, int]
    vectors: int
    graph_nodes: int
    graph_edges: int
    strategy: str
    model: str
    """Of the vectors; empty without any."""
    duration_s: float
    """How long the last build took."""
    rebuilding: bool
    """Whether a part of it is being built, such as vectors."""
    diagnostics: Sequence[models.DiagnosticNote]
    details: Sequence[str] = ()
    """The details of the diagnostics, for callers with the scope `catalog:admin`."""


class RebuildStarted(models.Response):
    """A rebuild is under way; `/api/index` says when it is done."""

    rebuilding: bool = True


class HealthStatus(models.Response):
    """Whether the server answers."""

    status: Literal["ok", "starting"]
    """`starting` until the first index is there: the first search waits for it."""
    version: str


class CatalogRoutes:
    """The operations on entities, servers, agents and skills, on the index, and ``/api/health``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._write_lock = asyncio.Lock()
        self._snapshot: Snapshot | None = None
        """The last one that the state of the index was read from."""
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_failure = ""

    @operation("GET", "/api/servers", parameters=models.EntityQuery, response=models.EntityList)
    async def servers(self, call: ApiCall) -> models.EntityList:
        """List servers that hold a text."""
        return await self._list_holding(call, "servers", {"server", "virtual_server"})

    @operation("GET", "/api/agents", parameters=models.EntityQuery, response=models.EntityList)
    async def agents(self, call: ApiCall) -> models.EntityList:
        """List agents that hold a text."""
        return await self._list_holding(call, "agents", {"agent"})

    @operation(
        "GET", "/api/skills/search", parameters=models.SkillQuery, response=models.EntityList
    )
    async def skills(self, call: ApiCall) -> models.EntityList:
        """List skills that hold a text, best first."""
        return await self._list_holding(call, "skills", {"skill"}, scores=LISTED_SKILL_SCORES)

    async def _list_holding(
        self,
        call: ApiCall,
        name: str,
        kinds: set[str],
        *,
        scores: Mapping[str, float] | None = None,
    ) -> models.EntityList:
        """List the entities that hold the text of the request somewhere, without case, by id.

        Args:
            call: The request; without a text it lists all.
            name: Of the list.
            kinds: Of the entities.
            scores: What each field adds that holds the text; the best come first.
        """
        request: models.EntityQuery = call.request
        pager = Pager(name, request)
        snapshot = await self._gateway.snapshot()
        mask = snapshot.mask(request_filters(call.caller, snapshot, frozenset(kinds), request.tags))
        text = request.query.strip().casefold()
        rows: list[models.EntityView] = []
        for position in np.flatnonzero(mask).tolist():
            entity = snapshot.entities[position]
            held = [name for name, words in _texts(entity).items() if text in words.casefold()]
            score = sum(scores.get(name, 0.0) for name in held) if scores and text else None
            if held and score != 0:
                rows.append(_view(entity).model_copy(update={"relevance_score": score}))
        following = sorted((row for row in rows if _place(row) > pager.start), key=_place)
        shown = following[: request.limit]
        last = _place(shown[-1]) if len(following) > len(shown) else None
        return models.EntityList(
            entities=shown,
            metadata=pager.metadata(len(shown), last),
            total=len(rows),
            search_mode=SEARCH_MODES["lexical" if text else "browse"],
        )

    @operation("GET", ROOT, parameters=models.EntityPageQuery, response=models.EntityPage)
    async def list_entities(self, call: ApiCall) -> models.EntityPage:
        """List entities, in pages."""
        request: models.EntityPageQuery = call.request
        pager = Pager("entities", request)
        kinds = request.kind and frozenset({REGISTRY_KINDS.get(request.kind, request.kind)})
        snapshot = await self._gateway.snapshot()
        filters = request_filters(call.caller, snapshot, kinds or None, request.tags, request)
        page = await self._gateway.catalog.list(filters, after=pager.start[1], limit=request.limit)
        last = (0.0, page.next) if page.next else None
        return models.EntityPage(
            entities=list(map(_view, page.entities)),
            metadata=pager.metadata(len(page.entities), last),
            total=page.total,
        )

    @operation(
        "POST",
        ROOT,
        right=WRITE,
        body=models.NewEntity,
        response=models.EntityView,
        statuses=(201,),
    )
    async def create_entity(self, call: ApiCall) -> HttpResponse:
        """Add an entity.

        Raises:
            RefusedError: 409, if there is one of this id; 403, if the caller may not add to its
                namespace, or could not see it.
            ConfigError: The catalog refuses it.
        """
        body: models.NewEntity = call.request
        entry = _to_entry(body, _hints(body))
        async with self._write_lock:
            if await self._find(call.caller, entry.id) is not None:
                raise RefusedError(409, "taken", f"there is {entry.id!r} already: PUT replaces it")
            await self._check_addable(call.caller, entry)
            view = await self._put(call.caller, entry)
        return respond(view, 201, {"Location": f"{ROOT}/{quote(view.id, safe='')}"})

    @operation("GET", ONE, response=models.EntityView)
    async def read_entity(self, call: ApiCall) -> models.EntityView:
        """Read an entity."""
        return _view(await self._visible(call))

    @operation(
        "PUT",
        ONE,
        right=WRITE,
        body=models.EntityBody,
        response=models.EntityView,
        statuses=(200, 201),
    )
    async def put_entity(self, call: ApiCall) -> HttpResponse:
        """Add or replace an entity.

        Raises:
            RefusedError: 404, if the id is none of an entry; 409, if a server lists it; 403, if the
                caller may not add to its namespace, or could not see it afterwards.
            ConfigError: The catalog refuses it.
        """
        async with self._write_lock:
            current = await self._find(call.caller, call.key)
            if current is not None:
                _check_writable(current)
            parts = models.ENTRY_ID.fullmatch(call.key)
            if parts is None:
                raise RefusedError(
                    404, "unknown_entity", "nothing is called so: ids are kind:namespace/name"
                )
            entry = _to_entry(call.request, _hints(call.request), **parts.groupdict())
            if current is None:
                await self._check_addable(call.caller, entry)
            view = await self._put(call.caller, entry)
        return respond(view, 201 if current is None else 200)

    @operation("PATCH", ONE, right=WRITE, body=models.EntityChange, response=models.EntityView)
    async def change_entity(self, call: ApiCall) -> models.EntityView:
        """Change an entity's status, tags, scopes or search texts, or enable or disable it.

        Of what a server lists this is kept beside it, and holds whatever the server says.

        Raises:
            RefusedError: 403, if the caller could not see it afterwards.
        """
        change: models.EntityChange = call.request
        changes = change.model_dump(exclude_none=True)
        async with self._write_lock:
            entity = await self._visible(call)
            _check_scopes(call.caller, frozenset(change.scopes or ()))
            await self._gateway.catalog.change([entity.id], changes)
            return _view(await self._visible(call))

    @operation("DELETE", ONE, right=WRITE, response=None, statuses=(204,))
    async def remove_entity(self, call: ApiCall) -> HttpResponse:
        """Remove an entity."""
        async with self._write_lock:
            _check_writable(await self._visible(call))
            await self._gateway.catalog.remove(call.key)
        return respond(None, 204)

    async def _find(self, caller: Caller, key: str) -> Entity | None:
        """Return the entity with this id, if *caller* may see it."""
        filters = request_filters(caller, await self._gateway.snapshot(), shown=EVERYTHING)
        return await self._gateway.catalog.get(key, filters)

    async def _visible(self, call: ApiCall) -> Entity:
        entity = await self._find(call.caller, call.key)
        if entity is None:
            raise _unknown_entity()
        return entity

    async def _check_addable(self, caller: Caller, entry: Entry) -> None:
        """Refuse a new id where it could be that of a hidden entity, whether it is or not.

        A namespace of which nothing is seen may be one of which all is hidden: only a caller
        that sees the whole catalog may begin one.
        """
        snapshot = await self._gateway.snapshot()
        seen = snapshot.mask(request_filters(caller, snapshot, shown=EVERYTHING))
        own = seen[snapshot.eligibility.of_server(entry.namespace)]
        if not seen.all() and not (own.size and own.all()):
            raise RefusedError(
                403, "namespace_closed", "add it to a namespace of which you see everything"
            )

    async def _put(self, caller: Caller, entry: Entry) -> models.EntityView:
        _check_scopes(caller, entry.scopes)
        clean = clean_entry(entry)
        await self._gateway.catalog.put(clean)
        return _view(to_entity(clean))

    @operation("GET", "/api/index", response=IndexStatus)
    async def index(self, call: ApiCall) -> IndexStatus:
        """Read the size and state of the index."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BUILD_WAIT_S):
                self._snapshot = await self._gateway.snapshot()
        sizes: dict[str, Any] = sizes_of(self._snapshot, call.caller) if self._snapshot else {}
        report, embedder = await self._gateway.report(wait=False), self._gateway.embedder
        is_building = any(note.code == "index_building" for note in report.diagnostics)
        details = [f"{note.code}: {note.detail}" for note in report.diagnostics]
        if self._rebuild_failure:
            details.append(f"the last rebuild failed: {self._rebuild_failure}")
        return IndexStatus(
            **{**asdict(report), "by_kind": {}, **sizes},
            strategy=self._gateway.strategy,
            model=embedder.info.model_id if embedder and sizes.get("vectors") else "",
            rebuilding=self._rebuild_task is not None or is_building,
            details=details if call.caller.holds({ADMIN}) else (),
        )

    @operation("POST", "/api/index/rebuild", right=ADMIN, response=RebuildStarted, statuses=(202,))
    async def rebuild_index(self, _call: ApiCall) -> HttpResponse:
        """List every server again and build the index anew, in the background."""
        if self._rebuild_task is None:
            self._rebuild_task = asyncio.create_task(self._rebuild(), name="rebuild")
        return respond(RebuildStarted(), 202, {"Location": "/api/index"})

    async def _rebuild(self) -> None:
        done = await attempt(self._gateway.refresh())
        self._rebuild_failure = done.reason if isinstance(done, Failed) else ""
        self._rebuild_task = None

    @operation("GET", LIVENESS, response=HealthStatus)
    async def health(self, _call: ApiCall) -> HealthStatus:
        """Read whether the server answers.

        It is ``ok`` after the first build, which this starts.
        """
        # It starts the first build, in the background.
        await self._gateway.report(wait=False)
        status: Literal["ok", "starting"] = "ok" if self._gateway.index_builds else "starting"
        return HealthStatus(status=status, version=VERSION)


def _place(row: models.EntityView) -> Place:
    """Return what lists are sorted by."""
    return -(row.relevance_score or 0.0), row.id


def _texts(entity: Entity) -> Mapping[str, str]:
    """Return the texts of *entity* that lists are searched by."""
    details = entity.definition.details
    tools = [details.get(key) for key in ("tools", "tool_descriptions")]
    return {
        "path": entity_path(entity),
        "name": f"{entity.name} {entity.definition.title}",
        "description": entity.description,
        "tags": " ".join(entity.hints.tags),
        "tools": " ".join(text for texts in tools if isinstance(texts, list) for text in texts),
        "metadata": " ".join(_words(entity.metadata)),
    }


def _words(value: object) -> Iterator[str]:
    """Yield keys and values of metadata in their order, as registries flatten them."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != INSTRUCTIONS:
                yield key
                yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
    elif value is not None:
        yield str(value)


def _unknown_entity() -> RefusedError:
    return RefusedError(404, "unknown_entity", "there is no such entity: list them")


def _check_scopes(caller: Caller, scopes: frozenset[str]) -> None:
    if not caller.holds(scopes):
        missing = ", ".join(sorted(scopes - caller.scopes))
        raise RefusedError(
            403, "scope_missing", f"you could not see it: your token lacks the scopes {missing}"
        )


def _check_writable(entity: Entity) -> None:
    if _view(entity).listed:
        raise RefusedError(409, "listed", f"{entity.id!r} is listed by a server: change it there")


def _hints(body: models.EntityBody) -> Hints:
    return Hints(enabled=body.enabled, **body.hints.model_dump())


def _to_entry(body: models.EntityBody | models.EntityView, hints: Hints, **more: str) -> Entry:
    """Return the entry that *body* describes, with *hints* and *more* instead of its own."""
    names = {field.name for field in fields(Entry)} - {"hints"}
    return Entry(hints=hints, **(body.model_dump(include=names) | more))
