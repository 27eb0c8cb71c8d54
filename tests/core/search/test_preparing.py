"""Searches while the embedder's model is being prepared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.discovery import render
from gateway.embed import Embedded, EmbedderInfo, Role
from gateway.errors import EmbeddingError
from gateway.options import DiscoveryOptions, Options, SearchOptions
from gateway.testing import HashingEmbedder
from gateway.types import SearchResult
from tests.conftest import OpenGateway
from tests.fakes import codes, tool, until

TOOLS = (tool("get_weather", "Tell the weather."), tool("play_music", "Play a song."))


class ColdEmbedder:
    """An embedder whose model is ready once `ready` is set. If `failure` is set, its preparation
    fails.
    """

    def __init__(self, failure: Exception | None = None) -> None:
        self._real = HashingEmbedder()
        self._failure = failure
        self.ready = asyncio.Event()
        self.preparing = True
        self.preparations = 0

    @property
    def info(self) -> EmbedderInfo:
        return self._real.info

    async def prepare(self) -> None:
        self.preparations += 1
        if self._failure is None:
            await self.ready.wait()
        self.preparing = False
        if self._failure is not None:
            raise self._failure

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        await self.ready.wait()
        return await self._real.embed(texts, role=role)


def _options(first_search: str) -> Options:
    return Options(search=SearchOptions(first_search=first_search, query_timeout_s=0.05))  # type: ignore[arg-type]


def _text_for_model(result: SearchResult) -> str:
    return render(result, DiscoveryOptions())


async def test_search_reports_that_the_model_is_being_prepared(open_gateway: OpenGateway) -> None:
    """A program gets a diagnostic code, and a model gets a text. Later searches use vectors."""
    embedder = ColdEmbedder()
    gateway = open_gateway(TOOLS, strategy="auto", embedder=embedder, options=_options("words"))
    foreign, native = await gateway.search("погода"), await gateway.search("weather")

    for result in (foreign, native):
        assert "model_preparing" in codes(result)
        assert "embedding_failed" not in codes(result)
        assert "still preparing" in _text_for_model(result)
        assert "search again" in _text_for_model(result)
    assert ["shelf/get_weather"] == [match.id for match in native.matches]
    assert "No tool matches" not in _text_for_model(foreign)
    gateway.bridge.call(lambda: _set_ready(embedder))

    async def is_ready() -> bool:
        return "model_preparing" not in codes(await gateway.search("weather"))

    await until(is_ready)
    await gateway.report()
    ready = await gateway.search("weather")
    assert ("hybrid", 1) == (ready.mode, embedder.preparations)
    assert "preparing" not in _text_for_model(ready)


async def _set_ready(embedder: ColdEmbedder) -> None:
    embedder.ready.set()


async def test_search_does_not_wait_for_the_model_if_the_catalog_has_no_vectors(
    open_gateway: OpenGateway,
) -> None:
    """The model would have no vectors to compare. With vectors, a search waits 2 s for it."""
    tools = tuple(tool(f"get_weather_{number}", "Tell the weather.") for number in range(40))
    embedder = ColdEmbedder()
    gateway = open_gateway(tools, strategy="auto", embedder=embedder, options=_options("words"))
    async with asyncio.timeout(1.9):
        result = await gateway.search("weather")

    assert ("graph", True) == (result.mode, bool(result.matches))
    assert {"index_building", "model_preparing"} <= {*codes(result)}


async def test_search_stops_waiting_for_the_model_at_its_time_limit(
    open_gateway: OpenGateway,
) -> None:
    """Searches of models have a limit of 5 s by default."""
    gateway = open_gateway(TOOLS, strategy="auto", embedder=ColdEmbedder())

    result = await gateway.search("weather", wait=0.01)

    assert ["shelf/get_weather"] == [match.id for match in result.matches]
    assert {"index_building", "model_preparing"} <= {*codes(result)}


async def test_preparing_the_model_does_not_count_as_query_time(open_gateway: OpenGateway) -> None:
    """It takes longer than the timeout of queries, and the query is embedded afterwards."""
    embedder = ColdEmbedder()
    gateway = open_gateway(TOOLS, strategy="auto", embedder=embedder, options=_options("wait"))
    search = asyncio.create_task(gateway.search("weather"))
    done, _ = await asyncio.wait([search], timeout=0.3)
    assert not done
    gateway.bridge.call(lambda: _set_ready(embedder))

    result = await search

    assert ("hybrid", []) == (result.mode, codes(result))


async def test_search_reports_that_preparing_the_model_failed(open_gateway: OpenGateway) -> None:
    embedder = ColdEmbedder(EmbeddingError("the disk is full"))
    embedder.ready.set()
    gateway = open_gateway((), strategy="auto", embedder=embedder, options=_options("wait"))

    report = await gateway.report()

    assert ["embedding_failed"] == [note.code for note in report.diagnostics]
    assert "the disk is full" in report.diagnostics[0].detail
