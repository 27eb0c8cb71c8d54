"""What the catalog holds besides what servers list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.checks import at_least, check


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKind:
    """A kind of entries that the host declares."""

    searchable: tuple[str, ...] = ()
    """The parts of the metadata that entries are found by, as dot paths; the others are kept and
    shown alone."""
    max_entries: int = 10_000
    """The most entries of it."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(self, at_least("max_entries", self.max_entries, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """What the catalog holds besides what servers list."""

    kinds: Mapping[str, CustomKind] = field(default_factory=dict)
    """Kinds of your own, by name. An entry of a kind that nobody declares is found by its name and
    its texts, not by its metadata."""
    max_entries: int = 100_000
    """The most entries of all kinds."""
    servers: bool = True
    """Whether every MCP server is an entity beside its tools."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(self, at_least("max_entries", self.max_entries, 1))
