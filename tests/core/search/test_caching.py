"""What is remembered, for how long, and what never is."""

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
    """On one loop, all at the same time, before anything was built."""

    found = await asyncio.gather(*(gateway.search(QUERY) for _ in range(200)))

    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 2 == embedder.calls
    assert 1 == gateway.index_builds
    assert 1 == len({tuple(names(each)) for each in found})


def test_two_hundred_equal_searches_from_threads_make_one_embedding_call(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """On twenty threads at the same time."""
    embedder = HashingEmbedder()
    gateway = SyncGateway(open_gateway(catalog, strategy="auto", embedder=embedder))
    start = threading.Barrier(20)

    def ask(number: int) -> SearchResult:
        if number < 20:
            start.wait(10)
        return gateway.search(QUERY)

    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(ask, range(200)))

    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 1 == len({tuple(names(each)) for each in found})


async def test_a_remembered_result_is_the_same_and_says_so(gateway: Gateway) -> None:
    """Same input and state, same output."""

    fresh = await gateway.search(QUERY)
    kept = await gateway.search(f"  {QUERY}\u200b ")

    assert fresh == kept
    assert (False, True) == (fresh.cached, kept.cached)


async def test_another_question_is_another_key(open_gateway: OpenGateway, catalog: Catalog) -> None:
    """Limit, filters, context and notes all change a result."""
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

    assert not any(each.cached for each in others)


@pytest.mark.parametrize(
    ("seconds", "embedded", "rewritten"), [(299, 1, 1), (301, 1, 1), (901, 2, 1), (1801, 2, 2)]
)
async def test_each_memory_has_its_own_absolute_lifetime(
    open_gateway: OpenGateway, catalog: Catalog, seconds: int, embedded: int, rewritten: int
) -> None:
    """Results five minutes, query embeddings fifteen, rewrites thirty."""
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


async def test_a_change_of_the_catalog_forgets_results_but_not_embeddings(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    """What was found may be wrong now; what a text means is not."""
    await gateway.search(QUERY)

    def send_an_email() -> str:
        """Send an e-mail."""
        return ""

    gateway.add_tool(send_an_email)
    found = await gateway.search(QUERY)

    assert not found.cached
    assert "send_an_email" in names(found)
    assert 1 == sum(batch == (QUERY,) for batch in embedder.batches)
    assert 0 == found.counts.embedded_texts


async def test_gateways_that_share_caches_never_share_results(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Equal generations of other catalogs; only what does not depend on them is shared."""
    caches, embedder = Caches.of(CacheOptions()), HashingEmbedder()
    normalizer = TableNormalizer({QUERY: "send email"})
    options = {
        "strategy": "auto", "embedder": embedder, "caches": caches, "normalizer": normalizer,
    }  # fmt: skip
    first = open_gateway(catalog[:1], **options)
    second = open_gateway(catalog[5:], **options)
    found = await first.search(QUERY)

    other = await second.search(QUERY)

    assert ["send_email"] == names(found)
    assert not other.cached
    assert "send_email" not in names(other)
    assert (1, 1) == (len(normalizer.asked), sum(QUERY in batch for batch in embedder.batches))


async def test_caches_of_no_size_remember_nothing(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """A host may turn them off."""
    embedder = HashingEmbedder()
    off = CacheOptions(normalized_items=0, embedding_items=0, result_items=0)
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=Options(cache=off))
    await gateway.search(QUERY)

    again = await gateway.search(QUERY)

    assert not again.cached
    assert 2 == sum(batch == (QUERY,) for batch in embedder.batches)


async def test_what_a_caller_does_to_its_result_changes_nobody_elses(gateway: Gateway) -> None:
    """Neither the first of them, whose result is remembered, nor those that get it from there."""
    results = [await gateway.search(QUERY)]
    stages = dict(results[0].stages)

    for _ in range(3):
        results[-1].stages.clear()  # type: ignore[attr-defined]  # a caller that does as it likes
        results.append(await gateway.search(QUERY))

    assert [False, True, True, True] == [each.cached for each in results]
    assert stages == results[-1].stages


async def test_a_dead_server_does_not_switch_the_cache_off(
    open_gateway: OpenGateway, catalog: Catalog
) -> None:
    """Not when it has failed once more either; when it is back its tools are found at once."""
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

    async def back() -> bool:
        clock.tick(31)
        return "post_letter" in names(await gateway.search(QUERY))

    await until(back)

    assert [False, True, True] == [each.cached for each in (first, second, third)]
    for each in (first, second, third):
        assert ["source_load_failed"] == [note.code for note in each.diagnostics]


async def test_a_degraded_result_is_not_remembered(
    gateway: Gateway, embedder: HashingEmbedder
) -> None:
    """The next request tries again."""
    await gateway.report()
    embedder.fail_with = OSError()

    first, second = await gateway.search(QUERY), await gateway.search(QUERY)

    assert (True, True) == (first.degraded, second.degraded)
    assert (False, False) == (first.cached, second.cached)
