"""Policies over a listing: definitions that are not as they were approved, or look like an attack.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.mcp.naming import MAX_NAME_CHARS, matches_template, pin_key
from gateway.options import UpstreamOptions
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, Kind, ToolDefinition
from gateway.types.listing import Listing

COMMAND_LINE_PIN = ""
"""The name under which the digest of a server's command line is pinned."""


def apply_policies(
    listing: Listing, changed: frozenset[str], *, server: str, options: UpstreamOptions
) -> Listing:
    """Return *listing* with a diagnostic for each doubt, and without what a policy hides.

    Each definition that stays carries its own doubts (`ToolDefinition.doubts`).

    Args:
        listing: As it came.
        changed: The names whose definition is not the approved one; `COMMAND_LINE_PIN` for the
            server's own command line.
        server: For messages.
        options: The policies.
    """
    if not changed and not listing.suspicions:
        return listing
    blocked = (changed if options.on_change == "block" else frozenset()) | (
        frozenset(listing.suspicions) if options.on_suspicion == "block" else frozenset()
    )
    notes = tuple(_notes(listing, changed, blocked, server))
    if not notes:
        return listing
    doubts: dict[str, tuple[Diagnostic, ...]] = {}
    for key, note in notes:
        doubts[key] = (*doubts.get(key, ()), note)

    def shown(item: ToolDefinition) -> Iterator[ToolDefinition]:
        key = pin_key(item.kind, item.name)
        if key not in blocked:
            yield replace(item, doubts=doubts[key]) if key in doubts else item

    return replace(
        listing,
        tools=tuple(item for tool in listing.tools for item in shown(tool)),
        things=tuple(item for thing in listing.things for item in shown(thing)),
        instructions="" if pin_key("server", server) in blocked else listing.instructions,
        diagnostics=(*listing.diagnostics, *(note for _, note in notes)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenItems:
    """The resources and prompts that a policy hides: they cannot be read by name either.

    A URI that a template describes is hidden with the template, unless it is listed itself.
    """

    hidden: frozenset[str] = frozenset()
    """As `pin_key` writes them."""
    shown: frozenset[str] = frozenset()

    @classmethod
    def of(cls, whole: Listing, shown: Listing) -> HiddenItems:
        """Return what is in *whole* and not in *shown*."""
        if shown is whole:
            return NOTHING_HIDDEN
        before, after = (
            frozenset(pin_key(item.kind, item.name) for item in listing.things)
            for listing in (whole, shown)
        )
        return cls(hidden=before - after, shown=after) if before != after else NOTHING_HIDDEN

    def holds(self, kind: Kind, name: str) -> bool:
        """Whether the resource or prompt of this name is hidden."""
        key = pin_key(kind, name)
        if not self.hidden or key in self.shown:
            return False
        if key in self.hidden:
            return True
        start = pin_key("resource", "")
        templates = (key.removeprefix(start) for key in self.hidden if key.startswith(start))
        return kind == "resource" and any(
            "{" in uri and matches_template(uri, name) for uri in templates
        )


NOTHING_HIDDEN = HiddenItems()


def _notes(
    listing: Listing, changed: frozenset[str], blocked: frozenset[str], server: str
) -> Iterator[tuple[str, Diagnostic]]:
    """Yield each doubt, with the name under which what it is about is pinned."""
    if COMMAND_LINE_PIN in changed:
        detail = (
            f"{server!r}: what would run is not what was approved; "
            f"look at its configuration, then: gateway approve {server}"
        )
        yield COMMAND_LINE_PIN, _note("server_changed", detail)
    labels = {tool.name: f"tool {tool.name!r}" for tool in listing.tools}
    labels[pin_key("server", server)] = "what it says of itself"
    for item in listing.things:
        label = f"{item.kind} {clean(item.name, limit=MAX_NAME_CHARS)!r}"
        labels[pin_key(item.kind, item.name)] = label
    for key, label in labels.items():
        end = "; it is left out" if key in blocked else ""
        if key in changed:
            detail = (
                f"{server!r}: {label} is not as it was approved; "
                f"look at it, then: gateway approve {server}/{key}{end}"
            )
            yield key, _note("tool_changed", detail)
        if reasons := listing.suspicions.get(key):
            yield key, _note("tool_suspicious", f"{server!r}: {label}: {', '.join(reasons)}{end}")


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=detail)
