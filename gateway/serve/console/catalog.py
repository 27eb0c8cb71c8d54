"""Catalog page: a filtered list of entities, and a page for each entity.

The list's address contains the search text, facet values and chosen ids. Actions apply to the
chosen ids, or to all entities that text and facets select.
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
MAX_CHOSEN = 500
"""Maximum number of chosen ids in an address."""
MAX_TOOLS = 200
MAX_FAILURES = 5
"""Maximum number of failed changes in a message."""
MAX_CHARS = 300
_LIST = f"{CONSOLE}/catalog"
_FACETS = ("kind", "server", "tag", "status", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRow:
    """An entity in the list."""

    id: str
    kind: str
    name: str
    title: str
    description: str
    server: str
    status: str
    enabled: bool
    tags: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogData:
    """One page of the list, and the chosen ids."""

    text: str
    rows: tuple[CatalogRow, ...]
    total: int
    facets: tuple[Facet, ...]
    selected: tuple[tuple[str, str], ...]
    """Selected facet values, each as (facet, value)."""
    chosen: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Chosen ids that are not on this page of the list."""
    chosen_query: str
    """Part of a query string that keeps the chosen ids."""
    next: str
    has_config: bool
    """True if servers can be exported from a configuration file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData:
    """One entity, with its state, approval and calls."""

    entity: Entity
    server_state: str
    """Connection state of the entity's server. Empty without a connection."""
    use: Access
    """Settings of the entity, which this page can change."""
    approved: str
    """Digest of the approved definition. Empty without an approval."""
    changed: bool
    """True if the definition differs from the approved one."""
    calls: ToolUse | None
    """Statistics of the entity's calls. None if calls are not recorded."""
    tools: tuple[CatalogRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsData:
    """Configuration snippets for clients."""

    snippets: tuple[ClientSnippet, ...]


class CatalogPage:
    """Page of the list, and pages of the entities."""

    place: ClassVar = Place(title="Catalog", path="/catalog")

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._options = options

    @page("GET", "/catalog")
    async def show(self, visit: Visit) -> PageView:
        """List the entities that the address's text and facets select."""
        query = visit.query
        entity_page = await self._gateway.catalog.list(
            await self._filters(visit), _selection(query), after=query.get("after", ""), limit=ROWS
        )
        data = _list_data(query, entity_page, has_config=self._options.config is not None)
        return PageView(template="catalog.html", title="Catalog", data=data)

    @page("POST", "/catalog", right=WRITE)
    async def change_many(self, visit: Visit) -> Redirect:
        """Enable, disable or tag the chosen entities."""
        action, tags = visit.query.get("do", ""), _words(visit.form.get("tags", ""))
        use = {"enabled": action == "enable"} if action in {"enable", "disable"} else {}
        added, removed = (tags if action == name else [] for name in ("tag", "untag"))
        ids = await self._chosen_ids(visit)
        if not ids or not (use or added or removed):
            missing = "enter tags, separated by commas" if ids else "choose something"
            return Redirect(to=_address(visit.form), note=f"Nothing was changed: {missing}.")
        filters = await self._filters(visit)
        report = await self._gateway.catalog.change(
            ids, use, add_tags=added, remove_tags=removed, filters=filters
        )
        return Redirect(to=_address(visit.form), note=_note(report))

    @page("POST", "/catalog/export/servers", right=ADMIN)
    async def export_servers(self, visit: Visit) -> Response:
        """Download the chosen entities' servers as ``mcp.json``, without secrets."""
        config = self._options.config
        if config is None:
            raise RefusedError(
                404, "no_configuration", "the gateway was started without a configuration file"
            )
        names = servers_of(await self._chosen_entities(visit))
        text = await in_thread(read_text, config)
        return download(export_servers(text, names, where=config.name).document, "mcp.json")

    @page("POST", "/catalog/export/virtual")
    async def export_virtual(self, visit: Visit) -> Response:
        """Download a virtual server of the chosen tools."""
        name = visit.form.get("name", "").strip() or "chosen"
        chosen = await self._chosen_entities(visit)
        document = export_virtual_server(name, chosen, self._gateway.original)
        return download(document, "virtual-server.json")

    @page("GET", "/catalog/clients")
    async def show_clients(self, visit: Visit) -> PageView:
        """Show configuration snippets for clients. Only administrators see local paths."""
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
        approved, digest = await in_thread(gateway.pin, entity)
        tenant = None if visit.can(METRICS) else visit.caller.tenant
        noted = gateway.options.usage.record
        data = EntityData(
            entity=entity,
            server_state=gateway.server_states().get(entity.server, ""),
            use=await gateway.catalog.use_of(entity),
            approved=approved,
            changed=approved != digest,
            calls=await gateway.usage.of_tool(entity.id, tenant) if noted else None,
            tools=await self._tools(visit, entity),
        )
        title = clip(entity.definition.title or entity.name, 120)
        return PageView(template="entity.html", title=title, data=data)

    @page("POST", "/catalog/{id:path}", right=WRITE)
    async def change_one(self, visit: Visit) -> Redirect:
        """Change the settings that were edited in the form."""
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
        return request_filters(visit.caller, snapshot, visibility=EVERYTHING)

    async def _entity(self, visit: Visit) -> Entity:
        filters = await self._filters(visit)
        entity = await self._gateway.catalog.get(visit.path["id"], filters)
        if entity is None:
            raise RefusedError(
                404, "unknown_entity", "unknown entity; the catalog lists the entities"
            )
        return entity

    async def _tools(self, visit: Visit, server: Entity) -> tuple[CatalogRow, ...]:
        if server.kind not in SERVER_KINDS:
            return ()
        entity_page = await self._gateway.catalog.list(await self._filters(visit), limit=None)
        rows = [
            _row(entity, ())
            for entity in entity_page.entities
            if entity.kind == "tool" and entity.parent == server.id
        ]
        return tuple(rows[:MAX_TOOLS])

    async def _chosen_ids(self, visit: Visit) -> Sequence[str]:
        """Return the chosen ids, or all that the text and the facets select."""
        if not visit.form.get("all"):
            return _read_chosen(visit.form)
        filters = await self._filters(visit)
        selected = await self._gateway.catalog.list(filters, _selection(visit.form), limit=None)
        return [entity.id for entity in selected.entities]

    async def _chosen_entities(self, visit: Visit) -> list[Entity]:
        chosen_ids, filters = {*await self._chosen_ids(visit)}, await self._filters(visit)
        entity_page = await self._gateway.catalog.list(filters, limit=None)
        return [entity for entity in entity_page.entities if entity.id in chosen_ids]


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


def _read_chosen(fields: Texts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fields.getlist("chosen")))[:MAX_CHOSEN]


def _pairs(fields: Texts) -> list[tuple[str, str]]:
    names = {"text", *_FACETS}
    return [(name, value) for name, value in fields.multi_items() if name in names and value]


def _address(fields: Texts) -> str:
    """Return the list's address with the same text, facets and chosen ids."""
    pairs = [*_pairs(fields), *(("chosen", key) for key in _read_chosen(fields))]
    return f"{_LIST}?{urlencode(pairs, errors='replace')}"


def _list_data(query: Texts, found: Page, *, has_config: bool) -> CatalogData:
    chosen, pairs = _read_chosen(query), _pairs(query)
    rows = tuple(_row(entity, chosen) for entity in found.entities)
    row_ids = {row.id for row in rows}
    keep = urlencode([("chosen", key) for key in chosen], errors="replace")
    more = urlencode([*pairs, ("after", found.next)], errors="replace") if found.next else ""
    return CatalogData(
        text=query.get("text", ""),
        rows=rows,
        total=found.total,
        facets=tuple(facet_of(name, found.facets[name], pairs) for name in _FACETS),
        selected=tuple(pair for pair in pairs if pair[0] != "text"),
        chosen=chosen,
        elsewhere=tuple(key for key in chosen if key not in row_ids),
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
    return [word for part in text.split(",") if (word := part.strip())]


def _changes(form: Texts, entity: Entity, use: Access) -> dict[str, Any]:
    """Return the edited settings of a form, keyed by field of `Access`."""
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
