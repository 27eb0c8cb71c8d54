"""The listing of a source, and callbacks for changes of a resource."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gateway.types.access import Access
from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import Entity, Kind, ToolDefinition


def pin_key(kind: Kind, name: str) -> str:
    """Return the key of a definition in a listing's mappings: ``name`` for a tool, else
    ``kind:name``.
    """
    return name if kind == "tool" else f"{kind}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Tools, resources and prompts that a source offers at one moment."""

    definitions: Collection[ToolDefinition] = ()
    """Tools, resources and prompts in the source's order. Names are unique within a kind."""
    entities: tuple[Entity, ...] = ()
    """Complete entities, such as catalog entries. Their ids differ from those of all
    definitions."""
    instructions: str = ""
    """The source's description of itself and its use."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """One for each unusable tool, and one if the listing was cut."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 (hex) of each definition as received, keyed by `pin_key`; may be empty."""
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why definitions look like an attack on a model, keyed by `pin_key`. Contains only
    suspicious definitions."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """The host's rules for its own tools, keyed by `pin_key`."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Rules from the catalog's store for entities of any source, keyed by a pattern of names."""
    originals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Server and name of the original of each alias, keyed by `pin_key`."""

    @property
    def content(self) -> tuple[object, ...]:
        """The parts from which an index is built. Diagnostics count only by their codes."""
        codes = [note.code for note in self.diagnostics]
        return codes, self.instructions, tuple(self.definitions), self.entities

    def pinned(self, digest: str) -> ToolDefinition | None:
        """Return the definition with this digest; None if it does not exist.

        The source's instructions count as a definition of kind ``server``.
        """
        keys = {key for key, value in self.digests.items() if value == digest}
        for item in self.definitions:
            if pin_key(item.kind, item.name) in keys:
                return item
        for key in keys:
            if key.startswith("server:"):
                name = key.removeprefix("server:")
                return ToolDefinition(name=name, kind="server", description=self.instructions)
        return None

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The definitions that are tools."""
        return tuple(item for item in self.definitions if item.kind == "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCallbacks:
    """Callbacks for one watched resource. They are called on any thread."""

    on_start: Callable[[], None]
    """Called when changes begin to be reported, and again after each new connection."""
    on_change: Callable[[], None]
    """Called when the resource changed or may have changed."""
