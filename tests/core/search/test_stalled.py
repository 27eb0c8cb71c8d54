"""Rule 5 for model services that hang: searches continue without them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from gateway.embed import Embedded, QueryEmbedder, QueryEmbeddings, Role
from gateway.errors import ClosedError, Failed
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.options.search import First
from gateway.runtime.cache import Cache, SingleFlight
from gateway.runtime.telemetry import Telemetry
from gateway.search import CachedNormalizer, ModelReply
from gateway.search.state import with_timeout
from gateway.testing import HashingEmbedder
from gateway.types import IndexReport, Listing
from tests.conftest import OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import Gate, Gated, ListSource, TableNormalizer, codes, names, tool, until

SHORT_TIMEOUT = Options(search=SearchOptions(query_timeout_s=0.01))
TIMEOUT_REASON = "it took longer than 0.01 s (SearchOptions.query_timeout_s)"
QUERY = "send an e-mail"


class GatedQueries(HashingEmbedder):
    """An embedder that embeds documents at once, but queries only once the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if role == "query":
            await self.gate.wait()
        return await super().embed(texts, role=role)


class HangsOnFiles(HashingEmbedder, TableNormalizer):
    """An embedder and normalizer that never answers if the text is about files."""

    def __init__(self) -> None:
        HashingEmbedder.__init__(self)
        TableNormalizer.__init__(self, {QUERY: "send email"})

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if role == "query" and any("file" in text for text in texts):
            await asyncio.Event().wait()
        return await super().embed(texts, role=role)

    async def rewrite(self, query: str) -> ModelReply:
        if "file" in query:
            await asyncio.Event().wait()
        return await super().rewrite(query)


class GatedSource(ListSource):
    """A source that returns its listing once the gate is open."""

    def __init__(self) -> None:
        super().__init__("late", [tool("water_plants", "Water the plants.")])
        self.gate = Gate()

    async def list_tools(self) -> Listing:
        await self.gate.wait()
        return await super().list_tools()


class SilentNormalizer(TableNormalizer):
    """A normalizer that never answers."""

    async def rewrite(self, query: str) -> ModelReply:
        self.asked.append(query)
        await asyncio.Event().wait()
        return ModelReply(text="")


@pytest.mark.requirement("auto:rule-5")
@pytest.mark.parametrize("strategy", ["auto", "embeddings"])
async def test_hanging_embedder_falls_back_to_the_graph(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str
) -> None:
    """The result is not cached, and searches use vectors again after the embedder recovers."""
    embedder = GatedQueries()
    gateway = open_gateway(catalog, strategy=strategy, embedder=embedder, options=SHORT_TIMEOUT)
    await gateway.report()
    by_graph = await open_gateway(catalog).search(QUERY)

    degraded = await gateway.search(QUERY)
    embedder.gate.set()

    async def has_recovered() -> bool:
        return (await gateway.search(QUERY)).mode in {"hybrid", "vector"}

    await until(has_recovered)

    assert ("graph", ["embedding_failed", "graph_fallback"]) == (degraded.mode, codes(degraded)[:2])
    assert TIMEOUT_REASON == degraded.diagnostics[0].detail
    assert names(by_graph) == names(degraded)


@pytest.mark.requirement("auto:rule-5")
async def test_hanging_normalizer_leaves_the_queries_unchanged(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """All queries of one search share one timeout."""
    gateway = open_gateway(catalog, normalizer=SilentNormalizer(), options=SHORT_TIMEOUT)
    queries = (QUERY, "read a file")

    result = await gateway.search(queries=queries)

    failed = [note for note in result.diagnostics if note.code == "query_normalization_failed"]
    assert [TIMEOUT_REASON, TIMEOUT_REASON] == [note.detail for note in failed]
    assert queries == result.normalized
    assert "send_email" == names(result)[0]


@pytest.mark.requirement("auto:rule-5")
async def test_query_whose_embedding_hangs_does_not_affect_other_queries(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Each query of a search is rewritten and embedded separately. The graph ranks the hanging
    one.
    """
    model, options = HangsOnFiles(), Options(search=SearchOptions(query_timeout_s=0.5))
    gateway = open_gateway(
        catalog, strategy="auto", embedder=model, normalizer=model, options=options
    )
    await gateway.report()

    result = await gateway.search(queries=(QUERY, "translate a text file"))

    first, second = result.matches[:2]
    assert ["query_normalization_failed", "query_normalized"] == codes(result)[:2]
    assert ["embedding_failed", "graph_fallback"] == codes(result)[2:4]
    assert ("hybrid", ("send email", "translate a text file")) == (result.mode, result.normalized)
    assert ("send_email", "translate_text") == (first.name, second.name)
    assert first.evidence.vector is not None
    assert second.evidence.vector is None


@pytest.mark.requirement("auto:rule-5")
async def test_hanging_embedder_is_skipped_until_it_answers(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Searches do not wait for it, and a diagnostic says why. A background request notices its
    return.
    """
    embedder = GatedQueries()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=SHORT_TIMEOUT)
    await gateway.report()
    details = []

    async def is_skipped() -> bool:
        result = await gateway.search(QUERY)
        details.append(result.diagnostics[0].detail)
        return "skipped" in details[-1]

    await until(is_skipped)
    embedder.gate.set()

    async def has_recovered() -> bool:
        return (await gateway.search(QUERY)).mode == "hybrid"

    await until(has_recovered)

    assert len(details) > 3
    assert details[-1].startswith("the embedder was skipped: it did not answer 3 times in a row")


@pytest.mark.requirement("auto:rule-5")
async def test_hanging_normalizer_is_skipped_by_later_searches(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """They use the original query and do not wait."""
    gateway = open_gateway(catalog, normalizer=SilentNormalizer(), options=SHORT_TIMEOUT)
    details = []

    async def is_skipped() -> bool:
        result = await gateway.search(QUERY)
        details.append((result.diagnostics[0].code, result.diagnostics[0].detail))
        return "skipped" in details[-1][1]

    await until(is_skipped)

    assert len(details) > 3
    assert "query_normalization_failed" == details[-1][0]
    assert "the normalizer was skipped" in details[-1][1]


async def test_next_steps_use_words_of_the_task_if_the_embedder_hangs(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    gateway = open_gateway(catalog, strategy="auto", embedder=GatedQueries(), options=SHORT_TIMEOUT)
    await gateway.report()

    steps = await gateway.next_steps(["send_email"], query="read the file")

    failing = HashingEmbedder()
    other = open_gateway(catalog, strategy="auto", embedder=failing)
    await other.report()
    failing.fail_with = OSError()
    by_words = await other.next_steps(["send_email"], query="read the file")
    assert [step.id for step in by_words] == [step.id for step in steps]


def read_mail() -> str:
    """Read the newest mail of the harbour."""
    return "read"


@pytest.mark.requirement("auto:rule-5")
@pytest.mark.parametrize("strategy", ["auto", "embeddings"])
@pytest.mark.parametrize("first", ["wait", "words"])
async def test_calls_and_lists_do_not_wait_for_vectors(
    open_gateway: OpenGateway, catalog: Catalog, strategy: str, first: First
) -> None:
    """A search waits for vectors meanwhile, because the catalog is new or has a new tool."""
    embedder = Gated()
    options = Options(search=SearchOptions(query_timeout_s=120, first_search=first))
    gateway = open_gateway(catalog, strategy=strategy, embedder=embedder, options=options)
    searching = asyncio.ensure_future(gateway.search(QUERY))
    await embedder.gate.reached.wait()

    listed = await gateway.list_tools()
    gateway.add_tool(read_mail)
    called = await gateway.invoke("read_mail")
    old = await gateway.invoke("send_email")
    steps = await gateway.next_steps(["read_email"])
    browsed = await gateway.search("")
    embedder.gate.set()
    result = await searching
    report = await gateway.report()

    assert (12, "read", "called send_email") == (len(listed), called.text, old.text)
    assert steps
    assert ("browse", 5) == (browsed.mode, len(browsed.matches))
    assert result.mode in {"hybrid", "vector"}
    assert (13, ()) == (report.vectors, report.diagnostics)


async def start_build(
    open_gateway: OpenGateway, catalog: Catalog
) -> tuple[Gated, Gateway, asyncio.Future[IndexReport]]:
    """Return the embedder that holds up a build, its gateway, and a task that waits for the
    build.
    """
    embedder = Gated()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    reporting = asyncio.ensure_future(gateway.report())
    await embedder.gate.reached.wait()
    return embedder, gateway, reporting


async def test_search_uses_a_build_whose_texts_are_still_being_embedded(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """It does not start another build. The vectors are added to this one later."""
    embedder, gateway, reporting = await start_build(open_gateway, catalog)

    await gateway.list_tools()
    builds = gateway.index_builds
    embedder.gate.set()
    report = await reporting

    assert (1, 1) == (builds, gateway.index_builds)
    assert (12, 1, embedder.texts) == (report.vectors, embedder.asked, report.embedded_texts)


async def test_search_stops_waiting_for_vectors_that_do_not_arrive(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Words rank, with a diagnostic. The next search does not wait again, even after a tool was
    added.
    """
    embedder = Gated()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=SHORT_TIMEOUT)

    first = await gateway.search(QUERY)
    gateway.add_tool(read_mail)
    result = await gateway.search("read the newest mail of the harbour")
    embedder.gate.set()

    async def has_recovered() -> bool:
        return (await gateway.search(QUERY)).mode == "hybrid"

    await until(has_recovered)

    assert ("graph", ["index_building", "graph_fallback"]) == (first.mode, codes(first)[:2])
    assert "send_email" == names(first)[0]
    assert ("read_mail", "index_building") == (names(result)[0], codes(result)[0])


async def test_search_waits_for_a_slow_listing_of_a_source(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """A listing has its own timeout, and vectors cannot exist before it."""
    late = GatedSource()
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), options=SHORT_TIMEOUT
    )
    gateway.add_source(late)
    searching = asyncio.ensure_future(gateway.search(QUERY))
    await late.gate.reached.wait()
    await with_timeout(asyncio.Event().wait(), 0.2)
    waited = not searching.done()
    late.gate.set()

    assert waited
    assert "water_plants" in {tool.name for tool in (await gateway.list_tools())}
    assert names(await searching)


async def test_closing_the_gateway_ends_a_build_that_waits(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    _, gateway, reporting = await start_build(open_gateway, catalog)

    await gateway.aclose()

    with pytest.raises(ClosedError):
        await reporting


def _submit(work: Callable[[], Coroutine[None, None, QueryEmbeddings]]) -> Future[QueryEmbeddings]:
    return asyncio.run_coroutine_threadsafe(work(), asyncio.get_running_loop())


async def test_timeout_of_one_search_does_not_cancel_a_shared_embedding() -> None:
    """Equal queries share one request to the embedder, but each search has its own timeout."""
    embedder, share = GatedQueries(), SingleFlight[QueryEmbeddings](_submit).run
    embed = QueryEmbedder(embedder=embedder, cache=_cache(), share=share, telemetry=Telemetry())
    waiting = asyncio.ensure_future(embed([QUERY], dimensions=None))
    await embedder.gate.reached.wait()

    hasty = await with_timeout(embed([QUERY], dimensions=None), 0.01)
    embedder.gate.set()
    embeddings = await waiting

    assert isinstance(hasty, Failed)
    assert TIMEOUT_REASON == hasty.reason
    assert (1, 1) == (embeddings.embedded, embedder.calls)


async def test_embedding_request_without_an_answer_ends_at_last() -> None:
    """Equal queries share it, so it would block all later callers if it never ended."""
    embed = QueryEmbedder(
        embedder=GatedQueries(),
        cache=_cache(),
        share=SingleFlight[QueryEmbeddings](_submit).run,
        telemetry=Telemetry(),
        timeout_s=0.01,
    )
    normalize = CachedNormalizer(
        normalizer=SilentNormalizer(),
        cache=_cache(),
        share=SingleFlight[tuple[str, ...]](
            lambda work: asyncio.run_coroutine_threadsafe(work(), asyncio.get_running_loop())
        ).run,
        telemetry=Telemetry(),
        timeout_s=0.01,
    )

    with pytest.raises(TimeoutError):
        await embed([QUERY], dimensions=None)
    with pytest.raises(TimeoutError):
        await normalize(QUERY)


async def test_cancelled_wait_with_a_timeout_raises_cancelled_error() -> None:
    gate = Gate()
    searching = asyncio.ensure_future(with_timeout(gate.wait(), 1000))
    await gate.reached.wait()

    searching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await searching


def _cache() -> Cache[Any]:
    return Cache("any", max_items=8, ttl_s=1000)
