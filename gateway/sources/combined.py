"""Several sources behind one name, what they offer named without clashes, and back.

    CombinedSource("office", [TransformedSource(word, Prefix("word_")), excel])

* A name that one of them has stays; one that several have is qualified in all, so that their order
  decides nothing: ``source_name``, and ``source+URI`` of a resource or template, which is a URI,
  and makes such, if the source's name can begin a scheme: a letter first, and no ``_``.
* ``source+URI`` leads back whether that is listed or not: what a tool's answer links to can be
  read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.mcp.naming import (
    check_server_name,
    matches_template,
    pin_key,
    request_target,
    retarget_request,
    rewrite_block_uri,
    rewrite_uri,
)
from gateway.sources.protocol import ResourceSource, Source, Watchable, unknown_tool
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks

Key: TypeAlias = tuple[Kind, str]
"""A kind, and a name that is unique in it."""
Owner: TypeAlias = tuple[str, str]
"""A source, and its own name of a definition."""
_KINDS: frozenset[Kind] = frozenset({"tool", "prompt", "resource"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedNames:
    """The names of everything that some sources listed."""

    owners: Mapping[Key, Owner] = field(default_factory=dict)
    names: Mapping[tuple[Kind, str, str], str] = field(default_factory=dict)
    """By kind, source and its own name."""
    sources: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """One for each definition that no name was left for."""

    def find_owner(self, kind: Kind, name: str) -> Owner | None:
        """Return the owner of *name*, listed or made of a template; None if there is not just one.

        Args:
            kind: ``tool``, ``prompt`` or ``resource``.
            name: As it is called here.
        """
        listed = self.owners.get((kind, name))
        if listed is not None or kind != "resource":
            return listed
        matching = {
            template: owner
            for (other, template), owner in self.owners.items()
            if other == "resource" and "{" in template and matches_template(template, name)
        }
        # A template that says how a URI begins knows it better than a prefix that looks alike.
        unqualified = {
            source
            for template, (source, original) in matching.items()
            if template == original and not template.startswith("{")
        }
        if len(unqualified) == 1:
            return unqualified.pop(), name
        for source in self.sources:
            if name.startswith(f"{source}+"):
                return source, name.removeprefix(f"{source}+")
        owners = {source for source, _ in matching.values()}
        return (owners.pop(), name) if len(owners) == 1 else None

    def to_uri(self, source: str, original: str) -> str:
        """Return what a resource of *source* is called here, whether it is listed or not."""
        return self.names.get(("resource", source, original), f"{source}+{original}")

    def rewrite_uris(self, owner: Owner, name: str, answer: JsonObject) -> JsonObject:
        """Return what *owner* answered to a request for *name*, with the URIs that lead here."""
        source, original = owner

        def rewrite(uri: str) -> str:
            return name if uri == original else self.to_uri(source, uri)

        def rewrite_resource(item: JsonObject) -> JsonObject:
            # What was asked for bears the name that it was asked by, also an address of the web.
            is_target = item.get("uri") == original
            return {**item, "uri": name} if is_target else rewrite_uri(item, rewrite)

        def rewrite_message(item: JsonObject) -> JsonObject:
            block = item.get("content")
            if not isinstance(block, dict):
                return item
            return {**item, "content": rewrite_block_uri(block, rewrite)}

        lists = {"contents": rewrite_resource, "messages": rewrite_message}
        return {
            key: [lists[key](item) if isinstance(item, dict) else item for item in value]
            if key in lists and isinstance(value, list)
            else value
            for key, value in answer.items()
        }


def merge_names(listings: Mapping[str, Listing]) -> MergedNames:
    """Name everything in *listings*, which are by source."""
    offers = [
        (definition.kind, source, definition.name)
        for source, listing in listings.items()
        for definition in _definitions(listing)
    ]
    counts = Counter((kind, name) for kind, _, name in offers)
    owners: dict[Key, Owner] = {}
    names: dict[tuple[Kind, str, str], str] = {}
    notes: list[Diagnostic] = []
    for kind, source, original in offers:
        name = original if counts[kind, original] == 1 else _qualify(kind, source, original)
        if (kind, name) in owners:
            detail = f"{source!r}: {kind} {original!r}: another one is called {name!r}"
            notes.append(Diagnostic(stage="catalog", code="tool_quarantined", detail=detail))
        else:
            owners[kind, name] = source, original
            names[kind, source, original] = name
    return MergedNames(
        owners=owners, names=names, sources=tuple(listings), diagnostics=tuple(notes)
    )


def merge_listings(
    owners: Mapping[Key, Owner],
    listings: Mapping[str, Listing],
    diagnostics: tuple[Diagnostic, ...],
) -> Listing:
    """Return what *owners* name, of that what *listings* hold.

    Args:
        owners: In the order of the definitions.
        listings: By source.
        diagnostics: Those of the result.
    """
    held = {
        source: {(one.kind, one.name): one for one in _definitions(listing)}
        for source, listing in listings.items()
    }
    definitions: list[ToolDefinition] = []
    digests: dict[str, str] = {}
    suspicions: dict[str, tuple[str, ...]] = {}
    for (kind, name), (source, original) in owners.items():
        definition = held.get(source, {}).get((kind, original))
        if definition is None:
            continue
        definitions.append(replace(definition, name=name))
        listing, key, own_key = listings[source], pin_key(kind, name), pin_key(kind, original)
        if own_key in listing.digests:
            digests[key] = listing.digests[own_key]
        if own_key in listing.suspicions:
            suspicions[key] = listing.suspicions[own_key]
    return Listing(
        tools=tuple(one for one in definitions if one.kind == "tool"),
        things=tuple(one for one in definitions if one.kind != "tool"),
        diagnostics=diagnostics,
        digests=digests,
        suspicions=suspicions,
    )


def _definitions(listing: Listing) -> Iterator[ToolDefinition]:
    yield from listing.tools
    yield from (one for one in listing.things if one.kind in _KINDS)


def _qualify(kind: Kind, source: str, original: str) -> str:
    return f"{source}+{original}" if kind == "resource" else f"{source}_{original}"


class CombinedSource:
    """Several sources behind one name: their tools, resources and prompts.

    What several have is qualified in all of them; a `Prefix` on each keeps names from depending on
    the others.

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
        self._names = MergedNames()

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

        A source that cannot be listed leaves a diagnostic, and its last listing stands in.

        Raises:
            UpstreamError: None of them could be listed.
            ClosedError: After `close`.
        """
        self._listings = await list_all(self._sources, self._listings)
        self._names = merge_names(self._listings)
        notes = (note for listing in self._listings.values() for note in listing.diagnostics)
        diagnostics = (*notes, *self._names.diagnostics)
        return merge_listings(self._names.owners, self._listings, diagnostics)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the tool of its owner; see `Source.call`."""
        owner = await self._find_owner("tool", tool)
        if owner is None:
            return unknown_tool(tool_id, tool)
        server, original = owner
        source = self._sources[server]
        result = await source.call(original, arguments, tool_id=tool_id)
        if not isinstance(source, ResourceSource):
            return result
        to_uri = partial(self._names.to_uri, server)
        content = (
            replace(block, data=rewrite_block_uri(block.data, to_uri)) for block in result.content
        )
        return replace(result, content=tuple(content))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the owner of the resource or prompt; see `ResourceSource.ask`."""
        kind, name = request_target(params)
        owner = await self._require_owner(kind, name)
        server, original = owner
        source = self._sources[server]
        if not isinstance(source, ResourceSource):
            raise InvalidRequestError(f"server {server!r} has no resources and no prompts")
        answer = await source.ask(method, retarget_request(params, original))
        return self._names.rewrite_uris(owner, name, answer)

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource of its owner; see `Watchable.watch`."""
        server, original = await self._require_owner("resource", uri)
        source = self._sources[server]
        if not isinstance(source, Watchable):
            raise InvalidRequestError(f"server {server!r} reports no changes of {original!r}")
        await source.watch(original, callbacks)

    async def close(self) -> None:
        """Close all of them, at once."""
        await asyncio.gather(*(attempt(source.close()) for source in self._sources.values()))

    async def _require_owner(self, kind: Kind, name: str) -> Owner:
        owner = await self._find_owner(kind, name)
        if owner is None:
            raise InvalidRequestError(
                f"server {self.server!r} has no {kind} {name!r}, or several sources may have it: "
                "list them"
            )
        return owner

    async def _find_owner(self, kind: Kind, name: str) -> Owner | None:
        owner = self._names.find_owner(kind, name)
        if owner is None:
            await self.list_tools()
            owner = self._names.find_owner(kind, name)
        return owner


async def list_all(
    sources: Mapping[str, Source], previous: Mapping[str, Listing]
) -> dict[str, Listing]:
    """List *sources* at once, by name.

    Args:
        sources: By name.
        previous: What they listed before: it stands in, with a diagnostic, for one that fails.

    Raises:
        UpstreamError: None of them could be listed.
        ClosedError: They are closed.
    """
    answers = await asyncio.gather(*(attempt(source.list_tools()) for source in sources.values()))
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise failures[0].error
    return {
        server: _fall_back(server, answer, previous) if isinstance(answer, Failed) else answer
        for server, answer in zip(sources, answers, strict=True)
    }


def _fall_back(server: str, failed: Failed, previous: Mapping[str, Listing]) -> Listing:
    reason = failed.reason
    detail = reason if server in reason else f"{server!r}: {reason}"
    note = Diagnostic(stage="catalog", code="source_load_failed", detail=detail)
    return replace(previous.get(server, Listing()), diagnostics=(note,))
