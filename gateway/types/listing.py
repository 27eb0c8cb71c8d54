"""What a source of tools offers, and the callbacks for its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import Entity, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a source offers at one moment."""

    tools: Sequence[ToolDefinition] = ()
    """In the source's own order; names are unique."""
    things: tuple[ToolDefinition, ...] = ()
    """Resources and prompts, names unique within a kind."""
    entities: tuple[Entity, ...] = ()
    """What stands in the catalog as it is, such as its entries; ids that nothing listed has."""
    instructions: str = ""
    """What the source says of itself and of its use."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """One for each tool that cannot be used, and one if the listing was cut."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By tool name: SHA-256 (hex) of the definition as it came; empty if none was made. The key of
    anything but a tool is ``kind:name``."""
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Under the same keys: why a definition looks like an attack on a model; only such ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCallbacks:
    """The callbacks for one watched resource. Called on any thread."""

    on_start: Callable[[], None]
    """From now on changes are reported; called again after each new connection."""
    on_change: Callable[[], None]
    """The resource changed, or may have."""
