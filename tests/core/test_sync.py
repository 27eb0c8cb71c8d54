"""The blocking versions of a gateway's classes, alone and together with async callers."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gateway.call import ResourceLibrary
from gateway.catalog import Catalog
from gateway.errors import ClosedError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.sync import SyncCatalog, SyncGateway, SyncLibrary
from gateway.testing import HashingEmbedder
from gateway.types import Counts, Filters, SearchResult, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import names


def test_blocking_methods_work_without_a_loop(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    with SyncGateway(open_gateway(catalog)) as gateway:
        result = gateway.search("send an e-mail", limit=2)
        several = gateway.search(queries=["weather"], context={"a": 1}, context_summary="b")

        assert "send_email" == names(result)[0]
        assert "get_weather" == names(several)[0]
        assert "called send_email" == gateway.invoke(result.matches[0].id).text
        assert 12 == len(gateway.list_tools(Filters()))
        assert 12 == gateway.report().entities
        assert 12 == gateway.refresh().entities
        assert "send_email" in gateway.export_graph()
        assert "shelf/send_email" in gateway.graph()
        assert gateway.remove_server("shelf")
    with pytest.raises(ClosedError):
        gateway.search("send an e-mail")


TWINS: dict[type, tuple[type, set[str]]] = {
    Gateway: (SyncGateway, {"aclose"}),
    Catalog: (SyncCatalog, {"entry"}),
    ResourceLibrary: (SyncLibrary, {"ask", "fill_prompt", "follow", "owner", "read_contents"}),
}
"""For each async class: its blocking class, and the names of async methods without a blocking
version."""


def coroutine_signatures(of: type) -> dict[str, inspect.Signature]:
    """Return the signatures of a class's public coroutine methods, keyed by name."""
    return {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(of, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("core", TWINS, ids=lambda core: core.__name__)
def test_each_async_method_has_a_blocking_version_with_equal_parameters(core: type) -> None:
    blocking, inner = TWINS[core]
    expected = {
        name: signature
        for name, signature in coroutine_signatures(core).items()
        if name not in inner
    }
    blocked = {name: getattr(blocking, name, None) for name in expected}

    assert inner < coroutine_signatures(core).keys()
    assert expected == {
        name: inspect.signature(method) for name, method in blocked.items() if method
    }


def test_sync_gateway_has_a_blocking_version_of_each_part(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    with SyncGateway(open_gateway(catalog)) as gateway:
        assert gateway.list_tools() == gateway.library.entities("tool")
        with pytest.raises(InvalidRequestError, match=r'library\.entities\("resource"\)'):
            gateway.library.read("memo://none")
        with pytest.raises(InvalidRequestError, match=r'library\.entities\("prompt"\)'):
            gateway.library.prompt("none", {})
        with pytest.raises(InvalidRequestError, match="no server has the prompt"):
            gateway.library.complete("prompt", "none", {})


async def test_blocking_call_on_the_gateways_own_loop_is_refused(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A tool that calls its own gateway would wait for itself forever."""
    gateway = open_gateway(catalog)

    async def nested() -> object:
        return SyncGateway(gateway).search("send an e-mail")

    with pytest.raises(RuntimeError, match="await the async form"):
        await gateway.bridge.run(nested)


async def test_two_loops_and_several_threads_share_one_gateway(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """All of them search and call at the same time, with one session and one index."""
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    blocking = SyncGateway(gateway)

    async def both(number: int) -> tuple[str, str]:
        result = await gateway.search(f"send an e-mail {number % 3}")
        return result.matches[0].name, (await gateway.invoke(result.matches[0].id)).text

    async def many() -> list[tuple[str, str]]:
        return list(await asyncio.gather(*(both(number) for number in range(20))))

    def block(number: int) -> tuple[str, str]:
        result = blocking.search(f"send an e-mail {number % 3}")
        return result.matches[0].name, blocking.invoke(result.matches[0].id).text

    def threads() -> list[tuple[str, str]]:
        with ThreadPoolExecutor(6) as pool:
            return list(pool.map(block, range(20)))

    first, second, blocked = await asyncio.gather(
        many(), asyncio.to_thread(asyncio.run, many()), asyncio.to_thread(threads)
    )

    assert {("send_email", "called send_email")} == {*first, *second, *blocked}
    assert 60 == len([*first, *second, *blocked])
    assert 1 == gateway.index_builds


async def test_concurrent_searches_return_the_results_of_a_serial_run(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """16 threads with 36 searches each and 200 tasks on two loops return equal results to the last
    digit.
    """
    queries = [f"{tool.description} {number}" for number in range(3) for tool in catalog]
    alone = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    serial = {query: _without_counts(await alone.search(query)) for query in queries}
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    blocking = SyncGateway(gateway)
    begin = threading.Barrier(16)

    def search_and_call(start: int) -> list[tuple[str, SearchResult, str]]:
        begin.wait()
        rotated = (*queries[start:], *queries[:start])
        results = [(query, blocking.search(query)) for query in rotated]
        return [
            (query, result, blocking.invoke(result.matches[0].id).text) for query, result in results
        ]

    def threads() -> list[tuple[str, SearchResult, str]]:
        with ThreadPoolExecutor(16) as pool:
            return [row for rows in pool.map(search_and_call, range(16)) for row in rows]

    async def search_once(number: int) -> tuple[str, SearchResult, str]:
        query = queries[number % len(queries)]
        result = await gateway.search(query)
        return query, result, (await gateway.invoke(result.matches[0].id)).text

    async def tasks() -> list[tuple[str, SearchResult, str]]:
        return await asyncio.gather(*map(search_once, range(100)))

    parts = await asyncio.gather(
        tasks(), asyncio.to_thread(asyncio.run, tasks()), asyncio.to_thread(threads)
    )

    rows = [row for part in parts for row in part]
    assert 776 == len(rows)
    for query, result, answer in rows:
        assert f"called {result.matches[0].name}" == answer
        assert serial[query] == _without_counts(result)


def _without_counts(result: SearchResult) -> SearchResult:
    """Remove the counts, which are lower if the query's vector is in the cache."""
    return replace(result, counts=Counts())
