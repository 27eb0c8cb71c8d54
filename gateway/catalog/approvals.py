"""Vetting a list: tools that are not as they were approved, or look like an attack. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gateway.mcp.naming import MAX_NAME_CHARS, fits, thing_key
from gateway.options import UpstreamOptions
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, Kind, ToolDefinition
from gateway.types.listing import Listing

LAUNCH = ""
"""The name under which the digest of a server's command line is pinned."""


def vetted(
    listing: Listing, changed: frozenset[str], *, server: str, options: UpstreamOptions
) -> Listing:
    """Give *listing* with a diagnostic for each doubt, and without what a policy leaves out.

    Each definition that stays carries its own doubts (`ToolDefinition.doubts`).

    Args:
        listing: As it came.
        changed: The names whose definition is not the approved one; `LAUNCH` for the server's
            own command line.
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
    return replace(
        listing,
        tools=tuple(
            _doubted(tool, doubts.get(tool.name))
            for tool in listing.tools
            if tool.name not in blocked
        ),
        things=tuple(
            _doubted(thing, doubts.get(key))
            for thing in listing.things
            if (key := thing_key(thing.kind, thing.name)) not in blocked
        ),
        instructions="" if thing_key("server", server) in blocked else listing.instructions,
        diagnostics=(*listing.diagnostics, *(note for _, note in notes)),
    )


def _doubted(thing: ToolDefinition, doubts: tuple[Diagnostic, ...] | None) -> ToolDefinition:
    return thing if doubts is None else replace(thing, doubts=doubts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """The resources and prompts that a policy leaves out: they cannot be read by name either.

    A URI that a template describes goes with the template, unless it is listed itself.
    """

    left_out: frozenset[str] = frozenset()
    """As `thing_key` writes them."""
    shown: frozenset[str] = frozenset()

    @classmethod
    def of(cls, whole: Listing, left: Listing) -> Withheld:
        """Compare what was listed with what is *left* of it."""
        if left is whole:
            return NOTHING
        every, shown = (
            frozenset(thing_key(each.kind, each.name) for each in listing.things)
            for listing in (whole, left)
        )
        return cls(left_out=every - shown, shown=shown) if every != shown else NOTHING

    def holds(self, kind: Kind, name: str) -> bool:
        """Whether the thing of this name is left out."""
        key = thing_key(kind, name)
        if not self.left_out or key in self.shown:
            return False
        if key in self.left_out:
            return True
        begin = thing_key("resource", "")
        templates = (each.removeprefix(begin) for each in self.left_out if each.startswith(begin))
        return kind == "resource" and any("{" in each and fits(each, name) for each in templates)


NOTHING = Withheld()


def _notes(
    listing: Listing, changed: frozenset[str], blocked: frozenset[str], server: str
) -> Iterator[tuple[str, Diagnostic]]:
    """Give each doubt, with the name under which what it is about is pinned."""
    if LAUNCH in changed:
        told = (
            f"{server!r}: what would run is not what was approved; "
            f"look at its configuration, then: gateway approve {server}"
        )
        yield LAUNCH, _note("server_changed", told)
    # To look at tools may mean to read them from the store: do so only for a reason.
    for tool in listing.tools if changed or listing.suspicions else ():
        end = "; it is left out" if tool.name in blocked else ""
        if tool.name in changed:
            told = (
                f"{server!r}: tool {tool.name!r} is not as it was approved; "
                f"look at it, then: gateway approve {server}/{tool.name}{end}"
            )
            yield tool.name, _note("tool_changed", told)
        reasons = listing.suspicions.get(tool.name)
        if reasons:
            told = f"{server!r}: tool {tool.name!r}: {', '.join(reasons)}{end}"
            yield tool.name, _note("tool_suspicious", told)
    itself = thing_key("server", server)
    others = {itself: "what it says of itself"} | {
        thing_key(each.kind, each.name): f"{each.kind} {clean(each.name, limit=MAX_NAME_CHARS)!r}"
        for each in listing.things
    }
    for key, shown in others.items():
        end = "; it is left out" if key in blocked else ""
        if key in changed:
            told = (
                f"{server!r}: {shown} is not as it was approved; "
                f"look at it, then: gateway approve {server}/{key}{end}"
            )
            yield key, _note("tool_changed", told)
        reasons = listing.suspicions.get(key)
        if reasons:
            yield key, _note("tool_suspicious", f"{server!r}: {shown}: {', '.join(reasons)}{end}")


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=detail)
