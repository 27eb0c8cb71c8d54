"""Gauges and counters for dashboards, and their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from opentelemetry import semconv
from opentelemetry.semconv.schemas import Schemas

from gateway.runtime.telemetry_names import SCHEMA_URL
from gateway.testing import HashingEmbedder, ManualClock
from gateway.types import Diagnostic, Listing
from tests.conftest import OpenGateway
from tests.fakes import BrokenStore, Gated, ListSource, Shelf, tool
from tests.metrics import Watch, counted, documented


class Doubted(ListSource):
    """A source that lists a changed tool and reports a failed store."""

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        notes = (
            Diagnostic(stage="catalog", code="tool_changed", detail="a"),
            Diagnostic(stage="store", code="catalog_unavailable", detail="no disk"),
        )
        return replace(listing, diagnostics=notes)


def gauge(watch: Watch, name: str, label: str = "none") -> dict[object, float]:
    return counted(watch.reader, name, label)


async def test_gauges_of_several_gateways_are_added_until_closed(open_gateway: OpenGateway) -> None:
    """An SDK calls one callback for each name, so gateways of one provider have to share it."""
    watch, clock = Watch(), ManualClock()
    gateways = [open_gateway(meter_provider=watch.meter, clock=clock) for _ in range(2)]
    for gateway in gateways:
        gateway.add_server("shelf", server=Shelf([tool("a"), tool("b")]).server)
        await gateway.report()
        clock.tick(5)

    kinds = gauge(watch, "gateway.index.entities", "gateway.entity.kind")
    states = gauge(watch, "gateway.servers", "gateway.server.state")
    assert {"tool": 4, "server": 2} == kinds
    assert {"up": 2, "down": 0} == states
    assert {None: 10} == gauge(watch, "gateway.index.age")
    await gateways[0].aclose()
    kinds = gauge(watch, "gateway.index.entities", "gateway.entity.kind")
    assert {"tool": 2, "server": 1} == kinds
    assert {None: 5} == gauge(watch, "gateway.index.age")


async def test_gauges_count_pending_approvals_and_store_failures(open_gateway: OpenGateway) -> None:
    watch = Watch()
    gateway = open_gateway(
        strategy="auto",
        embedder=HashingEmbedder(),
        vector_store=BrokenStore(),
        meter_provider=watch.meter,
    )
    gateway.add_source(Doubted("srv", [tool("a")]))

    await gateway.report()

    stores = gauge(watch, "gateway.store.failures", "gateway.store.name")
    assert {None: 1} == gauge(watch, "gateway.approvals.pending")
    assert {"vectors", "catalog"} == set(stores)
    assert 1 == stores["catalog"]


async def test_gauge_counts_texts_without_a_vector(open_gateway: OpenGateway) -> None:
    watch, embedder = Watch(), Gated()
    gateway = open_gateway(strategy="auto", embedder=embedder, meter_provider=watch.meter)
    gateway.add_source(ListSource("srv", [tool("a"), tool("b")]))

    await gateway.snapshot()
    waiting = gauge(watch, "gateway.embedding.queue", "gateway.embedding.role")
    embedder.gate.set()
    await gateway.report()

    assert {"document": 4, "query": 0} == waiting
    empty = {"document": 0, "query": 0}
    assert empty == gauge(watch, "gateway.embedding.queue", "gateway.embedding.role")


async def test_each_search_without_a_match_is_counted(open_gateway: OpenGateway) -> None:
    """Results from the cache count too."""
    watch = Watch()
    gateway = open_gateway([tool("send_email", "Send an e-mail.")], meter_provider=watch.meter)
    for _ in range(2):
        await gateway.search("xyzzy plugh")
    await gateway.search("send_email")

    weak = gauge(watch, "gateway.search.weak_results", "gateway.diagnostic.code")
    assert {"no_match": 2} == weak


def test_opentelemetry_names_are_in_the_installed_conventions() -> None:
    """The schema URL must belong to a version of the conventions that defines the names."""
    names = {name for name in _constants() if isinstance(name, str)}
    rows = documented()
    used = {name for name, row in rows.items() if len(row.cells) == 3}
    used |= {attribute for row in rows.values() for attribute in row.attributes}

    assert set() == {name for name in used if not name.startswith("gateway.")} - names
    assert SCHEMA_URL in [schema.value for schema in Schemas]


def _constants() -> Iterator[object]:
    """Yield all names that the installed package of the conventions defines."""
    (folder,) = map(Path, semconv.__path__)
    for kind in ("attributes", "metrics"):
        for path in folder.rglob(f"{kind}/*_{kind}.py"):
            module = ".".join(path.relative_to(folder).with_suffix("").parts)
            yield from vars(import_module(f"{semconv.__name__}.{module}")).values()
