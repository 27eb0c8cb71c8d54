"""Sources around sources. Whatever lists and calls like a source can be wrapped, wrappers too.

    Shaped(source, Filter(deny=("delete_*",)), Prefix("crm_"))
    Combined("office", [Shaped(word, Prefix("word_")), excel])

Nothing is connected or kept here: a wrapper costs its names.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.mcp.naming import (
    addressed,
    asked_as,
    asked_of,
    check_server_name,
    fits,
    moved,
    pin_key,
)
from gateway.sources.protocol import ResourceSource, Source, Watchable, unknown_tool
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks

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


class Combined:
    """Several sources behind one name: their tools, resources and prompts.

    What several have is qualified in all of them, see `several`; a `Prefix` on each keeps names
    from depending on the others.

    Args:
        server: The name.
        sources: Each of another name.

    Raises:
        ConfigError: If there are none, or two have one name.
    """

    def __init__(self, server: str, sources: Sequence[Source]) -> None:
        self._server = check_server_name(server)
        self._sources = {source.server: source for source in sources}
        if not sources or len(self._sources) < len(sources):
            raise ConfigError(f"{server!r}: combine one source or more, each of another name")
        self._listings: Mapping[str, Listing] = {}
        self._names = Names()

    @property
    def server(self) -> str:
        """The name of all of them."""
        return self._server

    @property
    def trusted(self) -> bool:
        """Whether the host wrote all definitions."""
        return all(source.trusted for source in self._sources.values())

    async def list_tools(self) -> Listing:
        """List all sources at once; see `Source.list_tools`.

        A source that cannot be listed is told, and what it has is that of before.

        Raises:
            UpstreamError: None of them could be listed.
            ClosedError: After `close`.
        """
        self._listings = await parts(self._sources, self._listings)
        self._names = named(self._listings)
        notes = (note for each in self._listings.values() for note in each.diagnostics)
        return joined(self._names.owners, self._listings, (*notes, *self._names.notes))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the tool of whoever has it; see `Source.call`."""
        owner = await self._owner("tool", tool)
        if owner is None:
            return unknown_tool(tool_id, tool)
        server, own = owner
        source = self._sources[server]
        result = await source.call(own, arguments, tool_id=tool_id)
        if not isinstance(source, ResourceSource):
            return result
        new = partial(self._names.uri, server)
        content = tuple(replace(each, data=addressed(each.data, new)) for each in result.content)
        return replace(result, content=content)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask whoever has the resource or prompt; see `ResourceSource.ask`."""
        kind, name = asked_of(params)
        owner, source = await self._holder(kind, name)
        server, own = owner
        if not isinstance(source, ResourceSource):
            raise InvalidRequestError(f"server {server!r} has no resources and no prompts")
        return self._names.told(owner, name, await source.ask(method, asked_as(params, own)))

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of a resource of whoever has it; see `Watchable.watch`."""
        (server, own), source = await self._holder("resource", uri)
        if not isinstance(source, Watchable):
            raise InvalidRequestError(f"server {server!r} tells of no changes of {own!r}")
        await source.watch(own, heard)

    async def close(self) -> None:
        """Close all of them, at once."""
        await asyncio.gather(*(attempt(source.close()) for source in self._sources.values()))

    async def _holder(self, kind: Kind, name: str) -> tuple[Owner, Source]:
        owner = await self._owner(kind, name)
        if owner is None:
            raise InvalidRequestError(
                f"server {self.server!r} has no {kind} {name!r}, or several sources may have it: "
                "list them"
            )
        return owner, self._sources[owner[0]]

    async def _owner(self, kind: Kind, name: str) -> Owner | None:
        owner = self._names.owner(kind, name)
        if owner is None:
            await self.list_tools()
            owner = self._names.owner(kind, name)
        return owner


async def parts(sources: Mapping[str, Source], before: Mapping[str, Listing]) -> dict[str, Listing]:
    """List *sources* at once, by name.

    Args:
        sources: By name.
        before: What they listed then: it stands in, with a diagnostic, for a source that fails.

    Raises:
        UpstreamError: None of them could be listed.
        ClosedError: They are closed.
    """
    answers = await asyncio.gather(*(attempt(source.list_tools()) for source in sources.values()))
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise failures[0].error
    return {
        server: _stood_in(server, answer, before) if isinstance(answer, Failed) else answer
        for server, answer in zip(sources, answers, strict=True)
    }


def _stood_in(server: str, failed: Failed, before: Mapping[str, Listing]) -> Listing:
    reason = failed.reason
    detail = reason if server in reason else f"{server!r}: {reason}"
    note = Diagnostic(stage="catalog", code="source_load_failed", detail=detail)
    return replace(before.get(server, Listing()), diagnostics=(note,))
