"""What the things of several sources are called behind one name, and back. Pure.

* A name that one of them has stays; one that several have is qualified in all, so that their order
  decides nothing: ``source_name``, and ``source+URI`` of a resource or template, which is a URI,
  and makes such, if the source's name can begin a scheme: a letter first, and no ``_``.
* ``source+URI`` leads back whether that is listed or not: what a tool's answer links to can be
  read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from gateway.types import Diagnostic, JsonObject, Kind, ToolDefinition
from gateway.upstream.named import addressed, fits, moved, pin_key
from gateway.upstream.source import Listing

Key: TypeAlias = tuple[Kind, str]
"""A kind, and a name that is unique in it."""
Owner: TypeAlias = tuple[str, str]
"""A source, and its own name of a thing."""
_KINDS: frozenset[Kind] = frozenset({"tool", "prompt", "resource"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of everything that some sources listed."""

    owners: Mapping[Key, Owner] = field(default_factory=dict)
    shown: Mapping[tuple[Kind, str, str], str] = field(default_factory=dict)
    """By kind, source and its own name."""
    sources: tuple[str, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    """One for each thing that no name was left for."""

    def owner(self, kind: Kind, name: str) -> Owner | None:
        """Give who has what is called *name*, listed or made of a template; None if not just one.

        Args:
            kind: ``tool``, ``prompt`` or ``resource``.
            name: As it is called here.
        """
        known = self.owners.get((kind, name))
        if known is not None or kind != "resource":
            return known
        fitting = {
            shown: owner
            for (each, shown), owner in self.owners.items()
            if each == "resource" and "{" in shown and fits(shown, name)
        }
        # A template that says how a URI begins knows it better than a prefix that looks alike.
        plain = {
            source
            for shown, (source, own) in fitting.items()
            if shown == own and not shown.startswith("{")
        }
        if len(plain) == 1:
            return plain.pop(), name
        for source in self.sources:
            if name.startswith(f"{source}+"):
                return source, name.removeprefix(f"{source}+")
        owners = {source for source, _ in fitting.values()}
        return (owners.pop(), name) if len(owners) == 1 else None

    def uri(self, source: str, own: str) -> str:
        """Give what a resource of *source* is called here, whether it is listed or not."""
        return self.shown.get(("resource", source, own), f"{source}+{own}")

    def told(self, owner: Owner, name: str, answer: JsonObject) -> JsonObject:
        """Give what *owner* answered to a request for *name*, with the URIs that lead here."""
        source, own = owner

        def new(uri: str) -> str:
            return name if uri == own else self.uri(source, uri)

        changes: Mapping[str, Callable[[JsonObject], JsonObject]] = {
            # What was asked for bears the name that it was asked by, also an address of the web.
            "contents": lambda each: (
                {**each, "uri": name} if each.get("uri") == own else moved(each, new)
            ),
            "messages": lambda each: _message(each, new),
        }
        found = dict(answer)
        for key, change in changes.items():
            held = answer.get(key)
            if isinstance(held, list):
                found[key] = [change(each) if isinstance(each, dict) else each for each in held]
        return found


def _message(each: JsonObject, new: Callable[[str], str]) -> JsonObject:
    held = each.get("content")
    return {**each, "content": addressed(held, new)} if isinstance(held, dict) else each


def named(listings: Mapping[str, Listing]) -> Names:
    """Name everything in *listings*, which are by source."""
    offered = [
        (each.kind, source, each.name) for source, one in listings.items() for each in _every(one)
    ]
    have = Counter((kind, name) for kind, _, name in offered)
    owners: dict[Key, Owner] = {}
    shown: dict[tuple[Kind, str, str], str] = {}
    notes: list[Diagnostic] = []
    for kind, source, own in offered:
        name = own if have[kind, own] == 1 else _qualified(kind, source, own)
        if (kind, name) in owners:
            detail = f"{source!r}: {kind} {own!r}: another one is called {name!r}"
            notes.append(Diagnostic(stage="catalog", code="tool_quarantined", detail=detail))
        else:
            owners[kind, name] = source, own
            shown[kind, source, own] = name
    return Names(owners=owners, shown=shown, sources=tuple(listings), notes=tuple(notes))


def joined(
    owners: Mapping[Key, Owner], listings: Mapping[str, Listing], notes: tuple[Diagnostic, ...]
) -> Listing:
    """Give what *owners* name, of that what *listings* hold.

    Args:
        owners: In the order of the things.
        listings: By source.
        notes: The diagnostics.
    """
    held = {
        source: {(each.kind, each.name): each for each in _every(listing)}
        for source, listing in listings.items()
    }
    found = {
        (kind, name): (listings[source], held[source][kind, own])
        for (kind, name), (source, own) in owners.items()
        if (kind, own) in held.get(source, {})
    }
    every = [replace(each, name=name) for (_, name), (_, each) in found.items()]
    digests: dict[str, str] = {}
    suspicions: dict[str, tuple[str, ...]] = {}
    for (kind, name), (listing, each) in found.items():
        own = pin_key(kind, each.name)
        if own in listing.digests:
            digests[pin_key(kind, name)] = listing.digests[own]
        if own in listing.suspicions:
            suspicions[pin_key(kind, name)] = listing.suspicions[own]
    return Listing(
        tools=tuple(each for each in every if each.kind == "tool"),
        things=tuple(each for each in every if each.kind != "tool"),
        diagnostics=notes,
        digests=digests,
        suspicions=suspicions,
    )


def _every(listing: Listing) -> Iterator[ToolDefinition]:
    yield from listing.tools
    yield from (each for each in listing.things if each.kind in _KINDS)


def _qualified(kind: Kind, source: str, own: str) -> str:
    return f"{source}+{own}" if kind == "resource" else f"{source}_{own}"
