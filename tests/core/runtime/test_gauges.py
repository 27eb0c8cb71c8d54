"""What a dashboard shows of the present, what it counts, and by what names."""

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
    """A source whose tool is not as it was approved, and whose store failed."""

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        notes = (
            Diagnostic(stage="catalog", code="tool_changed", detail="a"),
            Diagnostic(stage="store", code="catalog_unavailable", detail="no disk"),
        )
        return replace(listing, diagnostics=notes)


def gauge(watch: Watch, name: str, label: str = "none") -> dict[object, float]:
    return counted(watch.reader, name, label)


async def test_gateways_of_one_provider_add_up_until_they_are_closed(
    open_gateway: OpenGateway,
) -> None:
    """An SDK asks one callback a name: the second gateway must not be lost, nor the first stay."""
    watch, clock = Watch(), ManualClock()
    made = [open_gateway(meter_provider=watch.meter, clock=clock) for _ in range(2)]
    for gateway in made:
        gateway.add_server("shelf", server=Shelf([tool("a"), tool("b")]).server)
        await gateway.report()
        clock.tick(5)

    kinds = gauge(watch, "gateway.index.entities", "gateway.entity.kind")
    states = gauge(watch, "gateway.servers", "gateway.server.state")
    assert {"tool": 4, "server": 2} == kinds
    assert {"up": 2, "down": 0} == states
    assert {None: 10} == gauge(watch, "gateway.index.age")
    await made[0].aclose()
    kinds = gauge(watch, "gateway.index.entities", "gateway.entity.kind")
    assert {"tool": 2, "server": 1} == kinds
    assert {None: 5} == gauge(watch, "gateway.index.age")


async def test_what_waits_for_an_approval_and_a_store_that_fails_are_seen(
    open_gateway: OpenGateway,
) -> None:
    """Both change what is found, and nobody reads diagnostics all day."""
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


async def test_texts_that_wait_for_a_vector_are_a_queue(open_gateway: OpenGateway) -> None:
    """It is empty when the index is whole."""
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


async def test_searches_that_find_nothing_are_counted_each_time(open_gateway: OpenGateway) -> None:
    """From the cache too: whoever asks again has not found it either."""
    watch = Watch()
    gateway = open_gateway([tool("send_email", "Send an e-mail.")], meter_provider=watch.meter)
    for _ in range(2):
        await gateway.search("xyzzy plugh")
    await gateway.search("send_email")

    weak = gauge(watch, "gateway.search.weak_results", "gateway.diagnostic.code")
    assert {"no_match": 2} == weak


def test_names_that_are_not_ours_are_those_of_the_installed_conventions() -> None:
    """And the schema that is named is one that defines them."""
    names = {name for name in _constants() if isinstance(name, str)}
    rows = documented()
    used = {name for name, row in rows.items() if len(row.cells) == 3}
    used |= {attribute for row in rows.values() for attribute in row.attributes}

    assert set() == {name for name in used if not name.startswith("gateway.")} - names
    assert SCHEMA_URL in [schema.value for schema in Schemas]


def _constants() -> Iterator[object]:
    """Every name that the installed package knows."""
    (folder,) = map(Path, semconv.__path__)
    for kind in ("attributes", "metrics"):
        for path in folder.rglob(f"{kind}/*_{kind}.py"):
            module = ".".join(path.relative_to(folder).with_suffix("").parts)
            yield from vars(import_module(f"{semconv.__name__}.{module}")).values()
