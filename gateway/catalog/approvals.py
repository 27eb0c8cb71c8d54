"""Policies for changed and suspicious definitions in the listing of a server. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gateway.mcp.skills import is_file_of
from gateway.options import UpstreamOptions
from gateway.runtime.naming import MAX_NAME_CHARS, canonical_uri, matches_template
from gateway.runtime.text import clean
from gateway.types import Diagnostic, Kind
from gateway.types.listing import Listing, pin_key

COMMAND_LINE_PIN = ""
"""Name under which the digest of a server's command line, or of its URL, header names and sign-in
settings, is pinned."""


def apply_policies(
    listing: Listing, changed: Mapping[str, str], *, server: str, options: UpstreamOptions
) -> Listing:
    """Return *listing* with a diagnostic for each problem, and without blocked definitions.

    A server's suspicious instructions are always removed.

    Args:
        listing: The listing as received.
        changed: The remedy for each definition that differs from the approved one, keyed by
            `pin_key`, or by `COMMAND_LINE_PIN` for the command or URL. An empty remedy means an
            approval.
        server: Name of the server, for messages.
        options: The policies ``on_change`` and ``on_suspicion``.
    """
    if not changed and not listing.suspicions:
        return listing
    server_key = pin_key("server", server)
    blocked = {
        *({server_key} & listing.suspicions.keys()),
        *(changed if options.on_change == "block" else ()),
        *(listing.suspicions if options.on_suspicion == "block" else ()),
    }
    notes_by_key: defaultdict[str, tuple[Diagnostic, ...]] = defaultdict(tuple)
    for key, note in _notes(listing, changed, blocked, server):
        notes_by_key[key] += (note,)
    keyed = [(pin_key(item.kind, item.name), item) for item in listing.definitions]
    return replace(
        listing,
        definitions=tuple(
            replace(item, diagnostics=notes_by_key[key]) if key in notes_by_key else item
            for key, item in keyed
            if key not in blocked
        ),
        instructions="" if server_key in blocked else listing.instructions,
        diagnostics=(
            *listing.diagnostics,
            *(note for notes in notes_by_key.values() for note in notes),
        ),
    )


def _notes(
    listing: Listing, changed: Mapping[str, str], blocked: set[str], server: str
) -> Iterator[tuple[str, Diagnostic]]:
    if COMMAND_LINE_PIN in changed:
        detail = (
            f"{server!r}: the command line or URL changed since it was approved; "
            f"look at its configuration, then: gateway approve {server}"
        )
        note = Diagnostic(stage="catalog", code="server_changed", detail=detail)
        yield COMMAND_LINE_PIN, note
    labels = {
        pin_key(item.kind, item.name): f"{item.kind} {clean(item.name, limit=MAX_NAME_CHARS)!r}"
        for item in listing.definitions
    }
    labels[pin_key("server", server)] = "its own description"
    for key, label in labels.items():
        end = "; it is left out" if key in blocked else ""
        if key in changed:
            remedy = changed[key] or f"gateway approve {server}/{key}"
            detail = f"{server!r}: {label} is not as it was approved; look at it, then: {remedy}"
            yield key, Diagnostic(stage="catalog", code="tool_changed", detail=detail + end)
        if reasons := listing.suspicions.get(key):
            detail = f"{server!r}: {label}: {', '.join(reasons)}"
            yield key, Diagnostic(stage="catalog", code="tool_suspicious", detail=detail + end)


def is_hidden(kind: Kind, name: str, *, listed: Listing, shown: Listing) -> bool:
    """Return whether a policy removed a resource or prompt, so that it must not be read.

    The files of a removed skill, the URIs that match a removed template, and other spellings of a
    removed URI are hidden too, unless they are listed themselves.

    Args:
        kind: ``resource`` or ``prompt``.
        name: Name of the prompt, or URI of the resource.
        listed: The whole listing of the server.
        shown: The listing that is left after the policies.
    """
    if shown.definitions is listed.definitions:
        return False
    kinds = {kind, "skill"} if kind == "resource" else {kind}
    visible = {item.name for item in shown.definitions if item.kind in kinds}
    hidden = {item.name for item in listed.definitions if item.kind in kinds} - visible
    if name in hidden or name in visible or kind != "resource":
        return name in hidden
    canonical, spellings = canonical_uri(name), {canonical_uri(uri) for uri in hidden}
    if canonical in spellings or canonical in map(canonical_uri, visible):
        return canonical in spellings
    return any(matches_template(uri, canonical) or is_file_of(uri, canonical) for uri in spellings)
