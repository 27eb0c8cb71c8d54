"""Caching of results, query embeddings and rewrites."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.gateway import Gateway
from gateway.options import CacheOptions, Options
from gateway.search import Caches
from gateway.sync import SyncGateway
from gateway.testing import HashingEmbedder, ManualClock
from gateway.types import Filters, SearchResult
from tests.conftest import OpenGateway
from tests.core.search.conftest import Catalog
from tests.fakes import ListSource, TableNormalizer, names, tool, until

QUERY = "send an e-mail"


async def test_two_hundred_equal_searches_make_one_embedding_call(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    """All searches run at once on one loop, before the index is built."""

    results = await asyncio.gather(*(gateway.search(QUERY) for _ in range(200)))

    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 2 == embedder.calls
    assert 1 == gateway.index_builds
    assert 1 == len({tuple(names(result)) for result in results})


def test_two_hundred_equal_searches_from_threads_make_one_embedding_call(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    embedder = HashingEmbedder()
    gateway = SyncGateway(open_gateway(catalog, strategy="auto", embedder=embedder))
    start = threading.Barrier(20)

    def ask(number: int) -> SearchResult:
        if number < 20:
            start.wait(10)
        return gateway.search(QUERY)

    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(ask, range(200)))

    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 1 == len({tuple(names(result)) for result in results})


async def test_cached_result_is_equal_and_marked_as_cached(gateway: Gateway) -> None:

    fresh = await gateway.search(QUERY)
    cached = await gateway.search(f"  {QUERY}\u200b ")

    assert fresh == cached
    assert (False, True) == (fresh.cached, cached.cached)


async def test_each_argument_of_a_search_is_part_of_the_cache_key(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    gateway = open_gateway(catalog)
    await gateway.search(QUERY, limit=50)

    others = [
        await gateway.search(QUERY, limit=2),
        await gateway.search(QUERY, limit=51),
        await gateway.search(QUERY, limit=50, filters=Filters(servers=frozenset({"x"}))),
        await gateway.search(QUERY, limit=50, context={"a": 1}),
        await gateway.search(queries=[QUERY, "b"], limit=50),
        await gateway.search(QUERY, limit=50, diversify=True),
        await gateway.search(QUERY, limit=50, display_limit=1),
    ]

    assert not any(other.cached for other in others)


@pytest.mark.parametrize(
    ("seconds", "embedded", "rewritten"), [(299, 1, 1), (301, 1, 1), (901, 2, 1), (1801, 2, 2)]
)
async def test_each_cache_has_its_own_absolute_lifetime(
    open_gateway: OpenGateway, catalog: Catalog, seconds: int, embedded: int, rewritten: int
) -> None:
    """Results stay five minutes, query embeddings fifteen, rewrites thirty, even if they are
    used.
    """
    clock, embedder = ManualClock(), HashingEmbedder()
    normalizer = TableNormalizer({QUERY: "send email"})
    gateway = open_gateway(
        catalog, strategy="auto", embedder=embedder, normalizer=normalizer, clock=clock
    )
    await gateway.search(QUERY)
    clock.tick(seconds)

    again = await gateway.search(QUERY)

    assert (seconds < 300) == again.cached
    assert embedded == sum(QUERY in batch for batch in embedder.batches)
    assert rewritten == len(normalizer.asked)


async def test_catalog_change_invalidates_cached_results_but_not_query_embeddings(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    await gateway.search(QUERY)

    def send_an_email() -> str:
        """Send an e-mail."""
        return ""

    gateway.add_tool(send_an_email)
    result = await gateway.search(QUERY)

    assert not result.cached
    assert "send_an_email" in names(result)
    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 0 == result.counts.embedded_texts


async def test_gateways_with_shared_caches_do_not_share_results(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Their catalogs differ, but have equal generation numbers. Rewrites and embeddings are
    shared.
    """
    caches, embedder = Caches.of(CacheOptions()), HashingEmbedder()
    normalizer = TableNormalizer({QUERY: "send email"})
    options = {
        "strategy": "auto", "embedder": embedder, "caches": caches, "normalizer": normalizer,
    }  # fmt: skip
    first = open_gateway(catalog[:1], **options)
    second = open_gateway(catalog[5:], **options)
    result = await first.search(QUERY)

    other = await second.search(QUERY)

    assert ["send_email"] == names(result)
    assert not other.cached
    assert "send_email" not in names(other)
    assert (1, 1) == (len(normalizer.asked), sum(QUERY in batch for batch in embedder.batches))


async def test_cache_with_a_size_of_zero_is_disabled(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    embedder = HashingEmbedder()
    off = CacheOptions(normalized_items=0, embedding_items=0, result_items=0)
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=Options(cache=off))
    await gateway.search(QUERY)

    again = await gateway.search(QUERY)

    assert not again.cached
    assert 2 == sum(batch == (QUERY,) for batch in embedder.batches)


async def test_changing_a_result_does_not_change_the_cached_one(gateway: Gateway) -> None:
    """The test changes the first result, and then results that come from the cache."""
    results = [await gateway.search(QUERY)]
    stages = dict(results[0].stages)

    for _ in range(3):
        results[-1].stages.clear()  # type: ignore[attr-defined]  # a caller that does as it likes
        results.append(await gateway.search(QUERY))

    assert [False, True, True, True] == [result.cached for result in results]
    assert stages == results[-1].stages


async def test_failed_server_does_not_disable_the_cache(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Results are cached even after a server failed twice. Once it is back, its tools are found."""
    clock, dead = ManualClock(), ListSource("dead", [tool("post_letter", "Send a letter.")])
    dead.fail_with = OSError()
    gateway = open_gateway(catalog, clock=clock)
    gateway.add_source(dead)
    first, second = await gateway.search(QUERY), await gateway.search(QUERY)

    async def failed_again() -> bool:
        clock.tick(31)
        await gateway.search(QUERY)
        return dead.listings > 2

    await until(failed_again)
    third = await gateway.search(QUERY)
    dead.fail_with = None

    async def is_back() -> bool:
        clock.tick(31)
        return "post_letter" in names(await gateway.search(QUERY))

    await until(is_back)

    assert [False, True, True] == [result.cached for result in (first, second, third)]
    for result in (first, second, third):
        assert ["source_load_failed"] == [note.code for note in result.diagnostics]


async def test_degraded_result_is_not_cached(gateway: Gateway, embedder: HashingEmbedder) -> None:
    await gateway.report()
    embedder.fail_with = OSError()

    first, second = await gateway.search(QUERY), await gateway.search(QUERY)

    assert (True, True) == (first.degraded, second.degraded)
    assert (False, False) == (first.cached, second.cached)
