"""Combination of several sources under one server name, with unique names.

    CombinedSource("office", [TransformedSource(word, Prefix("word_")), excel])

A name in several sources becomes ``source_name`` in all of them, so that their order has no effect.
A URI becomes ``source+URI``, which can be read unlisted, because results of tools may link to it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.runtime.naming import (
    canonical_uri,
    check_server_name,
    matches_template,
    request_target,
    retarget_request,
    rewrite_block_uri,
    rewrite_uri,
)
from gateway.sources.protocol import (
    ResourceSource,
    Source,
    load_failed,
    resources_of,
    unknown_tool,
    watchable,
)
from gateway.sources.transforms import Key, Owner, select
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind
from gateway.types.listing import Listing, WatchCallbacks

_KINDS: frozenset[Kind] = frozenset({"tool", "prompt", "resource"})


class CombinedSource:
    """Tools, resources and prompts of several sources under one server name.

    A `Prefix` on each source makes its names independent of the other sources.

    Raises:
        ConfigError: If *sources* is empty, or two sources have the same name.
    """

    def __init__(self, server: str, sources: Sequence[Source]) -> None:
        self.server = check_server_name(server)
        self._sources = {source.server: source for source in sources}
        if not sources or len(self._sources) < len(sources):
            raise ConfigError(f"{server!r}: combine one or more sources with different names")
        self._listings: Mapping[str, Listing] = {}
        self._owners: Mapping[Key, Owner] = {}

    @property
    def trusted(self) -> bool:
        """True if the host wrote the definitions of all sources."""
        return all(source.trusted for source in self._sources.values())

    async def list_tools(self) -> Listing:
        """List all sources in parallel. See `list_all`."""
        self._listings = await list_all(self._sources, self._listings)
        self._owners, clashes = _merge_names(self._listings)
        notes = (note for listing in self._listings.values() for note in listing.diagnostics)
        return replace(select(self._listings, self._owners), diagnostics=(*notes, *clashes))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the tool on its source. See `Source.call`."""
        try:
            server, original = await self._find_owner("tool", tool)
        except InvalidRequestError:
            return unknown_tool(tool_id, tool)
        source = self._sources[server]
        result = await source.call(original, arguments, tool_id=tool_id)
        if not isinstance(source, ResourceSource):
            return result
        to_uri = partial(self._to_uri, server)
        content = (
            replace(block, data=rewrite_block_uri(block.data, to_uri)) for block in result.content
        )
        return replace(result, content=tuple(content))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the source of the resource or prompt. See `ResourceSource.ask`."""
        kind, name = request_target(params)
        owner = server, original = await self._find_owner(kind, name)
        source = resources_of(self._sources[server], server)
        answer = await source.ask(method, retarget_request(params, original))
        return self._rewrite_uris(owner, name, answer)

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """See `Watchable.watch`."""
        server, original = await self._find_owner("resource", uri)
        source = watchable(self._sources[server], server, original)
        await source.watch(original, callbacks)

    async def close(self) -> None:
        """Close all sources in parallel."""
        await asyncio.gather(*(attempt(source.close()) for source in self._sources.values()))

    async def _find_owner(self, kind: Kind, name: str) -> Owner:
        """Return the source that owns *name*, and the source's own name of the item.

        Raises:
            InvalidRequestError: If no source has the item, or several may have it.
        """
        owner = self._find_listed(kind, name)
        if owner is None:
            await self.list_tools()
            owner = self._find_listed(kind, name)
        if owner is None:
            raise InvalidRequestError(
                f"server {self.server!r} has no {kind} {name!r}, or several sources may have it: "
                "list them"
            )
        return owner

    def _find_listed(self, kind: Kind, name: str) -> Owner | None:
        owner = self._owners.get((kind, name))
        if owner is not None or kind != "resource":
            return owner
        for source in self._listings:
            if name.startswith(f"{source}+"):
                original = name.removeprefix(f"{source}+")
                # A listed resource has only its listed name, because the host's rules use this
                # name.
                canonical = canonical_uri(original)
                is_listed = any(
                    key == ("resource", uri) and owner == source and canonical_uri(uri) == canonical
                    for key, (owner, uri) in self._owners.items()
                )
                return None if is_listed else (source, original)
        sources = {
            source
            for (kind, template), (source, _) in self._owners.items()
            if kind == "resource" and matches_template(template, name)
        }
        return (sources.pop(), name) if len(sources) == 1 else None

    def _to_uri(self, source: str, original: str) -> str:
        for (kind, name), owner in self._owners.items():
            if kind == "resource" and owner == (source, original):
                return name
        return f"{source}+{original}"

    def _rewrite_uris(self, owner: Owner, name: str, answer: JsonObject) -> JsonObject:
        """Return the *answer* of *owner* to a request for *name*, with the combination's URIs."""
        source, original = owner

        def rewrite(uri: str) -> str:
            return name if uri == original else self._to_uri(source, uri)

        def rewrite_item(item: object) -> object:
            if not isinstance(item, dict):
                return item
            block = item.get("content")
            if isinstance(block, dict):
                return {**item, "content": rewrite_block_uri(block, rewrite)}
            # The requested item keeps its URI, even if it is a web address.
            is_target = item.get("uri") == original
            return {**item, "uri": name} if is_target else rewrite_uri(item, rewrite)

        return {
            key: [rewrite_item(item) for item in value]
            if key in {"contents", "messages"} and isinstance(value, list)
            else value
            for key, value in answer.items()
        }


def _merge_names(
    listings: Mapping[str, Listing],
) -> tuple[dict[Key, Owner], tuple[Diagnostic, ...]]:
    offers = [
        (item.kind, source, item.name)
        for source, listing in listings.items()
        for item in listing.definitions
        if item.kind in _KINDS
    ]
    counts = Counter((kind, name) for kind, _, name in offers)
    owners: dict[Key, Owner] = {}
    notes: list[Diagnostic] = []
    for kind, source, original in offers:
        joint = "+" if kind == "resource" else "_"
        name = original if counts[kind, original] == 1 else f"{source}{joint}{original}"
        if (kind, name) in owners:
            detail = f"{source!r}: {kind} {original!r}: the name {name!r} is already used"
            notes.append(Diagnostic(stage="catalog", code="tool_quarantined", detail=detail))
        else:
            owners[kind, name] = source, original
    return owners, tuple(notes)


async def list_all(
    sources: Mapping[str, Source], previous: Mapping[str, Listing]
) -> dict[str, Listing]:
    """List *sources* in parallel; return their listings, keyed by source name.

    If a source fails, its *previous* listing is used, with a diagnostic.

    Raises:
        UpstreamError: If all sources failed.
        ClosedError: If the sources are closed.
    """
    answers = await asyncio.gather(*(attempt(source.list_tools()) for source in sources.values()))
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise failures[0].error
    return {
        server: load_failed(server, answer, previous.get(server))
        if isinstance(answer, Failed)
        else answer
        for server, answer in zip(sources, answers, strict=True)
    }
