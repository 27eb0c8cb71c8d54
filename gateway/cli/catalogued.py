"""What the commands of `gateway catalog` do. Each prints its data and gives its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import get_args

from rich.table import Table
from rich.text import Text

from gateway.catalog.entries import Entry
from gateway.catalog.entry_json import parsed
from gateway.catalog.kinds import KINDS
from gateway.catalog.projection import project
from gateway.cli import show as shown
from gateway.cli.exits import NOTHING, OK
from gateway.cli.files import replace_text, text_of
from gateway.cli.filtering import statuses_of
from gateway.cli.jsonable import jsonable
from gateway.cli.screen import emit, note, out, printable, warn
from gateway.cli.settings import OPTIONS, opened
from gateway.cli.stored import store
from gateway.errors import ConfigError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.manifests.bundles import bundle, write_bundle
from gateway.manifests.exporter import files_of
from gateway.manifests.importer import read_manifests
from gateway.sync import SyncCatalog, SyncGateway
from gateway.types import Diagnostic, Entity, Filters, JsonObject, Status

_EMPTY = "nothing is in the catalog yet: gateway catalog import, catalog add or servers add"
_NO_SUCH = "the catalog has nothing of this kind, tag and status, or nothing more"


@contextmanager
def alone() -> Iterator[SyncGateway]:
    """Open the catalog's entries, without any server."""
    with closing(Gateway(options=OPTIONS, vector_store=store())) as gateway:
        yield SyncGateway(gateway)


def add(fields: JsonObject, *, metadata: str, as_json: bool) -> int:
    """Put one entry into the catalog."""
    try:
        told = json.loads(sys.stdin.read() if metadata == "-" else metadata)
    except ValueError as error:
        raise InvalidRequestError(f"the metadata is not JSON: {error}") from error
    with alone() as gateway:
        (key,) = gateway.catalog.put(parsed({**fields, "metadata": told}))
    if as_json:
        emit({"id": key})
    else:
        out().print(printable(f"{key} is in the catalog"), soft_wrap=True)
    return OK


def listed(  # noqa: PLR0913  (one for each option)
    *,
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    statuses: Sequence[str] | None,
    after: str,
    limit: int,
    config: Path | None,
    as_json: bool,
) -> int:
    """List one page of the catalog."""
    with opened(config, strategy="graph", bare=True) as session:
        catalog = session.gateway.catalog
        page = catalog.list(_wanted(catalog, kinds, tags, statuses), after=after, limit=limit)
    if as_json:
        emit({"entities": [_brief(each) for each in page.entities], "next": page.next})
    else:
        wanted = after or kinds or tags or statuses
        out().print(_table(page.entities) if page.entities else _NO_SUCH if wanted else _EMPTY)
        if page.next:
            note(f"there are more: --after {page.next}")
    return OK if page.entities else NOTHING


def _wanted(
    catalog: SyncCatalog,
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    statuses: Sequence[str] | None,
) -> Filters | None:
    if not (kinds or tags or statuses):
        return None
    entries = catalog.entries()
    own = {entry.kind for entry in entries}
    scopes = (scope for entry in entries for scope in entry.scopes)
    return Filters(
        kinds=frozenset(kinds or {*KINDS, *own}),
        tags=frozenset(tags or ()),
        statuses=statuses_of(statuses or get_args(Status)),
        scopes=frozenset(scopes),
        include_disabled=True,
    )


def _brief(entity: Entity) -> JsonObject:
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
    table = shown.plain_table("id", "status", "tags", "about")
    for each in entities:
        status = each.status if each.hints.enabled else "disabled"
        tags = printable(", ".join(each.hints.tags))
        table.add_row(
            Text(printable(each.id), style="bold"), status, tags, shown.about(each.description)
        )
    return table


def show(key: str, *, fields: Sequence[str] | None, config: Path | None, as_json: bool) -> int:
    """Show one entity, or parts of its metadata."""
    with opened(config, strategy="graph", bare=True) as session:
        entity = session.gateway.catalog.get(key)
    if entity is None:
        raise InvalidRequestError(f"nothing has the id {key!r}: gateway catalog list")
    metadata = project(entity.metadata, fields or None)
    if as_json:
        brief = {**_brief(entity), "scopes": sorted(entity.scopes)}
        emit(jsonable(metadata if fields else {**brief, "metadata": metadata}))
        return OK
    if not fields:
        rows = {**_brief(entity), "scopes": sorted(entity.scopes)}
        for name, value in rows.items():
            told = ", ".join(value) if isinstance(value, list) else str(value)
            out().print(printable(f"{name}: {told}"), soft_wrap=True)
    out().print(printable(json.dumps(metadata, ensure_ascii=False, indent=2)), soft_wrap=True)
    return OK


def remove(key: str, *, as_json: bool) -> int:
    """Remove one entry."""
    with alone() as gateway:
        gone = gateway.catalog.remove(key)
    if as_json:
        emit({"id": key, "removed": gone})
    else:
        told = "removed" if gone else "no entry has this id; what servers list goes with them"
        out().print(printable(f"{key}: {told}"), soft_wrap=True)
    return OK if gone else NOTHING


def imported(paths: Sequence[Path], *, namespace: str, as_json: bool) -> int:
    """Read manifests into the catalog; what cannot be used is told, the rest is taken."""
    found: list[Entry] = []
    notes: list[Diagnostic] = []
    for path in paths:
        read = read_manifests(path, namespace=namespace)
        found += read.entries
        notes += read.notes
    with alone() as gateway:
        ids = gateway.catalog.put(*found) if found else ()
    warn(notes)
    if as_json:
        emit({"ids": list(ids), "notes": jsonable(notes)})
    else:
        out().print(printable("\n".join((*ids, f"imported: {len(ids)}"))), soft_wrap=True)
    return OK if ids else NOTHING


def exported(
    target: Path | None, *, kinds: Collection[str] | None, force: bool, as_json: bool
) -> int:
    """Write entries: as a bundle, or as the files of a folder."""
    with alone() as gateway:
        every = [each for each in gateway.catalog.entries() if not kinds or each.kind in kinds]
    if target is None:
        emit(bundle(every))
        return OK if every else NOTHING
    files = {target: write_bundle(every)} if target.suffix == ".json" else files_of(every, target)
    taken = [str(path) for path in files if path.exists()]
    if taken and not force:
        raise ConfigError(f"{taken[0]!r} is there already: choose another place, or --force")
    for path, text in files.items():
        replace_text(path, text, was=text_of(path))
    if as_json:
        emit({"entries": len(every), "files": [str(path) for path in files]})
    else:
        note(f"{len(every)} entries written to {target}")
    return OK if every else NOTHING
