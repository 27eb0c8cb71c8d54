"""Sources around sources. Whatever lists and calls like a source can be wrapped, wrappers too.

    Shaped(source, Filter(deny=("delete_*",)), Prefix("crm_"))
    Combined("office", [Shaped(word, Prefix("word_")), excel])

Nothing is connected or kept here: a wrapper costs its names.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.errors import ConfigError, Failed, InvalidRequestError, attempt
from gateway.types import Diagnostic, InvokeResult, JsonObject
from gateway.upstream.shapes import Shape, own_name, shown
from gateway.upstream.source import (
    Heard,
    Listing,
    Shelves,
    Source,
    Watchable,
    check_server_name,
    unknown_tool,
)


class Shaped:
    """Shows the tools of *source* as *shapes*, applied in their order, say."""

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
        """Ask the source, whose resources and prompts keep their names; see `Shelves.ask`."""
        if not isinstance(self._source, Shelves):
            raise InvalidRequestError(f"server {self.server!r} has no resources and no prompts")
        return await self._source.ask(method, params)

    async def watch(self, uri: str, heard: Heard) -> None:
        """Tell *heard* of changes of a resource of the source; see `Watchable.watch`."""
        if not isinstance(self._source, Watchable):
            raise InvalidRequestError(f"server {self.server!r} tells of no changes of {uri!r}")
        await self._source.watch(uri, heard)

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()


class Combined:
    """Several sources behind one name.

    A tool that several have is called ``source_tool``, in all of them, so that the order of the
    sources decides nothing; a `Prefix` on each keeps names from depending on the others.

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
        self._table: Mapping[str, tuple[str, str]] = {}
        """Source and its own name of the tool, by the name here."""

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

        A source that cannot be listed is told, and its tools are those of before.

        Raises:
            UpstreamError: None of them could be listed.
            ClosedError: After `close`.
        """
        self._listings = await parts(self._sources, self._listings)
        return self._joined()

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the tool of whoever has it; see `Source.call`."""
        if tool not in self._table:
            await self.list_tools()
        if tool not in self._table:
            return unknown_tool(tool_id, tool)
        server, own = self._table[tool]
        return await self._sources[server].call(own, arguments, tool_id=tool_id)

    async def close(self) -> None:
        """Close all of them, at once."""
        await asyncio.gather(*(attempt(source.close()) for source in self._sources.values()))

    def _joined(self) -> Listing:
        have = Counter(tool.name for each in self._listings.values() for tool in each.tools)
        table: dict[str, tuple[str, str]] = {}
        notes: list[Diagnostic] = []
        for server, listing in self._listings.items():
            notes += listing.diagnostics
            for own in (tool.name for tool in listing.tools):
                name = f"{server}_{own}" if have[own] > 1 else own
                if name in table:
                    detail = f"{server!r}: tool {own!r}: another one is called {name!r}"
                    notes.append(
                        Diagnostic(stage="catalog", code="tool_quarantined", detail=detail)
                    )
                else:
                    table[name] = server, own
        self._table = table
        return joined(table, self._listings, tuple(notes))


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


def joined(
    table: Mapping[str, tuple[str, str]],
    listings: Mapping[str, Listing],
    notes: tuple[Diagnostic, ...],
) -> Listing:
    """Give the tools of *table* (source and its own name, by name) that *listings* hold.

    Args:
        table: In the order of the tools.
        listings: By source.
        notes: The diagnostics.
    """
    tools = {
        server: {tool.name: tool for tool in listing.tools} for server, listing in listings.items()
    }
    found = {
        name: (listings[server], tools[server][own])
        for name, (server, own) in table.items()
        if own in tools.get(server, {})
    }
    return Listing(
        tools=tuple(replace(tool, name=name) for name, (_, tool) in found.items()),
        diagnostics=notes,
        digests={
            name: listing.digests[tool.name]
            for name, (listing, tool) in found.items()
            if tool.name in listing.digests
        },
        suspicions={
            name: listing.suspicions[tool.name]
            for name, (listing, tool) in found.items()
            if tool.name in listing.suspicions
        },
    )
