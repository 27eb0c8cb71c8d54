"""`gateway catalog`: entries in addition to the tools of servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from gateway.catalog.entries import Entry, project
from gateway.catalog.selection import Selection
from gateway.cli import options
from gateway.cli.command import Output, command, command_group, note, warn
from gateway.cli.commands.search import parse_object
from gateway.cli.session import ONE_COMMAND, command_options, open_session, read_optional, recording
from gateway.cli.tables import document, table, to_json
from gateway.config.config_file import read_text, write_text
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.plugins.manifests.exporter import export_servers, export_virtual_server, servers_of
from gateway.plugins.manifests.files import bundle, files_of, read_manifests, write_bundle
from gateway.sync import SyncCatalog, SyncGateway
from gateway.types import Entity, Hints, JsonObject, Status

_NOTHING = (
    "the catalog has no matching entry; add one: gateway catalog import, catalog add or servers add"
)

_ALL = Selection()

app = command_group("catalog")
NamespaceOption = Annotated[str, "Namespace of the entry, which is part of its id."]
EntityIds = Annotated[options.Texts, Argument(metavar="ID", help="Ids as shown by list.")]
EntryId = Annotated[str, Argument(metavar="ID", help="Id as shown by list.")]


@contextmanager
def _open_entries(config: Path) -> Iterator[SyncCatalog]:
    """Open the entries of the catalog without any server."""
    own_options = recording(command_options(read_optional(config), ONE_COMMAND))
    with closing(Gateway(strategy="graph", options=own_options)) as gateway:
        yield SyncGateway(gateway).catalog


@command(app)
def add(
    kind: Annotated[str, "Kind: agent, skill, server, or a kind of your own."],
    name: Annotated[str, "Name of the entry."],
    *,
    title: Annotated[str, "Name for people."] = "",
    description: Annotated[str, "--description", "-d", "Purpose of the entry."] = "",
    namespace: NamespaceOption = "catalog",
    tag: options.Tag = None,
    scope: Annotated[options.Texts, "Scope that a caller needs; repeatable."] = None,
    status: Annotated[Status, "Draft and deprecated entries are found only on request."] = "active",
    metadata: Annotated[str, "Metadata as a JSON object; '-' reads standard input."] = "{}",
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Add an entry, or replace the entry with the same kind, namespace and name."""
    with _open_entries(config) as entries:
        entry = Entry(
            kind=kind,
            name=name,
            title=title,
            description=description,
            namespace=namespace,
            status=status,
            hints=Hints(tags=tuple(tag or ())),
            scopes=frozenset(scope or ()),
            metadata=parse_object(metadata, "the metadata"),
        )
        (entry_id,) = entries.put(entry)
    return Output({"id": entry_id}, f"{entry_id} is in the catalog")


@command(app, "list")
def list_(
    *,
    selection: Selection = _ALL,
    after: Annotated[str, "Last id of the previous page."] = "",
    limit: Annotated[int, Option("--limit", "-n", min=1, help="Entities per page.")] = 100,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """List entries and the tools of the configured servers, sorted by id."""
    with open_session(config, optional=True) as session:
        page = session.gateway.catalog.list(None, selection, after=after, limit=limit)
    rows = [_fields(entity) for entity in page.entities]
    view = table(rows, "id", "status", "enabled", "tags", "description") if rows else _NOTHING
    notes = (f"for the next page: --after {page.next}",) if page.next else ()
    data = {"entities": rows, "next": page.next, "total": page.total, "facets": page.facets}
    return Output(data, view, found=rows, notes=notes)


def _fields(entity: Entity) -> JsonObject:
    return {
        "id": entity.id,
        "kind": entity.kind,
        "name": entity.name,
        "title": entity.definition.title,
        "description": entity.description,
        "server": entity.server,
        "status": entity.status,
        "enabled": entity.hints.enabled,
        "tags": list(entity.hints.tags),
        "search_text": entity.hints.search_text,
        "parent": entity.parent,
    }


@command(app)
def show(
    key: EntryId,
    *,
    field: Annotated[
        options.Texts, "--field", "-f", "Only this part of the metadata, such as a.b; repeatable."
    ] = None,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Show one entry with its metadata, or parts of the metadata."""
    with open_session(config, optional=True) as session:
        entity = session.gateway.catalog.get(key)
    if entity is None:
        raise InvalidRequestError(f"unknown id {key!r}; gateway catalog list shows all ids")
    metadata = project(entity.metadata, field or None)
    if field:
        return Output(metadata, to_json(metadata))
    return Output({**_fields(entity), "scopes": entity.scopes, "metadata": metadata})


@command(app)
def change(
    ids: EntityIds = None,
    *,
    enable: Annotated[
        bool | None, "--enable/--disable", "Let searches find it, or hide it."
    ] = None,
    new_status: Annotated[Status | None, "--set-status", "New status."] = None,
    add_tag: Annotated[options.Texts, "Tag to add; repeatable."] = None,
    remove_tag: Annotated[options.Texts, "Tag to remove; repeatable."] = None,
    selection: Selection = _ALL,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Change several entities: by id, or all that the filters select."""
    use = {"enabled": enable, "status": new_status}
    use = {name: value for name, value in use.items() if value is not None}
    with open_session(config, optional=True, changes=True) as session:
        catalog = session.gateway.catalog
        if not (use or add_tag or remove_tag):
            raise InvalidRequestError("name a change: --enable, --set-status, --add-tag …")
        chosen = [entity.id for entity in _choose(catalog, ids, selection)]
        report = catalog.change(
            ids or chosen, use, add_tags=add_tag or (), remove_tags=remove_tag or ()
        )
    view = document({"changed": len(report.changed), "failed": report.failed})
    return Output(report, view, found=report.changed and not report.failed)


def _choose(catalog: SyncCatalog, ids: options.Texts, selection: Selection) -> Sequence[Entity]:
    """Return the entities with *ids*, or the selected ones. Exactly one of both is required."""
    if bool(ids) == (selection != _ALL):
        raise InvalidRequestError("give ids, or filters such as --kind and --text, but not both")
    page = catalog.list(None, selection, limit=None)
    wanted_ids = frozenset(ids or ())
    return [entity for entity in page.entities if not ids or entity.id in wanted_ids]


@command(app)
def remove(key: EntryId, *, config: options.Config = options.DEFAULT_CONFIG) -> Output:
    """Remove an entry. Tools of a server disappear only with their server."""
    with _open_entries(config) as entries:
        is_removed = entries.remove(key)
    if not is_removed:
        note("no entry has this id; tools of a server disappear only with their server")
    return Output({"id": key, "removed": is_removed}, found=is_removed)


@command(app, "import")
def import_(
    paths: Annotated[list[Path], "Agent cards, SKILL.md, mcp.json, bundles, or folders of these."],
    *,
    namespace: NamespaceOption = "catalog",
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Read manifests into the catalog. Servers become entries and are not started."""
    with _open_entries(config) as entries:
        manifests = [read_manifests(path, namespace=namespace) for path in paths]
        imported = [entry for manifest in manifests for entry in manifest.entries]
        ids = entries.put(*imported) if imported else ()
    diagnostics = [diagnostic for manifest in manifests for diagnostic in manifest.notes]
    warn(diagnostics)
    return Output({"ids": ids, "notes": diagnostics}, found=ids)


@command(app)
def export(
    ids: EntityIds = None,
    *,
    servers: Annotated[bool, "Export the servers of the entities as an mcp.json."] = False,
    virtual: Annotated[
        str, Option(metavar="NAME", help="Export the tools as a virtual server with this name.")
    ] = "",
    out: Annotated[
        Path | None,
        "--out",
        "-o",
        "JSON file, or for entries a folder; by default the output is printed.",
    ] = None,
    selection: Selection = _ALL,
    force: options.Force = False,
    config: options.Config = options.DEFAULT_CONFIG,
) -> Output:
    """Export entries (as a bundle, agent cards or SKILL.md files), servers, or a virtual server.

    Ids or filters select the entities. Secrets of servers become references.
    """
    if servers and virtual:
        raise InvalidRequestError("use --servers or --virtual, not both")
    if servers or virtual:
        document, notes = _from_config(config, ids, selection, virtual)
        if out is None:
            return Output(document, to_json(document), notes=notes)
        _write({out: f"{to_json(document)}\n"}, force=force)
        return Output({"files": [out]}, notes=notes)
    with _open_entries(config) as catalog:
        chosen = {entity.id for entity in catalog.list(None, selection, limit=None).entities}
        entries = [entry for entry in catalog.entries() if entry.id in (ids or chosen)]
    if out is None:
        return Output(bundle(entries), to_json(bundle(entries)), found=entries)
    files = {out: write_bundle(entries)} if out.suffix == ".json" else files_of(entries, out)
    _write(files, force=force)
    return Output({"entries": len(entries), "files": list(files)}, found=entries)


def _from_config(
    config: Path, ids: options.Texts, selection: Selection, virtual: str
) -> tuple[JsonObject, list[str]]:
    """Return (export, notes): the tools as the server *virtual*, or the entities' servers."""
    with open_session(config) as session:
        chosen = _choose(session.gateway.catalog, ids, selection)
        if virtual:
            return export_virtual_server(virtual, chosen, session.gateway.gateway.original), []
    exported = export_servers(read_text(config), servers_of(chosen), where=str(config))
    notes = [f"set {item.variable}: {item.where} of {item.server}" for item in exported.variables]
    notes += [f"the configuration has no server {name!r}" for name in exported.missing]
    return exported.document, notes


def _write(files: Mapping[Path, str], *, force: bool) -> None:
    existing = [str(path) for path in files if path.exists()]
    if existing and not force:
        raise ConfigError(
            f"{existing[0]!r} already exists: name another path, or overwrite with --force"
        )
    for path, text in files.items():
        write_text(path, text, expected=read_text(path))
