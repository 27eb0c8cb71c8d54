"""Entities of the catalog, their definitions and search hints, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

from gateway.types.diagnostics import Diagnostic

JsonObject: TypeAlias = Mapping[str, object]
"""A JSON object, as `json.loads` returns it."""
BuiltinKind = Literal["tool", "server", "virtual_server", "agent", "skill", "prompt", "resource"]
Kind: TypeAlias = str
"""A `BuiltinKind`, or a kind that the host declares."""
Status = Literal["active", "beta", "draft", "deprecated"]
DEFAULT_STATUSES: frozenset[Status] = frozenset({"active", "beta"})
"""Statuses that default filters accept."""
MAX_SEARCH_TEXT_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Search hints of a host for a tool, in addition to its definition. None means unknown.

    Raises:
        TypeError: If a list of texts has another type, or the search text is too long or no text.

    Example:
        >>> from gateway.types import Hints
        >>> hints = Hints(aliases=["send mail"], tags=["office"], destructive=False)
        >>> hints.aliases
        ('send mail',)
    """

    aliases: tuple[str, ...] = ()
    """Other names, in any language."""
    keywords: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Labels for filters; case is ignored."""
    examples: tuple[str, ...] = ()
    """Requests that this tool serves, in the words of a user."""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    """True if the tool reaches beyond its server's domain, for example to the web."""
    enabled: bool = True
    """False prevents finding and calling the tool."""
    search_text: str = ""
    """Text for searches in place of the description, at most 2,000 characters, which models never
    see. Empty uses the description."""

    def __post_init__(self) -> None:
        """Convert lists to tuples. Registration checks the types of their items."""
        if self.search_text != "":
            object.__setattr__(self, "search_text", search_text_of(self, self.search_text))
        for name in ("aliases", "keywords", "categories", "tags", "examples"):
            if type(value := getattr(self, name)) is not tuple:
                object.__setattr__(self, name, texts_of(self, name, value))


_NO_HINTS = Hints()
_EMPTY_OBJECT: JsonObject = {}
"""Empty object that definitions without details share, to save memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool, resource or prompt, as its source describes it."""

    name: str
    """Unchanged name of the tool or prompt at its source, or URI (template) of the resource."""
    title: str = ""
    description: str = ""
    input_schema: JsonObject = field(default_factory=dict)
    """JSON Schema of type object for the arguments."""
    output_schema: JsonObject | None = None
    hints: Hints = _NO_HINTS
    kind: Kind = "tool"
    details: JsonObject = field(default_factory=lambda: _EMPTY_OBJECT)
    """Further fields of a resource or a prompt for listings."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """``tool_changed`` and ``tool_suspicious``, added by the gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """An item of the catalog: a tool, server, resource, prompt or entry."""

    id: str
    """Canonical id: ``server/name`` for a tool, ``kind:server/name`` for other kinds. It does not
    change between restarts."""
    kind: Kind = "tool"
    exposed_name: str
    """Unique name in the catalog. Tools: the name for models, at most 64 characters of
    ``[A-Za-z0-9_-]``. Resources and prompts: the address at the gateway. Other kinds: the id."""
    server: str
    definition: ToolDefinition
    status: Status = "active"
    scopes: frozenset[str] = frozenset()
    """Scopes that a caller needs to see the entity."""
    trusted: bool = False
    """True if the host wrote the definition (a Python function, the host's own file)."""
    vouched: bool = False
    """True if the host vouches for the tool's behaviour, by trusting its source or by hints."""
    digest: str = ""
    """SHA-256 (hex) of the canonical definition and hints, without the search text, which approvals
    do not cover."""
    parent: str = ""
    """Id of the entity to which this one belongs, such as a tool's server, or empty."""
    metadata: JsonObject = field(default_factory=lambda: _EMPTY_OBJECT)
    """Further data of a catalog entry."""
    generation: int = -1
    """Number of the listing in which the server first offered the tool; lower is earlier. -1 for
    entities of the host, such as aliases and entries."""
    originals: tuple[str, ...] = ()
    """Ids of the tools that an alias represents, and whose policies it follows."""
    described: bool = False
    """True for a tool known only from its server's entry. It can be called after the server is
    connected."""

    @property
    def name(self) -> str:
        """Name at the source."""
        return self.definition.name

    @property
    def description(self) -> str:
        """Description by the source; may be empty."""
        return self.definition.description

    @property
    def hints(self) -> Hints:
        """Search hints, merged from all origins."""
        return self.definition.hints

    def with_hints(self, **changes: Any) -> Entity:
        """Return a copy with changed fields of `Hints` and the same digest."""
        hints = replace(self.hints, **changes)
        return replace(self, definition=replace(self.definition, hints=hints))

    @property
    def suspicious(self) -> bool:
        """True if the definition looks like an attack on a model, and is hidden from models."""
        return any(note.code == "tool_suspicious" for note in self.definition.diagnostics)

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the required arguments, in the order of the input schema."""
        names = self.definition.input_schema.get("required")
        return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions for the entities of a search, applied before the ranking.

    Fields of type frozenset accept any collection of texts.

    Raises:
        TypeError: If a value has the wrong type, such as a single text for a collection.

    Example:
        >>> from gateway import Filters
        >>> filters = Filters(servers={"github"}, tags={"read"})
        >>> result = await gateway.search("list issues", filters=filters)
    """

    kinds: frozenset[Kind] = frozenset({"tool"})
    statuses: frozenset[Status] = DEFAULT_STATUSES
    tags: frozenset[str] = frozenset()
    """Tags that an entity needs, all of them; case is ignored."""
    servers: frozenset[str] = frozenset()
    """Names of servers; empty allows all."""
    scopes: frozenset[str] = frozenset()
    """Scopes in addition to those of the `Caller`."""
    include_disabled: bool = False
    include_described: bool = False
    """True includes tools known only from their server's entry, which cannot be called yet."""
    healthy_only: bool = False
    """True excludes entities of currently unreachable servers."""
    without: frozenset[str] = frozenset()
    """Names of excluded servers and ids of excluded entities."""
    user: str = ""
    tenant: str = ""
    """Tenant of the `Caller`, for policies."""
    unrestricted: bool = False
    """True for a search by the host, to which no policy applies."""

    def __post_init__(self) -> None:
        for name in ("kinds", "statuses", "tags", "servers", "scopes", "without"):
            value = getattr(self, name)
            if type(value) is not frozenset or (value and not all(map(_is_text, value))):
                object.__setattr__(self, name, frozenset(texts_of(self, name, value)))
        for name in ("include_disabled", "include_described", "healthy_only", "unrestricted"):
            if type(flag := getattr(self, name)) is not bool:
                raise TypeError(f"Filters: {name} must be True or False, got {flag!r}")


def texts_of(owner: object, name: str, value: object) -> tuple[str, ...]:
    """Return the collection *value* as a tuple of texts.

    Raises:
        TypeError: If *value* is another type. The message has the class of *owner* and *name*.
    """
    texts = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
    if texts is None or not all(map(_is_text, texts)):
        kind = type(owner).__name__
        raise TypeError(f"{kind}: {name} must be a collection of texts, got {value!r}")
    # The order of a set differs between processes.
    return tuple(sorted(texts)) if isinstance(value, AbstractSet) else texts


def search_text_of(owner: object, value: object) -> str:
    """Return the search text *value* without surrounding blanks.

    Raises:
        TypeError: If it is not a text or too long. The message has the class of *owner*.
    """
    if not isinstance(value, str) or len(value) > MAX_SEARCH_TEXT_CHARS:
        raise TypeError(
            f"{type(owner).__name__}: search_text must be a text of at most "
            f"{MAX_SEARCH_TEXT_CHARS:,} characters, got {value!r:.40}"
        )
    return value.strip()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def merge_hints(first: Hints, second: Hints) -> Hints:
    """Merge hints: unite lists, and otherwise prefer *first*."""

    def merge(value: object, other: object) -> object:
        if isinstance(value, tuple) and isinstance(other, tuple):
            return tuple(dict.fromkeys((*value, *other)))
        return other if value in {None, ""} else value

    values: dict[str, Any] = {
        item.name: merge(getattr(first, item.name), getattr(second, item.name))
        for item in fields(Hints)
    }
    return Hints(**(values | {"enabled": first.enabled and second.enabled}))
