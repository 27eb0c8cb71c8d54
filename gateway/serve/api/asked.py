"""What a client may ask: bodies and parameters, as types that are checked and documented.

Unknown fields are refused: a misspelt one that is silently ignored is an answer to another
question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from gateway.catalog.projection import MAX_DEPTH, MAX_PATHS, MAX_SEGMENT
from gateway.types import Status

STRICT = ConfigDict(
    extra="forbid", strict=True, use_attribute_docstrings=True, regex_engine="python-re"
)
"""For bodies: JSON has types."""
LOOSE = ConfigDict(extra="forbid", use_attribute_docstrings=True, regex_engine="python-re")
"""For parameters: all of them are texts."""
_SOMETHING: JsonDict = {
    "anyOf": [
        {"required": ["query"], "properties": {"query": {"pattern": r"\S"}}},
        {"required": ["tags"], "properties": {"tags": {"minItems": 1}}},
    ]
}
"""A search asks for something."""
MAX_RESULTS = 50
MAX_QUERY_CHARS = 4096
PAGE = 500
"""The most entities of one page."""

_END = r"$(?!\n)"
"""Python's ``$`` lets a newline follow, JSON Schema's does not."""
_NAME = r"\w[\w .,:;@+/()&'#!?*=~%-]{0,255}"
_SPACE = r"[A-Za-z0-9_.-]{1,64}"
_KIND = r"(?!(?:tool|prompt|resource)(?![a-z0-9_-]))[a-z][a-z0-9_-]{0,63}"
"""Servers list the three."""
ENTRY_ID = re.compile(f"({_KIND}):({_SPACE})/({_NAME})")
"""What may be written: kind, namespace, name."""
_STEP = rf"[\w-]{{1,{MAX_SEGMENT}}}"


def _whole(value: object) -> object:
    """To JSON Schema 36.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Ranking = Literal["hybrid", "weighted", "legacy", "lexical", "strategy"]
Word: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
Words: TypeAlias = Annotated[tuple[Word, ...], Field(max_length=50)]
Query: TypeAlias = Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MAX_RESULTS), BeforeValidator(_whole)]
DotPath: TypeAlias = Annotated[
    str,
    Field(pattern=rf"^{_STEP}(\.{_STEP}){{0,{MAX_DEPTH - 1}}}{_END}"),
]
Text: TypeAlias = Annotated[str, Field(max_length=8192)]
Short: TypeAlias = Annotated[str, Field(max_length=256)]
Shorts: TypeAlias = Annotated[tuple[Short, ...], Field(max_length=100)]
KindName: TypeAlias = Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_-]{{0,63}}{_END}")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSearch:
    """A search of the catalog. Without a query it browses what has the tags."""

    __pydantic_config__ = STRICT | ConfigDict(json_schema_extra=_SOMETHING)

    query: Query = ""
    """What is wanted, in any language; words as `#tag` are tags. May be empty if there are tags."""
    entity_types: Words | None = None
    """Kinds to look for: `mcp_server`, `virtual_server`, `a2a_agent`, `skill`, `tool`, `prompt`,
    `resource` or one of the host's own. None is all but prompts and resources."""
    tags: Words = ()
    """All of these, compared without case."""
    max_results: Limit = 10
    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False
    metadata_fields: Annotated[tuple[DotPath, ...], Field(max_length=MAX_PATHS)] | None = None
    """Dot-paths into the metadata that rows are to show; none shows all of it, an empty list
    nothing."""
    ranking: Ranking | None = None
    """How the evidence is weighed; none is as the server is set up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHints:
    """What else an entity is found by."""

    __pydantic_config__ = STRICT

    aliases: Shorts = ()
    keywords: Shorts = ()
    categories: Shorts = ()
    tags: Shorts = ()
    examples: Shorts = ()
    """Requests that it serves, as a user would say them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityBody:
    """What an entity is, but for its identity."""

    __pydantic_config__ = STRICT

    title: Short = ""
    description: Text = ""
    status: Status = "active"
    enabled: bool = True
    hints: EntityHints = field(default_factory=EntityHints)
    scopes: Words = ()
    """A caller needs all of these to find it; you must hold them yourself."""
    metadata: dict[str, JsonValue] = field(default_factory=dict)
    """Anything else, as JSON of at most 65,536 characters."""
    parent: Annotated[str, Field(max_length=512)] = ""
    """The id of what it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntity(EntityBody):
    """An entity that is not there yet. Its id will be `kind:namespace/name`."""

    __pydantic_config__ = STRICT

    kind: Annotated[str, Field(pattern=f"^{_KIND}{_END}")]
    """`server`, `virtual_server`, `agent`, `skill` or one of the host's own."""
    name: Annotated[str, Field(pattern=f"^{_NAME}{_END}")]
    namespace: Annotated[str, Field(pattern=f"^{_SPACE}{_END}")] = "catalog"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange:
    """What changes of an entity; what is left out stays. Nothing of it is embedded anew."""

    __pydantic_config__ = STRICT

    status: Status | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which entities are listed."""

    __pydantic_config__ = LOOSE

    kind: KindName | None = None
    """None is every kind."""
    tags: Words = ()
    """All of these; repeat the parameter."""
    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False
    after: Annotated[str, Field(max_length=1024)] = ""
    """The `next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=PAGE)] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering:
    """Which servers or agents are listed."""

    __pydantic_config__ = LOOSE

    query: Query = ""
    """Words that they hold, best first; none lists all by id."""
    tags: Words = ()
    """All of these; repeat the parameter."""
    limit: Limit = MAX_RESULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSearch:
    """Which skills are searched for."""

    __pydantic_config__ = LOOSE

    q: Query
    """Words that they hold, best first."""
    tags: Words = ()
    """All of these; repeat the parameter."""
    limit: Limit = 10
