"""Fixtures of all tests: a cache folder, and gateways that are closed."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions, UpstreamOptions
from gateway.options.environment import catalog_store_path
from gateway.plugin_manager import installed, load_plugins
from gateway.storage import SqlCatalog
from gateway.testing import HashingEmbedder
from gateway.types import ToolDefinition
from tests.fakes import ListSource, Shelf, definitions, tool
from tests.postgres_server import PostgresServer, running_server

# Without deadlines, because machines differ, and with half of hypothesis's examples, to be fast.
settings.register_profile("patient", deadline=None, max_examples=50, derandomize=False)
settings.load_profile("patient")

OpenGateway = Callable[..., Gateway]
InstallPlugin = Callable[[str, str], None]
CatalogOf = Callable[[int], tuple[ToolDefinition, ...]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the thousands of test objects from garbage collection, which would scan them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a temporary cache folder instead of the user's.

    All tests would see entries in a shared store, and a registry's answers may have another test's
    port.
    """
    folder = tmp_path_factory.mktemp("gateway-cache")
    # The processes of pytest-xdist share only the converted encoders.
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    variables = {"GATEWAY_CACHE_DIR": str(folder), "GATEWAY_ENCODER_DIR": str(shared / "encoders")}
    before = {name: os.environ.pop(name) for name in variables if name in os.environ}
    os.environ |= variables
    yield
    store = SqlCatalog.in_files(catalog_store_path(Options()))
    assert not store.rows(), f"a test left entries in the store of all: {store.rows().keys()}"
    assert not (folder / "registries").exists(), "a test kept a registry's answer for all"
    for name in variables:
        del os.environ[name]
    os.environ |= before


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server. Each test uses its own schema."""
    with running_server() as server:
        yield server


PATIENT = Options(
    search=SearchOptions(query_timeout_s=120),
    upstream=UpstreamOptions(connect_timeout_s=120, first_listing_s=120, max_listing_cpu_s=120),
)
"""Options with long timeouts, for busy machines and slow runs with coverage."""


@pytest.fixture
def open_gateway() -> Iterator[OpenGateway]:
    """Create gateways with vectors in memory: `open_gateway(definitions, **options)`."""
    gateways: list[Gateway] = []

    def build(tools: Iterable[ToolDefinition] = (), **options: object) -> Gateway:
        options.setdefault("vector_store", MemoryVectorStore())
        options.setdefault("options", PATIENT)
        # Most tests need no vectors, and the model of the extra `local` takes seconds.
        options.setdefault("strategy", "graph")
        gateway = Gateway(**options)  # type: ignore[arg-type]  # passed on as they came
        gateways.append(gateway)
        definitions = tuple(tools)
        if definitions:
            gateway.add_source(ListSource("shelf", definitions))
        return gateway

    yield build
    for gateway in gateways:
        gateway.close()


def with_own_store(open_gateway: OpenGateway, folder: Path) -> OpenGateway:
    """Create gateways whose entries and approvals are stored in *folder*."""
    own_options = replace(PATIENT, catalog_store_path=folder / "catalog.sqlite3")

    def build(*tools: object, **options: object) -> Gateway:
        return open_gateway(*tools, **{"options": own_options, **options})

    return build


@pytest.fixture
def catalog() -> tuple[ToolDefinition, ...]:
    """A catalog of twelve tools."""
    return (
        tool("send_email", "Send an e-mail to somebody."),
        tool("read_email", "Read the newest e-mail of the inbox."),
        tool("list_invoices", "List the open invoices of a customer."),
        tool("get_invoice", "Get one invoice with its lines."),
        tool("pay_invoice", "Pay an invoice from the company account."),
        tool("get_weather", "Tell the weather forecast of a city."),
        tool("get_location", "Tell where the user is now."),
        tool("book_flight", "Book a flight between two airports."),
        tool("search_flights", "Search flights between two airports."),
        tool("play_music", "Play a song on the speakers."),
        tool("translate_text", "Translate a text into another language."),
        tool("resize_photo", "Change the size of a photo."),
    )


@pytest.fixture(scope="session")
def catalog_of() -> CatalogOf:
    """Create catalogs of up to 3,000 distinct tools."""
    return definitions


@pytest.fixture(scope="session")
def big_shelf() -> Shelf:
    """A server with 3,000 tools, listed once, for tests that change nothing."""
    return Shelf(definitions(3000))


@pytest.fixture(scope="session")
def big(big_shelf: Shelf) -> Iterator[Gateway]:
    """A gateway with 3,000 tools, for tests that change nothing."""
    gateway = Gateway(
        strategy="auto",
        embedder=HashingEmbedder(),
        vector_store=MemoryVectorStore(),
        options=PATIENT,
    )
    gateway.add_server("shelf", server=big_shelf.server)
    yield gateway
    gateway.close()


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallPlugin]:
    """Install packages with one plugin, given its name and source."""
    monkeypatch.syspath_prepend(tmp_path)

    def forget() -> None:
        installed.cache_clear()
        load_plugins.cache_clear()

    def write(name: str, source: str) -> None:
        (tmp_path / f"plugin_{name}.py").write_text(source, encoding="utf-8")
        folder = tmp_path / f"gateway_{name}-1.2.dist-info"
        folder.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: gateway-{name}\nVersion: 1.2\n"
        (folder / "METADATA").write_text(metadata, encoding="utf-8")
        points = f"[tool_gateway.plugins]\n{name} = plugin_{name}\n"
        (folder / "entry_points.txt").write_text(points, encoding="utf-8")
        forget()

    yield write
    forget()
