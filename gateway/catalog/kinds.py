"""What differs between kinds of entities, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.types import Kind

Field = Literal[
    "name", "title", "description", "server", "parameters", "hints", "examples", "tools"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """How one kind is searched and used."""

    callable: bool
    """Whether `invoke` may run it."""
    graph: bool
    """Whether it becomes a document of the graph."""
    embedded: tuple[Field, ...]
    """What its vector is made of, in this order; the end is cut first."""
    indexed: Mapping[Field, float]
    """What its words are found by, with each field's weight."""


_TEXTS: Mapping[Field, float] = {
    "name": 3.0,
    "title": 2.0,
    "hints": 2.0,
    "examples": 1.5,
    "description": 1.0,
    "server": 0.7,
    "parameters": 0.5,
}
_TOOL = KindRow(
    callable=True,
    graph=True,
    embedded=("name", "title", "server", "description", "hints", "examples"),
    indexed=_TEXTS,
)
_THING = KindRow(
    callable=False, graph=True, embedded=("name", "title", "description", "hints"), indexed=_TEXTS
)

_SERVER = KindRow(
    callable=False,
    # Its tools are there themselves, each with what it says.
    graph=False,
    embedded=("name", "title", "description", "hints", "tools"),
    indexed={**_TEXTS, "tools": 0.5},
)
KINDS: Mapping[Kind, KindRow] = {
    "tool": _TOOL,
    "server": _SERVER,
    "virtual_server": _THING,
    "agent": _THING,
    "skill": _THING,
    "prompt": _THING,
    "resource": _THING,
}
"""The kinds that everybody has."""


def row_of(kind: Kind) -> KindRow:
    """Give the row of *kind*; one that the host declares is a thing like an agent."""
    return KINDS.get(kind, _THING)
