"""What the catalog holds besides what servers list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.options.validation import OptionObject, PositiveCount


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
