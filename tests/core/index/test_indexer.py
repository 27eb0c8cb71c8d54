"""Index builds: shared by all callers, and retried after failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.embed import Embedded, Role
from gateway.options import Options
from gateway.testing import HashingEmbedder, ManualClock
from gateway.types import IndexReport, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import BrokenStore, Shelf, codes, names, until


def codes_of(report: IndexReport) -> list[str]:
    return [note.code for note in report.diagnostics]


async def test_report_contains_counts_and_duration_of_the_build(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Rule 10: every build is reported."""
    report = await open_gateway(catalog, strategy="auto", embedder=HashingEmbedder()).report()

    assert (2, 12, 12, 24) == (
        report.generation,
        report.entities,
        report.vectors,
        report.embedded_texts,
    )
    assert report.tokens > 0
    assert report.graph_nodes >= 12
    assert report.graph_edges > 0
    assert report.duration_s > 0
    assert () == report.diagnostics


async def test_progress_callback_receives_servers_and_embedded_texts(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    events: list[tuple[str, int, int]] = []
    gateway = open_gateway(
        strategy="auto", embedder=HashingEmbedder(), progress=lambda *step: events.append(step)
    )
    gateway.add_server("shelf", server=Shelf(catalog).server)

    await gateway.report()

    servers, texts = [("servers", 0, 1), ("servers", 1, 1)], [0, 26]
    assert servers + [("embeddings", done, 26) for done in texts] == events


class HeldEmbedder(HashingEmbedder):
    """An embedder that answers only once its door is open."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.door = threading.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.asked.set()
        await asyncio.to_thread(self.door.wait, 30)
        return await super().embed(texts, role=role)


async def test_cancelling_one_caller_does_not_end_a_shared_build(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    embedder = HeldEmbedder()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    first = asyncio.ensure_future(gateway.search("send an e-mail"))
    await asyncio.to_thread(embedder.asked.wait, 30)
    second = asyncio.ensure_future(gateway.search("send an e-mail"))
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.wait([first])
    embedder.door.set()

    assert "hybrid" == (await second).mode
    assert first.cancelled()
    assert 1 == gateway.index_builds


@pytest.mark.parametrize("strategy", ["graph", "auto"])
async def test_failing_source_loses_only_its_own_tools_and_is_retried_later(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], strategy: str
) -> None:
    """Only one search waits for a dead server."""
    clock, shelf = ManualClock(), Shelf([ToolDefinition(name="x", input_schema={"type": "object"})])
    shelf.broken = True
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder(), clock=clock)
    gateway.add_server("dead", server=shelf.server)

    first = await gateway.search("send an e-mail")
    shelf.broken = False
    soon = await gateway.search("x")
    listings = shelf.listings
    clock.tick(30.5)

    async def is_back() -> bool:
        return "x" in names(await gateway.search("x"))

    await until(is_back)

    assert "send_email" == names(first)[0]
    assert "source_load_failed" in codes(first)
    assert "'dead'" in first.diagnostics[0].detail
    assert "x" not in names(soon)
    assert 1 == listings
    assert "source_load_failed" not in codes(await gateway.search("x"))


async def test_source_that_fails_again_keeps_its_last_listing(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A diagnostic reports that the listing is old."""
    shelf = Shelf(catalog)
    gateway = open_gateway()
    gateway.add_server("shelf", server=shelf.server)
    await gateway.report()
    shelf.broken = True

    report = await gateway.refresh()

    assert (13, ["source_stale"]) == (report.entities, codes_of(report))


async def test_refresh_finds_changed_listings_and_tools_of_removed_servers_disappear(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    shelf = Shelf(catalog[:2])
    gateway = open_gateway()
    gateway.add_server("shelf", server=shelf.server)
    before = [tool.name for tool in await gateway.list_tools()]
    shelf.tools = [catalog[1], catalog[5]]

    await gateway.refresh()
    changed = [tool.name for tool in await gateway.list_tools()]
    removed = await gateway.remove_server("shelf")
    unknown = await gateway.remove_server("shelf")

    assert ["read_email", "send_email"] == before
    assert ["get_weather", "read_email"] == changed
    assert (True, False) == (removed, unknown)
    assert "empty" == (await gateway.search("weather")).mode


async def test_new_server_with_the_name_of_a_removed_one_is_listed(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The listing of the removed server must not be reused."""
    gateway = open_gateway(catalog[:2])
    await gateway.report()
    await gateway.remove_server("shelf")
    gateway.add_server("shelf", server=Shelf(catalog[5:6]).server)

    assert ["get_weather"] == [tool.name for tool in await gateway.list_tools()]


async def test_corrupt_vector_store_is_moved_aside_and_rebuilt(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], tmp_path: Path
) -> None:
    path = tmp_path / "vectors.sqlite3"
    path.write_bytes(b"not a database " * 500)
    gateway = open_gateway(
        catalog,
        strategy="auto",
        embedder=HashingEmbedder(),
        vector_store=None,
        options=Options(vector_store_path=path),
    )

    report = await gateway.report()
    result = await gateway.search("send an e-mail")

    assert (["store_rebuilt"], 12) == (codes_of(report), report.vectors)
    again = await gateway.search("send an e-mail")
    assert ("hybrid", False, True) == (result.mode, result.degraded, again.cached)
    assert ["store_rebuilt"] == codes(result) == codes(again)
    assert (tmp_path / "vectors.sqlite3.corrupt-1").exists()
    assert path.read_bytes().startswith(b"SQLite format 3")


async def test_index_stays_in_memory_if_the_vector_store_is_unusable(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Searches must work even if, for example, the disk is full."""
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), vector_store=BrokenStore()
    )

    report = await gateway.report()

    result = await gateway.search("send an e-mail")
    assert (["store_unavailable"] * 2, 12) == (codes_of(report), report.vectors)
    assert ("hybrid", set(report.diagnostics)) == (result.mode, set(result.diagnostics))


async def test_bad_tool_is_quarantined_and_others_are_listed(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    bad = ToolDefinition(name="n" * 129, input_schema={"type": "object"})

    gateway = open_gateway()
    gateway.add_server("shelf", server=Shelf((bad, *catalog)).server)
    report = await gateway.report()

    assert (13, ["tool_quarantined"]) == (report.entities, codes_of(report))
