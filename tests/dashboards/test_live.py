"""Every panel and every alert over metrics of real gateways, read by a real Prometheus.

Prometheus reads every second, and a round of load follows each read.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import count

import httpx2
import pytest
from mcp import Client
from openai import AsyncOpenAI, OpenAI
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from gateway import AsyncAutoDiscoveryClient, Gateway, OpenAIEmbedder
from gateway.cli.commands.dashboards import FILES
from gateway.options import Options, SearchOptions
from gateway.runtime.background_loop import Bridge
from gateway.testing import Call, Faults, ModelRequest, ScriptedModel, Turn, script
from gateway.types import ToolDefinition
from tests.apps.cli.running import Place
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import served
from tests.dashboards.prometheus import Page, prometheus
from tests.fakes import BrokenStore, ListSource, Shelf, tool

OR_ZERO = " or on () vector(0)"
"""End of an expression that replaces a missing series by 0. The test removes it, because all series
must exist here."""
WINDOW = "3s"
PATIENCE_S = 120
UNUSABLE = ToolDefinition(name="odd" * 200, input_schema={"type": "object"})


def converse(request: ModelRequest) -> Turn:
    """Search, call a found tool, and answer."""
    return script(
        Turn(calls=(Call("search_tools", {"query": "send an e-mail"}),)),
        Turn(calls=(Call("send_email"),)),
        Turn(text="It is sent."),
    )(request)


class Host:
    """A program that embeds a gateway and talks to a model, with pages of its metrics."""

    def __init__(self, open_gateway: OpenGateway, model: ScriptedModel) -> None:
        registry = CollectorRegistry()
        self.meter = MeterProvider(
            [PrometheusMetricReader(registry=registry)], shutdown_on_exit=False
        )
        self.page, self.second_page = Page(registry), Page(registry)
        self.second_page.is_refused = True
        url, key = model.base_url, "none"
        self.openai = AsyncOpenAI(base_url=url, api_key=key)
        self._embedding = OpenAI(base_url=url, api_key=key, max_retries=0)
        self.gateway = open_gateway(
            [tool("send_email", "Send an e-mail."), tool("list_invoices", "List the invoices.")],
            strategy="auto",
            embedder=OpenAIEmbedder(self._embedding, model="small-embedder"),
            vector_store=BrokenStore(),
            meter_provider=self.meter,
            # Time that a search waits for a hanging embedder.
            options=Options(search=SearchOptions(query_timeout_s=1.5)),
        )
        lost = ListSource("lost")
        lost.fail_with = ConnectionError("it is gone")
        self.gateway.add_source(lost)
        self._client = AsyncAutoDiscoveryClient(self.openai, self.gateway)

    async def close(self) -> None:
        """Close the connections."""
        await self.openai.close()
        self._embedding.close()

    async def use(self, number: int) -> None:
        """Run one conversation, and search for a new text."""
        await self._client.chat.completions.create(
            model="small-model", messages=[{"role": "user", "content": "Write to Ada."}]
        )
        await self.gateway.search(f"the invoices of customer {number}")


class Unused:
    """A program with an unused gateway."""

    def __init__(self, open_gateway: OpenGateway) -> None:
        registry = CollectorRegistry()
        reader = PrometheusMetricReader(registry=registry)
        self.meter = MeterProvider([reader], shutdown_on_exit=False)
        self.gateway: Gateway = open_gateway(meter_provider=self.meter)
        self.page = Page(registry)


class Served:
    """``gateway serve`` over two servers, one of which may be stopped, and a client."""

    def __init__(
        self, place: Place, client: Client, http: httpx2.AsyncClient, shelf: Shelf
    ) -> None:
        self.place, self._client, self._http, self._shelf = place, client, http, shelf
        self.config = str(place.folder / "servers.json")

    async def use(self, number: int) -> None:
        """Search and call tools. The last search has no matches."""
        for query in ("plan a journey", f"plan journey {number}", f"qqxzj{number} vvkwq"):
            await self._call("search_tools", {"query": query})
        await self._call("call_tool", {"name": "plan_journey", "arguments": {}})
        await self._call("call_tool", {"name": "book_hotel", "arguments": {}})

    async def fail(self, number: int) -> None:
        """Make a failing call and an empty search, and open too many sessions."""
        await self._call("call_tool", {"name": "fail", "arguments": {}})
        for letter in "abcd":
            await self._call("search_tools", {"query": f"qqxzj{letter}{number} vvkwq"})
        info = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
        begin = {"method": "initialize", "params": {"protocolVersion": "2025-06-18", **info}}
        accept = {"Accept": "application/json, text/event-stream"}
        for _ in range(2):
            await self._http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **begin}, headers=accept)

    async def change(self) -> None:
        """Let a server change a definition, and list the server again."""
        self._shelf.tools[0] = tool("plan_journey", "Plan a journey by ship.")
        await self.list_again()

    async def list_again(self) -> None:
        """List every server again."""
        (await self._http.post("/api/index/rebuild")).raise_for_status()

    async def approve(self) -> None:
        """Approve all changes."""
        await asyncio.to_thread(self.place.run, "approve", "--all", "--config", self.config)
        await self.list_again()

    async def _call(self, name: str, arguments: Mapping[str, object]) -> None:
        await self._client.call_tool(name, dict(arguments))


class Load:
    """Rounds of load, one after each read of the metrics."""

    def __init__(self, host: Host, gateway: Served) -> None:
        self._host, self._gateway = host, gateway
        self._numbers = count()
        self.is_faulty = True

    async def until_none(self, read_left: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Run rounds until *read_left* returns an empty collection."""
        remaining: Collection[str] = ()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while remaining := await read_left():
                    self._host.page.read.clear()
                    await self._host.page.read.wait()
                    await self._use(next(self._numbers))
        except TimeoutError:
            pytest.fail(f"{read_left.__name__}: {sorted(remaining)}")

    async def _use(self, number: int) -> None:
        work = [self._host.use(number), self._gateway.use(number)]
        if self.is_faulty:
            work.append(self._gateway.fail(number))
        await asyncio.gather(*work)


class Stage:
    """All running programs, and their possible faults."""

    def __init__(self, place: Place, open_gateway: OpenGateway) -> None:
        self.place, self._open_gateway = place, open_gateway
        self.shelf = Shelf(
            [tool("plan_journey", "Plan a journey by train."), tool("fail"), UNUSABLE]
        )
        self._hotels = Shelf([tool("book_hotel", "Book a room in a hotel.")])
        self._bridge = Bridge("servers")
        self._port = 0
        self._mortal = AsyncExitStack()

    async def _serve_hotels(self) -> None:
        app = self._hotels.server.streamable_http_app()
        self._port = await self._mortal.enter_async_context(served(self._bridge, app, self._port))

    @asynccontextmanager
    async def opened(self, rules: str) -> AsyncIterator[None]:
        """Start all programs."""
        async with AsyncExitStack() as stack:
            stack.callback(self._bridge.close)
            # Prometheus starts first, because it looks for targets every five seconds.
            started = prometheus(self.place.folder, rules)
            self.prometheus = await stack.enter_async_context(started)
            app = self.shelf.server.streamable_http_app()
            port = await stack.enter_async_context(served(self._bridge, app))
            await self._serve_hotels()
            stack.push_async_callback(self._mortal.aclose)
            base = stack.enter_context(self._gateway(port))
            own = await stack.enter_async_context(Client(f"{base}/mcp"))
            http = httpx2.AsyncClient(base_url=base, trust_env=False)
            await stack.enter_async_context(http)
            self.gateway = Served(self.place, own, http, self.shelf)
            self.model = stack.enter_context(ScriptedModel(converse))
            self.host = Host(self._open_gateway, self.model)
            self.unused = Unused(self._open_gateway)
            stack.push_async_callback(self.host.close)
            await self.host.gateway.report()
            pages = self.host.page, self.host.second_page, self.unused.page
            addresses = [await stack.enter_async_context(page.served()) for page in pages]
            self.prometheus.watch([base.removeprefix("http://"), *addresses])
            self.load = Load(self.host, self.gateway)
            yield

    @contextmanager
    def _gateway(self, port: int) -> Iterator[str]:
        """Run ``gateway serve``; yield its address."""
        ports = {"shelf": port, "hotels": self._port}
        servers = {name: {"url": f"http://127.0.0.1:{each}/mcp"} for name, each in ports.items()}
        upstream = {"connect_attempts": 1, "breaker_s": 0.5, "breaker_max_s": 1}
        config = self.place.config(servers, options={"upstream": upstream})
        options = "--config", config, "--metrics", "--max-sessions", "1"
        with self.place.serve(*options) as (process, _, url):
            try:
                yield url.removesuffix("/mcp")
            finally:
                # This also runs if the test fails, because everything after it waits for the end.
                process.terminate()

    async def fail(self) -> None:
        """Inject all lasting faults."""
        await self.gateway.change()
        await self._mortal.aclose()
        self.hang = self.model.gate("embeddings")

    async def mend(self) -> None:
        """End all faults that `fail` injected."""
        self.load.is_faulty = False
        self.hang.release()
        self.host.second_page.is_refused = False
        await self.unused.gateway.report()
        await self._serve_hotels()
        await self.gateway.approve()


def panel_queries() -> dict[str, tuple[str, frozenset[str]]]:
    """Return (expression, labels of the legend) of each query, keyed by panel and query."""
    queries = {}
    for file in sorted((FILES / "grafana" / "dashboards").iterdir()):
        for panel in json.loads(file.read_text("utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                labels = frozenset(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                expression = target["expr"].replace("$__rate_interval", WINDOW)
                title = f"{file.stem}: {panel['title']} ({target['legendFormat']})"
                queries[title] = expression.removesuffix(OR_ZERO), labels
    return queries


def impatient_rules() -> str:
    """Return the alert rules with short windows and without waiting times."""
    rules = (FILES / "prometheus" / "alerts.yml").read_text("utf-8")
    rules = rules.replace("[5m]", f"[{WINDOW}]").replace("offset 5m", f"offset {WINDOW}")
    return re.sub(r"(?m)^( +for:) .*$", r"\1 0s", rules)


async def test_every_panel_has_data_and_every_alert_fires_and_clears(
    place: Place, open_gateway: OpenGateway
) -> None:
    """Load and faults come first, then the faults end."""
    stage, rules = Stage(place, open_gateway), impatient_rules()
    empty, quiet = panel_queries(), {*re.findall(r"alert: (\w+)", rules)}
    assert (30, 10) <= (len(empty), len(quiet))

    async def empty_panels() -> Collection[str]:
        stage.model.fail(Faults(), "embeddings")
        for title, (expression, labels) in [*empty.items()]:
            series = await stage.prometheus.query(expression)
            if any(
                labels <= {name for name, value in sample.items() if value} for sample in series
            ):
                del empty[title]
        return empty

    async def quiet_alerts() -> Collection[str]:
        quiet.difference_update(await stage.prometheus.fired())
        texts = [text for alerts in (await stage.prometheus.firing()).values() for text in alerts]
        assert [] == [text for text in texts if "<no value>" in text or "error calling" in text]
        return quiet

    async def firing_alerts() -> Collection[str]:
        return await stage.prometheus.firing()

    async with stage.opened(rules):
        await stage.load.until_none(empty_panels)
        await stage.fail()
        await stage.load.until_none(quiet_alerts)
        await stage.mend()
        await stage.load.until_none(firing_alerts)
