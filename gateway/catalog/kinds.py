"""What differs between kinds of entities, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.types import Kind, ToolDefinition

Field = Literal[
    "kind",
    "name",
    "title",
    "description",
    "server",
    "parameters",
    "values",
    "hints",
    "examples",
    "tools",
    "tool_descriptions",
    "skills",
    "capabilities",
    "metadata",
    "instructions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """How one kind is searched and used."""

    callable: bool = False
    """Whether `invoke` may run it."""
    graph: bool = True
    """Whether it becomes a document of the graph."""
    embedded: tuple[Field, ...]
    """The fields its vector is made of, in this order; the end is cut first."""
    leaning: tuple[Field, ...] = ("name",)
    """The fields of the second vector, added to the first: what would drown in the whole."""
    indexed: Mapping[Field, float]
    """The fields it is found by with words, each with its weight."""
    word: str = ""
    """What people call one of these when they ask for it: the field ``kind``."""


_TEXTS: Mapping[Field, float] = {
    "name": 3.0,
    "title": 2.0,
    "hints": 2.0,
    "examples": 0.25,
    "description": 1.0,
    "server": 0.7,
    "parameters": 1.0,
    "values": 1.5,
}
_ALL_TEXTS: Mapping[Field, float] = {**_TEXTS, "metadata": 0.5}
_LISTED = KindRow(embedded=("name", "title", "description", "hints"), indexed=_TEXTS)
_CUSTOM = KindRow(
    embedded=("name", "title", "description", "hints", "metadata"), indexed=_ALL_TEXTS
)
MAX_TOOL_CHARS = 200
"""How much of a tool's description stands in the details of its server."""
KINDS: Mapping[Kind, KindRow] = {
    "tool": KindRow(
        callable=True, embedded=("name", "title", "server", "description", "hints"), indexed=_TEXTS
    ),
    "server": KindRow(
        # Its tools are documents of the graph already.
        graph=False,
        embedded=(
            *("kind", "name", "title", "description", "hints"),
            *("tools", "metadata", "tool_descriptions"),
        ),
        leaning=("name", "description"),
        indexed={**_ALL_TEXTS, "tools": 0.5, "tool_descriptions": 0.25},
        word="MCP server",
    ),
    "virtual_server": KindRow(
        embedded=(*_LISTED.embedded, "tools", "metadata", "tool_descriptions"),
        indexed={**_ALL_TEXTS, "tools": 0.5, "tool_descriptions": 0.25},
    ),
    "agent": KindRow(
        embedded=(
            *("kind", "name", "title", "description", "skills", "hints"),
            *("capabilities", "metadata"),
        ),
        leaning=("name", "description"),
        indexed={**_ALL_TEXTS, "skills": 1.0},
        word="agent",
    ),
    "skill": KindRow(
        embedded=(
            *("kind", "name", "title", "description", "hints"),
            *("metadata", "instructions"),
        ),
        leaning=("name", "description"),
        indexed=_ALL_TEXTS,
        word="skill",
    ),
    "prompt": _LISTED,
    "resource": _LISTED,
}
"""The kinds that every catalog has."""
REGISTRY_NAMES: Mapping[Kind, str] = {"server": "mcp_server", "agent": "a2a_agent"}
"""What registries call the kinds that have another name with them."""


def tool_details(tools: Iterable[ToolDefinition]) -> dict[str, object]:
    """Return what the details of a server say of its *tools*: names, and how descriptions begin."""
    listed = list(tools)
    return {
        "tools": [tool.name for tool in listed],
        "tool_descriptions": [tool.description[:MAX_TOOL_CHARS] for tool in listed],
    }


def row_of(kind: Kind) -> KindRow:
    """Return the row of *kind*, also of one that the host declares."""
    return KINDS.get(kind, _CUSTOM)
