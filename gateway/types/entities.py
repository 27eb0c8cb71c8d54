"""What the catalog holds, and who of it may be found.

Text that came from an upstream stays data: nothing here interprets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, object]
"""A JSON object as `json.loads` gives it."""
BuiltinKind = Literal["tool", "server", "virtual_server", "agent", "skill", "prompt", "resource"]
Kind: TypeAlias = str
"""A `BuiltinKind`, or a kind that the host declares."""
Status = Literal["active", "draft", "deprecated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host knows of a tool beyond its definition. None means unknown."""

    aliases: tuple[str, ...] = ()
    """Other names people use for it, in any language."""
    keywords: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Labels to filter by, compared without case."""
    examples: tuple[str, ...] = ()
    """Requests that this tool serves, as a user would say them."""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    enabled: bool = True
    """A disabled tool is neither found nor called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool, a resource or a prompt as its source describes it."""

    name: str
    """The source's own name, unchanged: this is what a call sends back. A resource's is its URI,
    or the template of one."""
    title: str = ""
    description: str = ""
    input_schema: JsonObject = field(default_factory=dict)
    """A JSON Schema of type object: what a prompt or a template must be filled with, too."""
    output_schema: JsonObject | None = None
    hints: Hints = field(default_factory=Hints)
    kind: Kind = "tool"
    details: JsonObject = field(default_factory=dict)
    """What else a source says of a resource or a prompt, for who lists it; empty for a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One thing of the catalog."""

    id: str
    """Canonical: ``server/name``; ``kind:server/name`` of what is no tool. Stable across restarts
    and registration order."""
    kind: Kind = "tool"
    exposed_name: str
    """What a model sees of a tool: at most 64 characters of ``[A-Za-z0-9_-]``. Of a resource or a
    prompt: its address here; of anything else its id. Unique in the catalog."""
    server: str
    definition: ToolDefinition
    status: Status = "active"
    scopes: frozenset[str] = frozenset()
    """A caller needs all of these; empty means anyone."""
    trusted: bool = False
    """True if the host itself wrote the definition (a Python function, an own file)."""
    digest: str = ""
    """SHA-256 hex of the canonical definition and hints; changes when anything searched changes."""
    parent: str = ""
    """The id of what it belongs to: a tool's server."""
    metadata: JsonObject = field(default_factory=dict)
    """What else an entry of the catalog says of itself."""

    @property
    def name(self) -> str:
        """The source's own name."""
        return self.definition.name

    @property
    def description(self) -> str:
        """The source's description; may be empty."""
        return self.definition.description

    @property
    def hints(self) -> Hints:
        """The merged search hints."""
        return self.definition.hints

    @property
    def required(self) -> tuple[str, ...]:
        """The required argument names, in the schema's order."""
        names = self.definition.input_schema.get("required")
        return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Who may be found. Applied before any retriever sees the catalog."""

    kinds: frozenset[Kind] = frozenset({"tool"})
    statuses: frozenset[Status] = frozenset({"active"})
    tags: frozenset[str] = frozenset()
    """All of these, compared without case."""
    servers: frozenset[str] = frozenset()
    """One of these; empty means any."""
    scopes: frozenset[str] = frozenset()
    """What the caller holds."""
    include_disabled: bool = False
    healthy_only: bool = False
    """Leave out who hangs on a server that cannot be reached just now."""
    without: frozenset[str] = frozenset()
    """None of these: servers by name, entities by id."""
