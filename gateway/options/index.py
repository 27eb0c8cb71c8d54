"""What the catalog holds, and how its index is made and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.options.validation import Count, OptionObject, PositiveCount, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(OptionObject):
    """The rules that derive edges. The host's own documents override them."""

    groups: bool = True
    """Tools of one server that share a word of their names, or a category."""
    phases: bool = True
    """What finds a thing comes before what inspects it, and that before what acts on it."""
    data_flow: bool = True
    """A field of one tool's output is a required argument of another."""
    suppliers: bool = True
    """A tool that needs nothing and gets X feeds a required argument called X."""
    calendar: bool = True
    """What tells the current date or time feeds required arguments written as one."""
    checks: bool = True
    """What validates X comes before what needs an X."""
    sign_in: bool = True
    """What signs in to something comes before what uses it."""
    connection: bool = True
    """What tells whether the machine is online comes before signing in."""
    mentions: bool = True
    """A description that names another tool of its server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(OptionObject):
    """Indexes that outlive the process, so that the next start reads what this one made."""

    saved: bool = True
    """Whether they are saved and read. If the host gives a vector store of its own, they are only
    if ``Options.index_path`` says where."""
    min_tools: PositiveCount = 200
    """An index of fewer tools is not saved: it is made fast enough."""
    kept: PositiveCount = 4
    """How many are kept; those that were not used for longest are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions(OptionObject):
    """Process-local caches: how many values, for how long. A size of 0 turns a cache off."""

    normalized_items: Count = 2048
    normalized_ttl_s: Seconds = 1800.0
    embedding_items: Count = 2048
    embedding_ttl_s: Seconds = 900.0
    result_items: Count = 1024
    result_ttl_s: Seconds = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind(OptionObject):
    """A kind of entries that the host declares."""

    searchable: tuple[str, ...] = ()
    """The parts of the metadata that entries are found by, as dot paths; the others are kept and
    shown alone."""
    max_entries: PositiveCount = 10_000
    """The most entries of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions(OptionObject):
    """What the catalog holds besides what servers list."""

    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of your own, by name. An entry of an undeclared kind is found by its name and
    its texts, not by its metadata."""
    max_entries: PositiveCount = 100_000
    """The most entries of all kinds."""
    servers: bool = True
    """Whether every MCP server is an entity beside its tools."""
