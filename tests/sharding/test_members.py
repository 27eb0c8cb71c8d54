"""Parts that do not answer, change under way or come late."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway import Gateway
from gateway.embed.cache import MemoryVectorStore
from gateway.errors import GatewayError
from gateway.index.statistics import CatalogStatistics
from gateway.sharding.gateway_part import GatewayPart
from gateway.sharding.sharded_search import ShardedSearch
from gateway.sharding.values import DetailsAnswer, DetailsRequest, SurveyAnswer, SurveyRequest
from gateway.types import SearchResult
from tests.fakes import ListSource, codes, tool, until


class FragilePart(GatewayPart):
    """A part that a test takes away."""

    down = False
    lost_after_survey = False

    async def statistics(self) -> CatalogStatistics:
        self._check()
        return await super().statistics()

    async def survey(self, request: SurveyRequest) -> SurveyAnswer:
        self._check()
        answer = await super().survey(request)
        self.down = self.lost_after_survey
        return answer

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        self._check()
        return await super().details(request)

    def _check(self) -> None:
        if self.down:
            raise GatewayError("the machine is off")


class House:
    """Two parts, a clock, and a search over both."""

    def __init__(self) -> None:
        self.now = 0.0
        self.gateways = [self._gateway("kitchen", "brew"), self._gateway("garden", "water")]
        self.parts = [
            FragilePart(each, name=f"part {number}") for number, each in enumerate(self.gateways)
        ]
        self.sharded = ShardedSearch(
            self.parts, strategy="graph", retry_s=30, clock=lambda: self.now
        )

    @staticmethod
    def _gateway(place: str, verb: str) -> Gateway:
        gateway = Gateway(vector_store=MemoryVectorStore())
        tools = [tool(f"{verb}_{thing}", f"{verb} {thing} today") for thing in ("tea", "roses")]
        gateway.add_source(ListSource(place, tools))
        return gateway

    async def search(self, query: str = "tea and roses today") -> SearchResult:
        return await self.sharded.search(query)

    async def close(self) -> None:
        await self.sharded.aclose()
        for gateway in self.gateways:
            await gateway.aclose()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    await made.close()


def servers(result: SearchResult) -> set[str]:
    return {match.server for match in result.matches}


async def test_the_rest_answers_for_a_part_that_is_down(house: House) -> None:
    """A diagnostic names it and why; scores of the others stay, since the counts stay."""
    before = await house.search()
    house.parts[1].down = True

    after = await house.search()

    notes = [note.detail for note in after.diagnostics if note.code == "part_unavailable"]
    assert ["part 1: the machine is off"] == notes
    assert after.degraded
    assert {"kitchen", "garden"} == servers(before)
    assert {"kitchen"} == servers(after)
    kept = [match for match in before.matches if match.server == "kitchen"]
    assert [match.score for match in kept] == [match.score for match in after.matches]


async def test_a_part_that_is_back_answers_after_a_while(house: House) -> None:
    """It is not asked before: a machine that hangs would delay every search."""
    await house.search()
    house.parts[1].down = True
    await house.search()
    house.parts[1].down = False

    early = await house.search()
    house.now = 31.0
    late = await house.search()

    assert {"kitchen"} == servers(early)
    assert {"kitchen", "garden"} == servers(late)
    assert "part_unavailable" not in codes(late)


async def test_a_part_that_is_lost_under_way_makes_the_search_begin_anew(house: House) -> None:
    await house.search()
    house.parts[1].lost_after_survey = True

    result = await house.search()

    assert {"kitchen"} == servers(result)
    assert "part_unavailable" in codes(result)


async def test_a_part_that_was_down_at_first_is_counted_later(house: House) -> None:
    """In the background: no search waits for it."""
    house.parts[0].down = True
    first = await house.search()
    house.parts[0].down = False
    house.now = 31.0

    async def is_whole() -> bool:
        return servers(await house.search()) == {"kitchen", "garden"}

    assert {"garden"} == servers(first)
    await until(is_whole)
    assert "part_unavailable" not in codes(await house.search())


async def test_without_any_part_nothing_is_found_and_said_why(house: House) -> None:
    for part in house.parts:
        part.down = True

    result = await house.search()

    assert "empty" == result.mode
    assert ["part_unavailable"] * 2 == codes(result)
