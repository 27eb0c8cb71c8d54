"""Ranks servers that are not in the catalog, by the very search that ranks the catalog.

A catalog of their names and descriptions is made for the occasion and searched with the gateway's
own strategy and embedder, so that a confidence here means what it means there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.embed.protocol import Embedded, Embedder, EmbedderInfo, Role
from gateway.gateway import Gateway
from gateway.options import Options
from gateway.provision.entries import Entry
from gateway.runtime.background_loop import Bridge
from gateway.types import InvokeResult, JsonObject, Match, Strategy, ToolDefinition
from gateway.types.listing import Listing

_SHELF = "mcp-server"
"""Every entry carries these words, so that they tell none from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An entry and how likely it is what was asked for."""

    entry: Entry
    confidence: float
    """Calibrated, 0 to 1, as that of a match."""


async def rank(
    gateway: Gateway, entries: Sequence[Entry], intent: str, *, limit: int, max_ranked: int
) -> tuple[Ranked, ...]:
    """Find up to *limit* of *entries* for *intent*, best first; none if none is likely to serve.

    Args:
        gateway: Whose strategy and embedder rank.
        entries: In any order; ties go by name.
        intent: What is wanted.
        limit: How many.
        max_ranked: Of more entries, words alone choose so many first: embedding a whole registry
            would take minutes.
    """
    chosen = tuple(entries)
    embedder = gateway.embedder if gateway.strategy != "graph" else None
    if embedder is not None and len(chosen) > max_ranked:
        options = _wide(gateway.options, max_ranked)
        found = await _found(chosen, intent, options, limit=max_ranked)
        chosen = tuple(each.entry for each in found)
    return await _found(
        chosen,
        intent,
        _wide(gateway.options, limit),
        limit=limit,
        strategy=gateway.strategy,
        embedder=embedder and Borrowed(embedder, gateway.bridge),
    )


def _wide(options: Options, limit: int) -> Options:
    search = options.search
    return replace(options, search=replace(search, max_limit=max(search.max_limit, limit)))


async def _found(
    entries: Sequence[Entry],
    intent: str,
    options: Options,
    *,
    limit: int,
    strategy: Strategy = "graph",
    embedder: Embedder | None = None,
) -> tuple[Ranked, ...]:
    shelf = _Shelf(entries)
    async with Gateway(strategy=strategy, embedder=embedder, options=options) as catalog:
        catalog.add_source(shelf)
        result = await catalog.search(intent, limit=limit)
    return tuple(shelf.ranked(match) for match in result.matches)


class Borrowed:
    """Another gateway's embedder: its connections belong to that gateway's loop, so it runs there.

    Args:
        embedder: Theirs.
        bridge: Their loop.
    """

    def __init__(self, embedder: Embedder, bridge: Bridge) -> None:
        self._embedder = embedder
        self._bridge = bridge

    @property
    def info(self) -> EmbedderInfo:
        """See `Embedder.info`."""
        return self._embedder.info

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """See `Embedder.embed`."""
        return await self._bridge.run(lambda: self._embed(texts, role))

    async def _embed(self, texts: Sequence[str], role: Role) -> Embedded:
        return await self._embedder.embed(texts, role=role)


class _Shelf:
    """The entries as a source of tools, which nobody calls."""

    server = _SHELF
    trusted = False

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._by_name: dict[str, Entry] = {}
        for entry in sorted(entries, key=lambda each: each.name):
            # Two publishers may call theirs alike; the second one says whose it is.
            name = entry.short if entry.short not in self._by_name else entry.name
            self._by_name[name] = entry

    def ranked(self, match: Match) -> Ranked:
        entry = self._by_name[match.id.removeprefix(f"{_SHELF}/")]
        return Ranked(entry=entry, confidence=match.confidence)

    async def list_tools(self) -> Listing:
        return Listing(
            tools=tuple(
                ToolDefinition(
                    name=name,
                    title=entry.title,
                    description=entry.description,
                    input_schema={"type": "object"},
                )
                for name, entry in self._by_name.items()
            )
        )

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        raise AssertionError(tool, arguments, tool_id)

    async def close(self) -> None:
        """Nothing is held."""
