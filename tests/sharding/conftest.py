"""A catalog in one gateway, and the same in several parts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from gateway import Gateway
from gateway.embed.cache import MemoryVectorStore
from gateway.manifests.manifest import part_of
from gateway.options import AccessPolicy, CatalogOptions, Options
from gateway.sharding.gateway_part import GatewayPart
from gateway.sharding.sharded_search import ShardedSearch
from gateway.testing import HashingEmbedder
from gateway.types import Access, Hints, SearchResult, Strategy, ToolDefinition
from tests.fakes import ListSource, definitions

T = TypeVar("T")
PARTS = 4
_TAGS = ("billing", "people", "field-work")
_POLICIES = (AccessPolicy(action="deny", users=("guest",), tools=("*/*_invoice*", "*/create_*")),)
_RULES = {"*/urgent_*": Access(scopes=frozenset({"admin"})), "*/draft_*": Access(enabled=False)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedCatalog:
    """One catalog, whole and in parts, and the loop that it is searched on."""

    whole: Gateway
    parts: Sequence[Gateway]
    sharded: ShardedSearch
    runner: asyncio.Runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* on the loop."""
        return self.runner.run(work)

    def both(self, *arguments: Any, **options: Any) -> tuple[SearchResult, SearchResult]:
        """Search both ways."""
        whole = self.run(self.whole.search(*arguments, **options))
        return whole, self.run(self.sharded.search(*arguments, **options))


def servers(seed: int) -> list[ListSource]:
    """Make servers of one to forty tools; some tools are copies, some have tags."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    tools = [_tagged(each, chance) for each in chance.sample(definitions(400), 220)]
    copies = [replace(each, name=f"{each.name}_again") for each in tools[:12]]
    # The last ones have names that tools of other servers have.
    tools = [*tools, *copies, *tools[12:40]]
    found: list[ListSource] = []
    while tools:
        size = chance.choice([1, 2, 3, 8, 20, 40])
        found.append(ListSource(f"server{len(found)}", tools[:size], trusted=chance.random() < 0.5))
        tools = tools[size:]
    return found


def _tagged(tool: ToolDefinition, chance: random.Random) -> ToolDefinition:
    tags = tuple(tag for tag in _TAGS if chance.random() < 0.2)
    return replace(tool, hints=Hints(tags=tags))


def open_sharded(strategy: Strategy, sources: Sequence[ListSource]) -> Iterator[ShardedCatalog]:
    """Put *sources* into one gateway, and each into its part of another catalog."""

    def gateway(own: Sequence[ListSource]) -> Gateway:
        made = Gateway(
            strategy=strategy,
            embedder=None if strategy == "graph" else HashingEmbedder(48),
            vector_store=MemoryVectorStore(),
            options=Options(catalog=CatalogOptions(rules=_RULES), policies=_POLICIES),
        )
        for source in own:
            made.add_source(ListSource(source.server, source.tools, trusted=source.trusted))
        return made

    by_part = [[each for each in sources if part_of(each.server, PARTS) == n] for n in range(PARTS)]
    parts = [gateway(own) for own in by_part]
    sharded = ShardedSearch(
        [GatewayPart(each, name=f"part {number}") for number, each in enumerate(parts)],
        strategy=strategy,
        embedder=None if strategy == "graph" else HashingEmbedder(48),
    )
    whole = gateway(sources)
    with asyncio.Runner() as runner:
        yield ShardedCatalog(whole=whole, parts=parts, sharded=sharded, runner=runner)
        runner.run(sharded.aclose())
    for each in (whole, *parts):
        each.close()


@pytest.fixture(scope="module", params=["auto", "embeddings", "graph"])
def catalog(request: pytest.FixtureRequest) -> Iterator[ShardedCatalog]:
    """A catalog for each strategy, of other servers each."""
    yield from open_sharded(request.param, servers(len(request.param)))
