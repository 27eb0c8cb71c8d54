"""Catalog: what there is, as a list with facets, and each thing by itself.

The address of the list holds words, facets and chosen ids, so a choice outlives another search. A
change or an export is of the chosen ids, or of all that words and facets select.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from starlette.responses import Response

from gateway.catalog.catalog import ChangeReport
from gateway.catalog.identity import SERVER_KINDS
from gateway.catalog.selection import Page, Selection
from gateway.config.config_file import read_text
from gateway.gateway import Gateway
from gateway.plugins.manifests.client_files import ClientSnippet, client_snippets
from gateway.plugins.manifests.exporter import export_servers, export_virtual_server, servers_of
from gateway.plugins.usage.analytics import ToolUse
from gateway.runtime.background_loop import in_thread
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.visibility import EVERYTHING, request_filters
from gateway.serve.auth import ADMIN, METRICS, WRITE
from gateway.serve.console.page import (
    ConsoleOptions,
    Facet,
    PageView,
    Place,
    Redirect,
    Texts,
    Visit,
    clip,
    download,
    facet_of,
    page,
    path,
)
from gateway.serve.guard import CONSOLE
from gateway.serve.http import PATH
from gateway.types import Access, Entity, Filters, Status

ROWS = 50
"""Of a page of the list."""
MAX_CHOSEN = 500
"""How many ids an address holds."""
MAX_TOOLS = 200
"""How many tools of a server its page names."""
MAX_FAILURES = 5
"""How many of the things that could not be changed a note names."""
MAX_CHARS = 300
"""How much of a description stands in the list."""
_LIST = f"{CONSOLE}/catalog"
_FACETS = ("kind", "server", "tag", "status", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRow:
    """An entity of the list."""

    id: str
    kind: str
    name: str
    title: str
    description: str
    """Its first 300 characters."""
    server: str
    status: str
    enabled: bool
    tags: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogData:
    """A page of what words and facets select, and what is chosen."""

    text: str
    rows: tuple[CatalogRow, ...]
    total: int
    facets: tuple[Facet, ...]
    selected: tuple[tuple[str, str], ...]
    """The selected values, each after its facet."""
    chosen: tuple[str, ...]
    """The chosen ids, at most 500."""
    elsewhere: tuple[str, ...]
    """Those of them that are not on this page."""
    chosen_query: str
    """What addresses end with that keep them."""
    next: str
    """The query of the next page; empty on the last one."""
    has_config: bool
    """Whether servers can be exported: they stand in a configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    """One entity."""

    entity: Entity
    server_state: str
    """Of the connection of its server; empty if there is none."""
    use: Access
    """What is said here, which can be changed here."""
    approved: str
    """The digest of the approved definition; empty if none is kept."""
    changed: bool
    """Whether the definition is not the approved one."""
    calls: ToolUse | None
    """None if nothing is noted."""
    tools: tuple[CatalogRow, ...]
    """Of a server, the first 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsData:
    """What other clients need to use this gateway."""

    snippets: tuple[ClientSnippet, ...]


class CatalogPage:
    """The pages of the catalog."""

    place: ClassVar = Place(title="Catalog", path="/catalog")

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options

    @page("GET", "/catalog")
    async def show(self, visit: Visit) -> PageView:
        """List what the address selects."""
        query = visit.query
        found = await self._gateway.catalog.list(
            await self._filters(visit), _selection(query), after=query.get("after", ""), limit=ROWS
        )
        data = _list_data(query, found, has_config=self._options.config is not None)
        return PageView(template="catalog.html", title="Catalog", data=data)

    @page("POST", "/catalog", right=WRITE)
    async def change_many(self, visit: Visit) -> Redirect:
        """Enable, disable or tag what is chosen."""
        action, tags = visit.query.get("do", ""), _words(visit.form.get("tags", ""))
        use = {"enabled": action == "enable"} if action in {"enable", "disable"} else {}
        added, removed = (tags if action == name else [] for name in ("tag", "untag"))
        ids = await self._chosen_ids(visit)
        if not ids or not (use or added or removed):
            missing = "write tags, with commas between" if ids else "choose something"
            return Redirect(to=_address(visit.form), note=f"Nothing was changed: {missing}.")
        filters = await self._filters(visit)
        report = await self._gateway.catalog.change(
            ids, use, add_tags=added, remove_tags=removed, filters=filters
        )
        return Redirect(to=_address(visit.form), note=_note(report))

    @page("POST", "/catalog/export/servers", right=ADMIN)
    async def export_servers(self, visit: Visit) -> Response:
        """Download the servers of what is chosen as an ``mcp.json``, without secrets."""
        config = self._options.config
        if config is None:
            raise RefusedError(404, "no_configuration", "no configuration has these servers")
        names = servers_of(await self._chosen(visit))
        text = await in_thread(read_text, config)
        return download(export_servers(text, names, where=config.name).document, "mcp.json")

    @page("POST", "/catalog/export/virtual")
    async def export_virtual(self, visit: Visit) -> Response:
        """Download the chosen tools as a virtual server."""
        name = visit.form.get("name", "").strip() or "chosen"
        chosen = await self._chosen(visit)
        document = export_virtual_server(name, chosen, self._gateway.original)
        return download(document, "virtual-server.json")

    @page("GET", "/catalog/clients")
    async def show_clients(self, visit: Visit) -> PageView:
        """Show what other clients need; paths of this machine only to administrators."""
        snippets = client_snippets(
            config=self._options.config if visit.can(ADMIN) else None,
            url=f"{visit.address}{PATH}",
            needs_token=visit.needs_token,
        )
        data = ClientsData(snippets=snippets)
        return PageView(template="clients.html", title="Connect a client", data=data)

    @page("GET", "/catalog/{id:path}")
    async def show_entity(self, visit: Visit) -> PageView:
        """Show one entity."""
        entity, gateway = await self._entity(visit), self._gateway
        approved, seen = await in_thread(gateway.pin, entity)
        tenant = None if visit.can(METRICS) else visit.caller.tenant
        noted = gateway.options.usage.record
        data = EntityData(
            entity=entity,
            server_state=gateway.server_states().get(entity.server, ""),
            use=await gateway.catalog.use_of(entity),
            approved=approved,
            changed=approved != seen,
            calls=await gateway.usage.of_tool(entity.id, tenant) if noted else None,
            tools=await self._tools(visit, entity),
        )
        title = clip(entity.definition.title or entity.name, 120)
        return PageView(template="entity.html", title=title, data=data)

    @page("POST", "/catalog/{id:path}", right=WRITE)
    async def change_one(self, visit: Visit) -> Redirect:
        """Change what is said here of an entity. What is sent as it was shown is not said."""
        entity = await self._entity(visit)
        use = await self._gateway.catalog.use_of(entity)
        changes = _changes(visit.form, entity, use)
        note = "Nothing was changed."
        if changes:
            report = await self._gateway.catalog.change([entity.id], changes)
            note = _note(report) if report.failed else f"Changed: {', '.join(changes)}."
        return Redirect(to=f"{_LIST}/{path(entity.id)}", note=note)

    async def _filters(self, visit: Visit) -> Filters:
        snapshot = await self._gateway.snapshot()
        return request_filters(visit.caller, snapshot, shown=EVERYTHING)

    async def _entity(self, visit: Visit) -> Entity:
        filters = await self._filters(visit)
        entity = await self._gateway.catalog.get(visit.path["id"], filters)
        if entity is None:
            raise RefusedError(404, "unknown_entity", "there is no such entity: see the catalog")
        return entity

    async def _tools(self, visit: Visit, server: Entity) -> tuple[CatalogRow, ...]:
        if server.kind not in SERVER_KINDS:
            return ()
        found = await self._gateway.catalog.list(await self._filters(visit), limit=None)
        own = [
            _row(each, ())
            for each in found.entities
            if each.kind == "tool" and each.parent == server.id
        ]
        return tuple(own[:MAX_TOOLS])

    async def _chosen_ids(self, visit: Visit) -> Sequence[str]:
        """Return the chosen ids, or those of all that words and facets select."""
        if not visit.form.get("all"):
            return _chosen(visit.form)
        filters = await self._filters(visit)
        found = await self._gateway.catalog.list(filters, _selection(visit.form), limit=None)
        return [entity.id for entity in found.entities]

    async def _chosen(self, visit: Visit) -> list[Entity]:
        wanted, filters = {*await self._chosen_ids(visit)}, await self._filters(visit)
        found = await self._gateway.catalog.list(filters, limit=None)
        return [entity for entity in found.entities if entity.id in wanted]


def _selection(fields: Texts) -> Selection:
    values = {facet: frozenset(filter(None, fields.getlist(facet))) for facet in _FACETS}
    return Selection(
        text=fields.get("text", ""),
        kinds=values["kind"],
        servers=values["server"],
        tags=values["tag"],
        statuses=cast("frozenset[Status]", values["status"]),
        enabled={"true": True, "false": False}.get(fields.get("enabled", "")),
    )


def _chosen(fields: Texts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fields.getlist("chosen")))[:MAX_CHOSEN]


def _pairs(fields: Texts) -> list[tuple[str, str]]:
    """Return words and facets, without what is empty."""
    wanted = {"text", *_FACETS}
    return [(name, value) for name, value in fields.multi_items() if name in wanted and value]


def _address(fields: Texts) -> str:
    """Return the address of the list with the same words, facets and chosen ids."""
    pairs = [*_pairs(fields), *(("chosen", key) for key in _chosen(fields))]
    return f"{_LIST}?{urlencode(pairs, errors='replace')}"


def _list_data(query: Texts, found: Page, *, has_config: bool) -> CatalogData:
    chosen, pairs = _chosen(query), _pairs(query)
    rows = tuple(_row(entity, chosen) for entity in found.entities)
    shown = {row.id for row in rows}
    keep = urlencode([("chosen", key) for key in chosen], errors="replace")
    more = urlencode([*pairs, ("after", found.next)], errors="replace") if found.next else ""
    return CatalogData(
        text=query.get("text", ""),
        rows=rows,
        total=found.total,
        facets=tuple(facet_of(name, found.facets[name], pairs) for name in _FACETS),
        selected=tuple(pair for pair in pairs if pair[0] != "text"),
        chosen=chosen,
        elsewhere=tuple(key for key in chosen if key not in shown),
        chosen_query=f"&{keep}" if keep else "",
        next=more,
        has_config=has_config,
    )


def _row(entity: Entity, chosen: Collection[str]) -> CatalogRow:
    return CatalogRow(
        id=entity.id,
        kind=entity.kind,
        name=entity.name,
        title=entity.definition.title,
        description=entity.description[:MAX_CHARS],
        server=entity.server,
        status=entity.status,
        enabled=entity.hints.enabled,
        tags=entity.hints.tags,
        chosen=entity.id in chosen,
    )


def _words(text: str) -> list[str]:
    """Return what stands between commas."""
    return [word for part in text.split(",") if (word := part.strip())]


def _changes(form: Texts, entity: Entity, use: Access) -> dict[str, Any]:
    """Return what a sent form changes, by the names of `Access`."""
    lines = form.get("examples", "").splitlines()
    text = "\n".join(form.get("search_text", "").splitlines()).strip()
    sent: dict[str, tuple[object, object]] = {
        "enabled": (entity.hints.enabled, form.get("enabled") == "true"),
        "status": (entity.status, form.get("status")),
        "tags": (list(use.tags), _words(form.get("tags", ""))),
        "search_text": (use.search_text, text),
        "examples": (list(use.examples), [line.strip() for line in lines if line.strip()]),
    }
    return {
        name: after for name, (before, after) in sent.items() if name in form and before != after
    }


def _note(report: ChangeReport) -> str:
    named = [f"{key}: {reason}" for key, reason in report.failed.items()][:MAX_FAILURES]
    if (others := len(report.failed) - len(named)) > 0:
        named.append(f"and {others} more")
    failed = f" Not changed: {'; '.join(named)}." if named else ""
    return f"{len(report.changed)} changed.{failed}"
