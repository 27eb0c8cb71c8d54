"""Which of the things in a catalog the name of a resource or prompt may mean. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.index.snapshot import Snapshot
from gateway.mcp.skills import is_file_of
from gateway.runtime.naming import canonical_uri, matches_template
from gateway.types import Entity, Kind


def candidates(
    entities_of_kind: Sequence[Entity], kind: Kind, name: str
) -> tuple[Sequence[Entity], bool]:
    """Return what *name* may mean, and whether it says so exactly: by id or exposed name."""
    exact = [each for each in entities_of_kind if name in {each.id, each.exposed_name}]
    if exact:
        return exact, True
    own = [each for each in entities_of_kind if each.name == name]
    like = own or [
        each
        for each in entities_of_kind
        if kind == "resource" and matches_template(each.name, name)
    ]
    return like, False


def entities_of(snapshot: Snapshot, server: str) -> dict[int, Entity]:
    """Return the entities of one server by position; the others are not looked at."""
    positions = snapshot.eligibility.of_server(server).tolist()
    return {at: snapshot.entities[at] for at in positions}


def described_by(names: Mapping[int, str], uri: str) -> list[list[int]]:
    """Return the positions of what a server says of *uri*; one of each list must be open.

    Args:
        names: The URIs, templates and skills of the server, by position.
        uri: As the client wrote it. What is listed in other spellings counts, each one, unless
            this one is listed too.
    """
    wanted = canonical_uri(uri)
    spellings = {at: canonical_uri(name) for at, name in names.items()}
    files = [at for at, name in spellings.items() if is_file_of(name, wanted)]
    same = [at for at, name in names.items() if name == uri]
    if same:
        return [[*same, *files]]
    if equal := [at for at, name in spellings.items() if name == wanted]:
        return [[at] for at in equal]
    heads = {
        at: len(name.partition("{")[0])
        for at, name in spellings.items()
        if matches_template(name, wanted)
    }
    # Of several templates the narrowest is meant.
    templates = [at for at, head in heads.items() if head == max(heads.values())]
    return [files or templates] if files or templates else []
