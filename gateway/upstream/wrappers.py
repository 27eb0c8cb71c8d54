"""Sources around sources. Whatever lists and calls like a source can be wrapped, wrappers too.

    Shaped(source, Filter(deny=("delete_*",)), Prefix("crm_"))
    Combined("office", [Shaped(word, Prefix("word_")), excel])

Nothing is connected or kept here: a wrapper costs its names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind
from gateway.upstream.named import addressed, asked_as, asked_of
from gateway.upstream.several import Names, Owner, joined, named
from gateway.upstream.shapes import own_name, shown
from gateway.upstream.source import (
    Listing,
    ResourceSource,
    Shape,
    Source,
    Watchable,
    WatchCallbacks,
    check_server_name,
    unknown_tool,
)


class Shaped:
    """Shows what *source* has as *shapes*, applied in their order, say."""

    def __init__(self, source: Source, *shapes: Shape) -> None:
        self._source = source
        self._shapes = shapes

    @property
    def server(self) -> str:
        """The name of the source."""
        return self._source.server

    @property
    def trusted(self) -> bool:
        """Whether the host wrote the definitions, but for what the shapes say."""
        return self._source.trusted

    async def list_tools(self) -> Listing:
        """Give what is shown; see `Source.list_tools`."""
        return shown(await self._source.list_tools(), self._shapes, server=self.server)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what is shown as *tool*; see `Source.call`."""
        own = own_name(tool, self._shapes)
        if own is None:
            return unknown_tool(tool_id, tool)
        return await self._source.call(own, arguments, tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the source for a resource or prompt that is shown; see `ResourceSource.ask`."""
        if not isinstance(self._source, ResourceSource):
            raise InvalidRequestError(f"server {self.server!r} has no resources and no prompts")
        own = self.own(*asked_of(params))
        return await self._source.ask(method, asked_as(params, own))

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of a resource that is shown; see `Watchable.watch`."""
        if not isinstance(self._source, Watchable):
            raise InvalidRequestError(f"server {self.server!r} tells of no changes of {uri!r}")
        await self._source.watch(self.own("resource", uri), heard)

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()

    @property
    def below(self) -> Source:
        """The source itself, under whose own names everything is there."""
        return self._source

    def own(self, kind: Kind, name: str) -> str:
        """Give the source's own name of what is shown as *name*.

        Raises:
            InvalidRequestError: Nothing is.
        """
        own = own_name(name, self._shapes, kind=kind)
        if own is None:
            raise InvalidRequestError(f"server {self.server!r} shows no {kind} {name!r}: list them")
        return own


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
