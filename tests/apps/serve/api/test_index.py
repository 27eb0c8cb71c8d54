"""Status, rebuild and health check of the index over HTTP."""

from __future__ import annotations

import asyncio

from httpx2 import AsyncClient

from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.serve.auth import ADMIN, BearerToken
from gateway.testing import HashingEmbedder
from gateway.types import Caller, Listing
from tests.apps.serve.api.client import SECRET, open_client, until
from tests.apps.serve.api.conftest import Mixed
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import Gated, ListSource


class Unlisted(ListSource):
    """Source that never finishes listing its tools."""

    async def list_tools(self) -> Listing:
        await asyncio.Event().wait()
        raise AssertionError


async def test_health_is_ok_after_the_first_build(create_mail_gateway: Mixed) -> None:
    async with open_client(create_mail_gateway()) as client:
        first = (await client.get("/api/health")).json()
        await until(client, "/api/health", "status", "ok")
        await client.put("/api/entities/agent:a/b", json={})
        later = (await client.get("/api/health")).json()

    assert "starting" == first["status"]
    assert "ok" == later["status"]


async def test_index_status_counts_only_visible_entities(
    client: AsyncClient, writer_client: AsyncClient, full_gateway: Gateway
) -> None:
    await until(client, "/api/index", "rebuilding", value=False)
    status = (await writer_client.get("/api/index")).json()
    open_status = (await client.get("/api/index")).json()
    await full_gateway.catalog.remove("agent:catalog/accountant")
    await until(client, "/api/index", "rebuilding", value=False)
    without = (await client.get("/api/index")).json()

    sizes = ("entities", "by_kind", "vectors", "graph_nodes", "graph_edges")
    assert [without[size] for size in sizes] == [open_status[size] for size in sizes]
    assert (11, 5) == (open_status["entities"], open_status["by_kind"]["agent"])
    assert {"agent": 6, "skill": 1, "recipe": 1, "server": 1, "tool": 3} == status["by_kind"]
    assert (12, 12, False) == (status["entities"], status["vectors"], status["rebuilding"])
    assert ("auto", HashingEmbedder().info.model_id) == (status["strategy"], status["model"])


async def test_index_status_shows_a_build_in_progress(
    open_gateway: OpenGateway, catalog_of: CatalogOf
) -> None:
    embedder = Gated()
    options = Options(search=SearchOptions(first_search="words"))
    gateway = open_gateway(catalog_of(80), strategy="auto", embedder=embedder, options=options)
    async with open_client(gateway) as client:
        await gateway.snapshot()
        status = (await client.get("/api/index")).json()
        embedder.gate.set()
        await until(client, "/api/index", "rebuilding", value=False)
        whole = (await client.get("/api/index")).json()

    assert (80, {"tool": 80}, 0, "") == tuple(
        status[item] for item in ("entities", "by_kind", "vectors", "model")
    )
    assert [{"stage": "embed", "code": "index_building"}] == status["diagnostics"]
    assert status["rebuilding"]
    assert (80, 80, []) == (whole["entities"], whole["vectors"], whole["diagnostics"])


async def test_index_status_shows_failure_details_only_to_administrators(
    create_mail_gateway: Mixed,
) -> None:
    gateway = create_mail_gateway()
    broken = ListSource("broken")
    broken.fail_with = OSError()
    gateway.add_source(broken)
    admin = BearerToken.from_secret("admin", SECRET * 2, Caller(scopes=frozenset({ADMIN})))
    async with open_client(gateway, scopes=(), tokens=[admin]) as client:
        await until(client, "/api/index", "rebuilding", value=False)
        mine = (await client.get("/api/index")).json()
        more = await client.get("/api/index", headers={"Authorization": f"Bearer {SECRET * 2}"})

    assert ["source_load_failed"] == [diagnostic["code"] for diagnostic in mine["diagnostics"]]
    assert [] == mine["details"]
    assert more.json()["details"][0].startswith("source_load_failed: ")


async def test_index_rebuild_runs_in_the_background(create_mail_gateway: Mixed) -> None:
    gateway = create_mail_gateway()
    before = gateway.index_builds
    async with open_client(gateway) as client:
        answers = [await client.post("/api/index/rebuild") for _ in range(3)]
        await until(client, "/api/index", "rebuilding", value=False)

    assert [202] * 3 == [response.status_code for response in answers]
    assert "/api/index" == answers[0].headers["location"]
    assert gateway.index_builds > before


async def test_index_status_does_not_wait_for_a_running_build(create_mail_gateway: Mixed) -> None:
    gateway = create_mail_gateway()
    async with open_client(gateway) as client:
        await until(client, "/api/index", "rebuilding", value=False)
        gateway.add_source(Unlisted("late"))
        status = (await client.get("/api/index")).json()

    assert (4, 4, True) == (
        status["entities"],
        sum(status["by_kind"].values()),
        status["rebuilding"],
    )
