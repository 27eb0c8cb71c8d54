"""Parts in other processes: here behind HTTP on loopback, with tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette

from gateway import Gateway
from gateway.serve.auth import SHARD, BearerToken
from gateway.serve.guard import guarded
from gateway.serve.http_options import HttpOptions
from gateway.serve.part_routes import part_routes
from gateway.sharding.http_part import HttpPart
from gateway.sharding.sharded_search import ShardedSearch
from gateway.testing import HashingEmbedder
from gateway.testing.endpoint import Loopback
from gateway.types import Caller, SearchResult
from tests.fakes import codes
from tests.sharding.conftest import ShardedCatalog, open_sharded, servers
from tests.sharding.test_sharded_search import comparable

COORDINATOR = "a secret of the coordinator"
OTHER = "a secret of somebody else"
_TOKENS = tuple(
    BearerToken.from_secret(name, secret, Caller(scopes=frozenset(scopes)))
    for name, secret, scopes in (("it", COORDINATOR, {SHARD}), ("other", OTHER, {"catalog:write"}))
)


@pytest.fixture(scope="module")
def catalog() -> Iterator[ShardedCatalog]:
    yield from open_sharded("auto", servers(11))


@pytest.fixture(scope="module")
def urls(catalog: ShardedCatalog) -> Iterator[Sequence[str]]:
    """Serve each part by itself."""
    with ExitStack() as stack:
        yield [stack.enter_context(served(part)) for part in catalog.parts]


class served:  # noqa: N801  (a context manager)
    """One gateway behind the guard."""

    def __init__(self, gateway: Gateway) -> None:
        options = HttpOptions(tokens=_TOKENS)
        self._loopback = Loopback(guarded(Starlette(routes=part_routes(gateway)), options))

    def __enter__(self) -> str:
        self._loopback.start()
        return f"http://127.0.0.1:{self._loopback.port}"

    def __exit__(self, *_error: object) -> None:
        self._loopback.close()


async def search(urls: Sequence[str], token: str, *queries: str) -> list[SearchResult]:
    """Search the parts at *urls* for each of *queries*."""
    parts = [HttpPart(url, token=token) for url in urls]
    async with ShardedSearch(parts, strategy="auto", embedder=HashingEmbedder(48)) as sharded:
        results = [await sharded.search(query, limit=12) for query in queries]
    for part in parts:
        await part.aclose()
    return results


def test_parts_over_http_answer_as_one_process_does(
    catalog: ShardedCatalog, urls: Sequence[str]
) -> None:
    """To the last bit: numbers survive JSON."""
    queries = ["list urgent invoices", "create_invoice", "delte the regional projet"]

    found = asyncio.run(search(urls, COORDINATOR, *queries))

    whole = [catalog.run(catalog.whole.search(query, limit=12)) for query in queries]
    assert list(map(comparable, whole)) == list(map(comparable, found))


def test_a_part_answers_only_a_coordinator(urls: Sequence[str]) -> None:
    """It searches in the name of any caller: that needs a right of its own."""
    (refused,) = asyncio.run(search(urls[:1], OTHER, "list invoices"))
    (unknown,) = asyncio.run(search(urls[:1], "no such secret at all", "list invoices"))

    assert ["part_unavailable"] == codes(refused) == codes(unknown)
    assert "it answered with status 403" in refused.diagnostics[0].detail
    assert "it answered with status 401" in unknown.diagnostics[0].detail


def test_an_address_that_nobody_serves_is_said(urls: Sequence[str]) -> None:
    """The others answer; the detail holds the address and no secret."""
    gone = "http://127.0.0.1:9"

    (result,) = asyncio.run(search([*urls, gone], COORDINATOR, "list invoices"))

    notes = [note.detail for note in result.diagnostics if note.code == "part_unavailable"]
    assert [f"{gone}: it cannot be reached (ClientConnectorError)"] == notes
    assert result.matches
