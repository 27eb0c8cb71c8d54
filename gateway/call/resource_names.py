from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.index.snapshot import Snapshot
from gateway.mcp.skills import is_file_of
from gateway.runtime.naming import canonical_uri, matches_template
from gateway.types import Entity, Kind


def candidates(
    entities_of_kind: Sequence[Entity], kind: Kind, name: str
) -> tuple[Sequence[Entity], bool]:
    """Return the entities that *name* may mean, and True if *name* is an id or exposed name."""
    exact = [entity for entity in entities_of_kind if name in {entity.id, entity.exposed_name}]
    if exact:
        return exact, True
    equal_names = [entity for entity in entities_of_kind if entity.name == name]
    like = equal_names or [
        entity
        for entity in entities_of_kind
        if kind == "resource" and matches_template(entity.name, name)
    ]
    return like, False


def entities_of(snapshot: Snapshot, server: str) -> dict[int, Entity]:
    """Return the entities of one server, keyed by position in the snapshot."""
    positions = snapshot.eligibility.of_server(server).tolist()
    return {position: snapshot.entities[position] for position in positions}


def described_by(names: Mapping[int, str], uri: str) -> list[list[int]]:
    """Return the positions of the entities that describe *uri*, in lists.

    *uri* may be read only if one entity of each list is visible. Equivalent spellings count if
    it is not listed exactly. *names* are the server's URIs, templates and skills, by position.
    """
    canonical = canonical_uri(uri)
    spellings = {position: canonical_uri(name) for position, name in names.items()}
    files = [position for position, name in spellings.items() if is_file_of(name, canonical)]
    same = [position for position, name in names.items() if name == uri]
    if same:
        return [[*same, *files]]
    if equal := [position for position, name in spellings.items() if name == canonical]:
        return [[position] for position in equal]
    heads = {
        position: len(name.partition("{")[0])
        for position, name in spellings.items()
        if matches_template(name, canonical)
    }
    # Of several matching templates, only the most specific one counts.
    templates = [position for position, head in heads.items() if head == max(heads.values())]
    return [files or templates] if files or templates else []
