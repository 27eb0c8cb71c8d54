"""Index builds: one at a time, whoever asks and goes away; what failed is tried again."""

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


def told(report: IndexReport) -> list[str]:
    return [note.code for note in report.diagnostics]


async def test_a_report_says_what_the_build_did(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Rule 10: how many entities, texts, tokens, nodes, and how long."""
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


async def test_progress_tells_the_stages(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """First the servers that are asked, then the texts that have a vector."""
    seen: list[tuple[str, int, int]] = []
    gateway = open_gateway(
        strategy="auto", embedder=HashingEmbedder(), progress=lambda *step: seen.append(step)
    )
    gateway.add_server("shelf", server=Shelf(catalog).server)

    await gateway.report()

    servers, texts = [("servers", 0, 1), ("servers", 1, 1)], [0, 26]
    assert servers + [("embeddings", done, 26) for done in texts] == seen


class HeldEmbedder(HashingEmbedder):
    """Embeds only when the door is open."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.door = threading.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        self.asked.set()
        await asyncio.to_thread(self.door.wait, 30)
        return await super().embed(texts, role=role)


async def test_the_first_callers_cancellation_does_not_end_the_common_build(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A build belongs to all who wait for it."""
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
async def test_a_failing_source_costs_its_own_tools_and_is_tried_again_later(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], strategy: str
) -> None:
    """One dead server never loses the rest, and nobody waits for it twice."""
    clock, shelf = ManualClock(), Shelf([ToolDefinition(name="x", input_schema={"type": "object"})])
    shelf.broken = True
    gateway = open_gateway(catalog, strategy=strategy, embedder=HashingEmbedder(), clock=clock)
    gateway.add_server("dead", server=shelf.server)

    first = await gateway.search("send an e-mail")
    shelf.broken = False
    soon = await gateway.search("x")
    listings = shelf.listings
    clock.tick(30.5)

    async def back() -> bool:
        return "x" in names(await gateway.search("x"))

    await until(back)

    assert "send_email" == names(first)[0]
    assert "source_load_failed" in codes(first)
    assert "'dead'" in first.diagnostics[0].detail
    assert "x" not in names(soon)
    assert 1 == listings
    assert "source_load_failed" not in codes(await gateway.search("x"))


async def test_a_source_that_fails_again_keeps_its_last_good_tools(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """And the result says that it is not sure."""
    shelf = Shelf(catalog)
    gateway = open_gateway()
    gateway.add_server("shelf", server=shelf.server)
    await gateway.report()
    shelf.broken = True

    report = await gateway.refresh()

    assert (13, ["source_stale"]) == (report.entities, told(report))


async def test_servers_may_change_come_and_go_at_run_time(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A refresh lists every server again; a removed one is gone at once."""
    shelf = Shelf(catalog[:2])
    gateway = open_gateway()
    gateway.add_server("shelf", server=shelf.server)
    before = [each.name for each in await gateway.list_tools()]
    shelf.tools = [catalog[1], catalog[5]]

    await gateway.refresh()
    changed = [each.name for each in await gateway.list_tools()]
    removed = await gateway.remove_server("shelf")
    unknown = await gateway.remove_server("shelf")

    assert ["read_email", "send_email"] == before
    assert ["get_weather", "read_email"] == changed
    assert (True, False) == (removed, unknown)
    assert "empty" == (await gateway.search("weather")).mode


async def test_a_server_of_a_name_that_was_removed_is_another_one(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """What is known of the first must not be taken for the second."""
    gateway = open_gateway(catalog[:2])
    await gateway.report()
    await gateway.remove_server("shelf")
    gateway.add_server("shelf", server=Shelf(catalog[5:6]).server)

    assert ["get_weather"] == [each.name for each in await gateway.list_tools()]


async def test_a_corrupt_store_file_is_set_aside_and_begun_anew(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], tmp_path: Path
) -> None:
    """Never fatal, and told."""
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
    found = await gateway.search("send an e-mail")

    assert (["store_rebuilt"], 12) == (told(report), report.vectors)
    again = await gateway.search("send an e-mail")
    assert ("hybrid", False, True) == (found.mode, found.degraded, again.cached)
    assert ["store_rebuilt"] == codes(found) == codes(again)
    assert (tmp_path / "vectors.sqlite3.corrupt-1").exists()
    assert path.read_bytes().startswith(b"SQLite format 3")


async def test_a_store_that_cannot_be_used_leaves_vectors_in_memory(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """A full disk is no reason to find nothing."""
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), vector_store=BrokenStore()
    )

    report = await gateway.report()

    found = await gateway.search("send an e-mail")
    assert (["store_unavailable"] * 2, 12) == (told(report), report.vectors)
    assert ("hybrid", set(report.diagnostics)) == (found.mode, set(found.diagnostics))


async def test_one_bad_tool_is_quarantined_and_its_neighbours_live(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The reason is told once, in the report."""
    bad = ToolDefinition(name="n" * 129, input_schema={"type": "object"})

    gateway = open_gateway()
    gateway.add_server("shelf", server=Shelf((bad, *catalog)).server)
    report = await gateway.report()

    assert (13, ["tool_quarantined"]) == (report.entities, told(report))
