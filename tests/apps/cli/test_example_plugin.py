"""The example plugin of the documentation, installed like a plugin of a user."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gateway.adapters.broker import ToolBroker
from gateway.gateway import Gateway
from gateway.options import Options
from gateway.plugin_manager import installed, load_plugins
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.plugin_routes import plugin_routes
from gateway.types import Hints
from tests.apps.cli.running import Place
from tests.conftest import OpenGateway
from tests.fakes import names

SOURCE = Path(__file__).parents[3] / "examples" / "plugin"
TOKEN = "s3cret-s3cret-s3cret-s3cret-s3cret"
_PIP = ("pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the example plugin is installed."""
    folder = tmp_path_factory.mktemp("site")
    copy = shutil.copytree(SOURCE, tmp_path_factory.mktemp("source") / "plugin")
    command = [sys.executable, "-m", *_PIP, "--target", str(folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


@pytest.fixture(autouse=True)
def acme(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the example plugin importable in this process."""
    monkeypatch.syspath_prepend(site)
    for forget in (installed.cache_clear, load_plugins.cache_clear):
        forget()
    yield
    for forget in (installed.cache_clear, load_plugins.cache_clear):
        forget()


def convert(amount: float) -> str:
    """Convert currency: an amount of money."""
    return f"{amount} EUR"


def book(place: str) -> str:
    """Book a train for somebody who wants to travel."""
    return place


@pytest.fixture
def gateway(open_gateway: OpenGateway) -> Gateway:
    """A gateway with two tools that ranks by the vectors of the example plugin's embedder."""
    options = Options(plugins=("acme",))
    gateway = open_gateway(strategy="embeddings", embedder="acme", options=options)
    gateway.add_tool(convert)
    gateway.add_tool(book)
    return gateway


def test_example_plugin_has_few_lines() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".toml"}]

    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) < 150


def test_plugins_command_lists_the_example_plugin_with_its_hooks(place: Place) -> None:
    listed = {plugin["name"]: plugin for plugin in place.run("plugins", "--json").json["plugins"]}

    assert ("gateway-acme", "1.0", "") == (
        *(listed["acme"][key] for key in ("distribution", "version", "error")),
    )
    assert ["call_hooks", "commands", "embedders", "meta_tools", "routes", "signals"] == [
        hook.removeprefix("register_") for hook in listed["acme"]["hooks"]
    ]


def test_command_of_the_example_plugin_is_listed_and_runs(place: Place) -> None:
    assert "Show the words that the embedder of Acme reads." in place.run("--help").out
    assert place.run("acme").out.startswith("mail, message")


async def test_embedder_of_the_example_plugin_ranks_tools(gateway: Gateway) -> None:
    result = await gateway.search("travel by train")

    assert ("local/book", "vector") == (result.matches[0].id, result.mode)


async def test_guardrail_of_the_example_plugin_rewrites_answers(gateway: Gateway) -> None:
    answer = await gateway.invoke("local/book", {"place": "Rome, on the account ACME-4711"})

    assert "Rome, on the account ACME-***" == answer.text
    assert "4711" not in repr(answer)


async def test_signal_of_the_example_plugin_ranks_tools_with_a_tag_higher(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway(strategy="auto", embedder="acme", options=Options(plugins=("acme",)))
    gateway.add_tool(convert, hints=Hints(tags=("pinned",)))
    gateway.add_tool(book)

    result = await gateway.search("travel", explain=True)

    lifts = [dict(ranks.signals)["pinned"] for ranks in result.ranks]
    assert {"convert": 0.5, "book": 0} == dict(zip(names(result), lifts, strict=True))


async def test_meta_tool_of_the_example_plugin_is_offered_and_answers(gateway: Gateway) -> None:
    broker = ToolBroker(gateway)
    tools = await broker.build_tools((), ())

    answer = await broker.answer(tools, "count_tools", {})
    wrong = await broker.answer(tools, "count_tools", {"of": "mail"})

    assert "count_tools" in tools.tool_names
    assert "2 tools" == answer.text
    assert "count_tools does not take of" in wrong.error


async def test_http_route_of_the_example_plugin_requires_the_token_of_the_server(
    gateway: Gateway,
) -> None:
    app = http_app(mcp_server(gateway), HttpOptions(token=TOKEN), routes=plugin_routes(gateway))
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        refused = await client.get("/plugins/acme/tools")
        headers = {"authorization": f"Bearer {TOKEN}"}
        answer = await client.get("/plugins/acme/tools", headers=headers)

    assert 401 == refused.status_code
    assert {"local/convert", "local/book"} == {*answer.json()}
