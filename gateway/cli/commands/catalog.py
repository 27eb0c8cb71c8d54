"""`gateway catalog`: entries beside the tools of servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.table import Table

from gateway.catalog.entries import Entry
from gateway.catalog.entry_json import parsed
from gateway.catalog.kinds import KINDS
from gateway.catalog.projection import project
from gateway.cli.command import (
    ConfigOption,
    ForceOption,
    JsonOption,
    KindOption,
    StatusOption,
    TagOption,
    command,
    command_group,
)
from gateway.cli.exit_codes import NOTHING, OK
from gateway.cli.output import note, print_json, print_result, warn
from gateway.cli.session import ONE_COMMAND, open_session, parse_statuses, vector_store
from gateway.cli.tables import bold, plain_table, summary
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.manifests.bundles import bundle, write_bundle
from gateway.manifests.config_file import read_text, write_text
from gateway.manifests.exporter import files_of
from gateway.manifests.importer import read_manifests
from gateway.sync import SyncCatalog, SyncGateway
from gateway.types import Diagnostic, Entity, Filters, JsonObject, Status

_EMPTY = "nothing is in the catalog yet: gateway catalog import, catalog add or servers add"
_NO_MATCH = "the catalog has nothing of this kind, tag and status, or nothing more"

app = command_group(
    "catalog", help_text="Keep agents, skills, servers and things of your own beside the tools."
)
NamespaceOption = Annotated[str, typer.Option(help="Whose it is; part of the id.")]
EntryId = Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")]


@contextmanager
def _open_entries() -> Iterator[SyncCatalog]:
    """Open the catalog's entries, without any server."""
    with closing(Gateway(options=ONE_COMMAND, vector_store=vector_store())) as gateway:
        yield SyncGateway(gateway).catalog


@command(app)
def add(  # noqa: PLR0913  (one for each option)
    kind: Annotated[str, typer.Argument(help="agent, skill, server, or a kind of your own.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    *,
    title: Annotated[str, typer.Option(help="Its name for people.")] = "",
    description: Annotated[str, typer.Option("--description", "-d", help="What it is for.")] = "",
    namespace: NamespaceOption = "catalog",
    tag: TagOption = None,
    scope: Annotated[list[str] | None, typer.Option(help="What a caller needs; repeat it.")] = None,
    status: Annotated[Status, typer.Option(help="Drafts are found only on demand.")] = "active",
    metadata: Annotated[str, typer.Option(help="A JSON object; '-' reads standard input.")] = "{}",
    as_json: JsonOption = False,
) -> int:
    """Add an entry, or replace the one with the same kind, namespace and name."""
    try:
        parsed_metadata = json.loads(sys.stdin.read() if metadata == "-" else metadata)
    except ValueError as error:
        raise InvalidRequestError(f"the metadata is not JSON: {error}") from error
    entry = {
        "kind": kind,
        "name": name,
        "title": title,
        "description": description,
        "namespace": namespace,
        "status": status,
        "hints": {"tags": tag or []},
        "scopes": scope or [],
        "metadata": parsed_metadata,
    }
    with _open_entries() as entries:
        (entry_id,) = entries.put(parsed(entry))
    print_result({"id": entry_id}, f"{entry_id} is in the catalog", as_json=as_json)
    return OK


@command(app, "list")
def list_(  # noqa: PLR0913  (one for each option)
    *,
    kind: KindOption = None,
    tag: TagOption = None,
    status: StatusOption = None,
    after: Annotated[str, typer.Option(help="The id that the page before ended with.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Entities a page.")] = 100,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """List what there is, by id: entries, and what the configured servers have."""
    with open_session(config, optional=True) as session:
        entries = session.gateway.catalog
        page = entries.list(_filters(entries, kind, tag, status), after=after, limit=limit)
    empty = _NO_MATCH if after or kind or tag or status else _EMPTY
    print_result(
        {"entities": [_fields(entity) for entity in page.entities], "next": page.next},
        _table(page.entities) if page.entities else empty,
        as_json=as_json,
    )
    if page.next and not as_json:
        note(f"there are more: --after {page.next}")
    return OK if page.entities else NOTHING


def _filters(
    catalog: SyncCatalog,
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    statuses: Sequence[str] | None,
) -> Filters | None:
    if not (kinds or tags or statuses):
        return None
    entries = catalog.entries()
    own_kinds = {entry.kind for entry in entries}
    return Filters(
        kinds=frozenset(kinds or {*KINDS, *own_kinds}),
        tags=frozenset(tags or ()),
        statuses=parse_statuses(statuses or get_args(Status)),
        scopes=frozenset(scope for entry in entries for scope in entry.scopes),
        include_disabled=True,
    )


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
        "parent": entity.parent,
    }


def _table(entities: Sequence[Entity]) -> Table:
    rows = (
        (
            bold(entity.id),
            entity.status if entity.hints.enabled else "disabled",
            ", ".join(entity.hints.tags),
            summary(entity.description),
        )
        for entity in entities
    )
    return plain_table("id", "status", "tags", "about", rows=rows)


@command(app)
def show(
    key: EntryId,
    *,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", help="Only this of its metadata, as a.b; repeat it."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show one entry whole, or parts of its metadata."""
    with open_session(config, optional=True) as session:
        entity = session.gateway.catalog.get(key)
    if entity is None:
        raise InvalidRequestError(f"nothing has the id {key!r}: gateway catalog list")
    metadata = project(entity.metadata, field or None)
    fields = {**_fields(entity), "scopes": sorted(entity.scopes)}
    lines = [] if field else [f"{name}: {_cell(value)}" for name, value in fields.items()]
    lines.append(json.dumps(metadata, ensure_ascii=False, indent=2))
    print_result(
        metadata if field else {**fields, "metadata": metadata}, "\n".join(lines), as_json=as_json
    )
    return OK


def _cell(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


@command(app)
def remove(key: EntryId, *, as_json: JsonOption = False) -> int:
    """Remove an entry. What a server lists goes with its server."""
    with _open_entries() as entries:
        is_removed = entries.remove(key)
    outcome = "removed" if is_removed else "no entry has this id; what servers list goes with them"
    print_result({"id": key, "removed": is_removed}, f"{key}: {outcome}", as_json=as_json)
    return OK if is_removed else NOTHING


@command(app, "import")
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Agent cards, SKILL.md, mcp.json, bundles, or folders of these."),
    ],
    *,
    namespace: NamespaceOption = "catalog",
    as_json: JsonOption = False,
) -> int:
    """Read manifests into the catalog. Servers are described, not started."""
    found: list[Entry] = []
    diagnostics: list[Diagnostic] = []
    for path in paths:
        manifests = read_manifests(path, namespace=namespace)
        found += manifests.entries
        diagnostics += manifests.notes
    with _open_entries() as entries:
        ids = entries.put(*found) if found else ()
    warn(diagnostics)
    print_result(
        {"ids": ids, "notes": diagnostics},
        "\n".join((*ids, f"imported: {len(ids)}")),
        as_json=as_json,
    )
    return OK if ids else NOTHING


@command(app)
def export(
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A .json file, or a folder; default: print a bundle."),
    ] = None,
    kind: KindOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> int:
    """Write the entries: a bundle as one file; into a folder, agent cards and SKILL.md files."""
    with _open_entries() as catalog:
        entries = [entry for entry in catalog.entries() if not kind or entry.kind in kind]
    if out is None:
        print_json(bundle(entries))
        return OK if entries else NOTHING
    files = {out: write_bundle(entries)} if out.suffix == ".json" else files_of(entries, out)
    existing = [str(path) for path in files if path.exists()]
    if existing and not force:
        raise ConfigError(f"{existing[0]!r} is there already: choose another place, or --force")
    for path, text in files.items():
        write_text(path, text, expected=read_text(path))
    if as_json:
        print_json({"entries": len(entries), "files": [str(path) for path in files]})
    else:
        note(f"{len(entries)} entries written to {out}")
    return OK if entries else NOTHING
