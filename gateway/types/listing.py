"""What a source of tools offers, and the callbacks for its changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gateway.types.access import Access
from gateway.types.diagnostics import Diagnostic
from gateway.types.entities import Entity, Kind, ToolDefinition


def pin_key(kind: Kind, name: str) -> str:
    """Return the key of digests and suspicions: a tool's own name, or ``kind:name``."""
    return name if kind == "tool" else f"{kind}:{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a source offers at one moment."""

    definitions: Collection[ToolDefinition] = ()
    """Tools, resources and prompts in the source's own order; names are unique within a kind."""
    entities: tuple[Entity, ...] = ()
    """What stands in the catalog as it is, such as its entries; ids that nothing listed has."""
    instructions: str = ""
    """What the source says of itself and of its use."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """One for each tool that cannot be used, and one if the listing was cut."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By `pin_key`: SHA-256 (hex) of the definition as it came; empty if none was made."""
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Under the same keys: why a definition looks like an attack on a model; only such ones."""
    access: Mapping[str, Access] = field(default_factory=dict)
    """Under the same keys: what the host says of the use of its own tools."""
    rules: Mapping[str, Access] = field(default_factory=dict)
    """What the catalog's store says of the use of things of any source, by pattern."""
    originals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Under the same keys: the server and the name of what an alias stands for."""

    @property
    def content(self) -> tuple[object, ...]:
        """What an index is made of: of diagnostics their codes."""
        codes = [note.code for note in self.diagnostics]
        return codes, self.instructions, tuple(self.definitions), self.entities

    def pinned(self, digest: str) -> ToolDefinition | None:
        """Return the definition whose digest is *digest*; None if there is none.

        The source's own text is a definition of kind ``server``.
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
        """The tools alone."""
        return tuple(item for item in self.definitions if item.kind == "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCallbacks:
    """The callbacks for one watched resource. Called on any thread."""

    on_start: Callable[[], None]
    """From now on changes are reported; called again after each new connection."""
    on_change: Callable[[], None]
    """The resource changed, or may have."""
