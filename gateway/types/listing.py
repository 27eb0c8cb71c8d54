"""The listing of a source, and callbacks for changes of a resource."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gateway.types.access import Access
from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import Entity, Kind, ToolDefinition


def pin_key(kind: Kind, name: str) -> str:
    """Return the key of a definition in a `Listing`: ``name`` for a tool, else ``kind:name``."""
    return name if kind == "tool" else f"{kind}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Tools, resources and prompts of a source at one moment."""

    definitions: Collection[ToolDefinition] = ()
    """Definitions in the source's order, with unique names within a kind."""
    entities: tuple[Entity, ...] = ()
    """Complete entities in place of definitions, such as catalog entries."""
    instructions: str = ""
    """Text of the source about itself and its use."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """One diagnostic for each unusable tool, and one if the listing was cut."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 (hex) of definitions as received, keyed by `pin_key`; may be empty."""
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why suspicious definitions look like an attack on a model, keyed by `pin_key`."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Rules for tools of the host, keyed by `pin_key`."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """Rules from the catalog's store for entities of any source, keyed by a pattern of ids."""
    originals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Server and name of an alias's original, keyed by the alias's `pin_key`."""

    @property
    def content(self) -> tuple[object, ...]:
        """Parts of the listing that the index depends on; of the diagnostics, only the codes."""
        codes = [note.code for note in self.diagnostics]
        return codes, self.instructions, tuple(self.definitions), self.entities

    def pinned(self, digest: str) -> ToolDefinition | None:
        """Return the definition with a digest, or None.

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
        """Definitions that are tools."""
        return tuple(item for item in self.definitions if item.kind == "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCallbacks:
    """Callbacks for a watched resource, on any thread."""

    on_start: Callable[[], None]
    """Called when reports of changes begin, and after each new connection."""
    on_change: Callable[[], None]
    """Called when the resource changed or may have changed."""
