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
    """Search settings and abilities of one kind."""

    callable: bool = False
    """True if `invoke` can call entities of this kind."""
    graph: bool = True
    """True if entities of this kind become nodes of the graph. Tools known only from the entry of
    their server never do."""
    embedded: tuple[Field, ...]
    """Fields whose texts are embedded together, in this order. Long texts lose their end."""
    leaning: tuple[Field, ...] = ("name",)
    """Fields that are also embedded alone, because they have little weight in the whole text. This
    second vector is added to the first."""
    indexed: Mapping[Field, float]
    """Weights in the word index, keyed by field."""
    word: str = ""
    """Word that people use for this kind in a query. It is indexed as the field ``kind``."""


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
"""Maximum length of each tool description in the details of a server, in characters."""
KINDS: Mapping[Kind, KindRow] = {
    "tool": KindRow(
        callable=True, embedded=("name", "title", "server", "description", "hints"), indexed=_TEXTS
    ),
    "server": KindRow(
        # The tools of a server are documents of the graph already.
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
REGISTRY_NAMES: Mapping[Kind, str] = {"server": "mcp_server", "agent": "a2a_agent"}
"""Names that server registries use for some kinds, keyed by the gateway's kind."""


def tool_details(tools: Iterable[ToolDefinition]) -> dict[str, object]:
    """Return the names and shortened descriptions of *tools*, for their server's details."""
    listed = list(tools)
    return {
        "tools": [tool.name for tool in listed],
        "tool_descriptions": [tool.description[:MAX_TOOL_CHARS] for tool in listed],
    }


def row_of(kind: Kind) -> KindRow:
    """Return the settings of *kind*, or defaults for a kind that the host declares."""
    return KINDS.get(kind, _CUSTOM)
