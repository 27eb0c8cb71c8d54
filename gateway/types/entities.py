"""What the catalog holds, and which of it may be found.

Text that came from a server stays data: nothing here interprets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from gateway.types.diagnostics import Diagnostic

JsonObject: TypeAlias = Mapping[str, object]
"""A JSON object as `json.loads` gives it."""
BuiltinKind = Literal["tool", "server", "virtual_server", "agent", "skill", "prompt", "resource"]
Kind: TypeAlias = str
"""A `BuiltinKind`, or a kind of the host's own."""
Status = Literal["active", "beta", "draft", "deprecated"]
DEFAULT_STATUSES: frozenset[Status] = frozenset({"active", "beta"})
"""What may be found unless filters say otherwise."""
MAX_SEARCH_TEXT_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host knows of a tool beyond its definition. None means unknown.

    Raises:
        TypeError: If a list of texts is something else, such as a bare text, or the search text
            is no text or too long.
    """

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
    open_world: bool | None = None
    """Whether it reaches beyond its own server's domain, as the web."""
    enabled: bool = True
    """A disabled tool is neither found nor called."""
    search_text: str = ""
    """What the search reads in place of the description, at most 2,000 characters; empty is the
    description. No model is shown it."""

    def __post_init__(self) -> None:
        """Turn lists into tuples. What these hold is checked where hints are given."""
        if self.search_text != "":
            object.__setattr__(self, "search_text", search_text_of(self, self.search_text))
        for name in ("aliases", "keywords", "categories", "tags", "examples"):
            if type(value := getattr(self, name)) is not tuple:
                object.__setattr__(self, name, texts_of(self, name, value))


_NO_HINTS = Hints()
_NOTHING: JsonObject = {}
"""One object for all: of a million definitions few have details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool, a resource or a prompt as its source describes it."""

    name: str
    """The source's own name, unchanged, which a call sends back. That of a resource is its URI or a
    template of URIs."""
    title: str = ""
    description: str = ""
    input_schema: JsonObject = field(default_factory=dict)
    """A JSON Schema of type object, also for what a prompt or a template must be filled with."""
    output_schema: JsonObject | None = None
    hints: Hints = _NO_HINTS
    kind: Kind = "tool"
    details: JsonObject = field(default_factory=lambda: _NOTHING)
    """What else a source says of a resource or a prompt, to be listed with it; empty for a tool."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """``tool_changed`` and ``tool_suspicious``; the gateway notes these, no source does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One thing of the catalog."""

    id: str
    """Canonical: ``server/name`` for a tool, ``kind:server/name`` for all else. The same after
    restarts and in any order of registration."""
    kind: Kind = "tool"
    exposed_name: str
    """For a tool the name that models see, at most 64 characters of ``[A-Za-z0-9_-]``; for a
    resource or a prompt its address here; for all else its id. Unique in the catalog."""
    server: str
    definition: ToolDefinition
    status: Status = "active"
    scopes: frozenset[str] = frozenset()
    """A caller needs all of these; empty lets anyone see it."""
    trusted: bool = False
    """True if the host itself wrote the definition (a Python function, an own file)."""
    vouched: bool = False
    """Whether the host stands in for how it behaves: it trusts the source, or said so in hints."""
    digest: str = ""
    """SHA-256 (hex) of the canonical definition and hints; changes if anything searched changes but
    the search text, which nobody approves."""
    parent: str = ""
    """The id of what it belongs to, such as a tool's server; empty if nothing."""
    metadata: JsonObject = field(default_factory=lambda: _NOTHING)
    """What else an entry of the catalog says of itself."""
    generation: int = -1
    """The lower, the earlier its server's tool of this name was seen first; equal for those that
    came at once. -1 for what only the host lists, such as aliases and entries."""
    originals: tuple[str, ...] = ()
    """The ids of what an alias stands for: policies of these hold for it too."""
    described: bool = False
    """True for a tool that only the entry of its server describes: nothing can call it until that
    server is connected."""

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

    def with_hints(self, **changes: Any) -> Entity:
        """Return the same entity with *changes* to its hints, by name; its digest stays."""
        hints = replace(self.hints, **changes)
        return replace(self, definition=replace(self.definition, hints=hints))

    @property
    def suspicious(self) -> bool:
        """Whether the definition looks like an attack on a model; none is shown its texts."""
        return any(note.code == "tool_suspicious" for note in self.definition.diagnostics)

    @property
    def required(self) -> tuple[str, ...]:
        """The required argument names, in the schema's order."""
        names = self.definition.input_schema.get("required")
        return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What may be found. Filters apply before anything is ranked.

    Wherever a frozen set is asked for, any collection of texts will do.

    Raises:
        TypeError: If a value is of another type; it says which. A bare text is no collection.
    """

    kinds: frozenset[Kind] = frozenset({"tool"})
    statuses: frozenset[Status] = DEFAULT_STATUSES
    tags: frozenset[str] = frozenset()
    """All of these, compared without case."""
    servers: frozenset[str] = frozenset()
    """One of these; empty means any."""
    scopes: frozenset[str] = frozenset()
    """The scopes that are held; those of the `Caller` are added."""
    include_disabled: bool = False
    include_described: bool = False
    """Find the tools too that only the entry of their server describes, and nothing can call."""
    healthy_only: bool = False
    """Leave out what depends on a server that cannot be reached just now."""
    without: frozenset[str] = frozenset()
    """Leave out these: servers by name, entities by id."""
    user: str = ""
    tenant: str = ""
    """Of the `Caller`, for policies."""
    unrestricted: bool = False
    """For the host: no policy applies."""

    def __post_init__(self) -> None:
        """Check each value; mutable collections become frozen sets."""
        for name in ("kinds", "statuses", "tags", "servers", "scopes", "without"):
            value = getattr(self, name)
            if type(value) is not frozenset or (value and not all(map(_is_text, value))):
                object.__setattr__(self, name, frozenset(texts_of(self, name, value)))
        for name in ("include_disabled", "include_described", "healthy_only", "unrestricted"):
            if type(flag := getattr(self, name)) is not bool:
                raise TypeError(f"Filters: {name} must be True or False, got {flag!r}")


def texts_of(owner: object, name: str, value: object) -> tuple[str, ...]:
    """Return a collection of texts as a tuple; raise a TypeError if it is none."""
    texts = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
    if texts is None or not all(map(_is_text, texts)):
        kind = type(owner).__name__
        raise TypeError(f"{kind}: {name} must be a collection of texts, got {value!r}")
    # A set has another order in each process.
    return tuple(sorted(texts)) if isinstance(value, AbstractSet) else texts


def search_text_of(owner: object, value: object) -> str:
    """Return a search text without blanks around it; raise a TypeError if it is none."""
    if not isinstance(value, str) or len(value) > MAX_SEARCH_TEXT_CHARS:
        raise TypeError(
            f"{type(owner).__name__}: search_text must be a text of at most "
            f"{MAX_SEARCH_TEXT_CHARS:,} characters, got {value!r:.40}"
        )
    return value.strip()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def merge_hints(first: Hints, second: Hints) -> Hints:
    """Return both sets of hints as one: lists are united, and *first* wins where both say."""

    def merge(one: object, other: object) -> object:
        if isinstance(one, tuple) and isinstance(other, tuple):
            return tuple(dict.fromkeys((*one, *other)))
        return other if one in {None, ""} else one

    values: dict[str, Any] = {
        item.name: merge(getattr(first, item.name), getattr(second, item.name))
        for item in fields(Hints)
    }
    return Hints(**(values | {"enabled": first.enabled and second.enabled}))
