"""The class `Gateway`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.config.mcp_json import parse_manifest
from gateway.embed import Embedded, Role
from gateway.errors import ClosedError, ConfigError, InvalidRequestError, UnknownToolError
from gateway.gateway import Gateway
from gateway.index import GraphFormat
from gateway.options import Options, SearchOptions, UpstreamOptions
from gateway.sync import SyncGateway
from gateway.testing import HashingEmbedder
from gateway.types import Hints, ToolDefinition
from graphs import Document, Link
from tests.conftest import OpenGateway
from tests.fakes import CountedStore, ListSource, Shelf, codes, names, tool, until


def greet(name: str) -> str:
    """Greet somebody.

    Args:
        name: Whom.
    """
    return f"Hello {name}"


async def greet_slowly(name: str) -> str:
    """Greet somebody after a while."""
    await asyncio.sleep(0)
    return f"Hello … {name}"


async def test_added_functions_are_found_and_called_as_tools(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()

    ids = [gateway.add_tool(greet), gateway.add_tool(greet_slowly, name="slow", description="Hm.")]
    result = await gateway.search("greet somebody")
    answers = [(await gateway.invoke(tool_id, {"name": "Bob"})).text for tool_id in ids]

    assert ["local/greet", "local/slow"] == ids
    first = result.matches[0]
    assert ("greet", ("name",)) == (first.name, first.required)
    assert "Greet somebody." == first.description
    assert ["Hello Bob", "Hello … Bob"] == answers


async def test_function_is_removed_by_name_or_id(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(greet)
    gateway.add_tool(greet_slowly)
    await gateway.report()

    removed = [gateway.remove_tool(name) for name in ("greet", "local/greet_slowly", "greet")]

    assert [True, True, False] == removed
    assert () == await gateway.list_tools()
    gateway.add_tool(greet)
    assert await gateway.remove_server("local")
    gateway.add_tool(greet_slowly)
    assert ["greet_slowly"] == [tool.name for tool in await gateway.list_tools()]


async def test_add_tool_replaces_a_function_only_with_replace(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(greet)
    await gateway.report()

    with pytest.raises(ConfigError, match="'greet' already"):
        gateway.add_tool(greet)
    gateway.add_tool(greet_slowly, name="greet", replace=True)

    assert "Hello … Bob" == (await gateway.invoke("greet", {"name": "Bob"})).text


async def test_invalid_replacement_keeps_the_old_function(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(greet)

    with pytest.raises(ConfigError, match="names"):
        gateway.add_tool(lambda *names: str(names), name="greet", replace=True)

    assert "Hello Bob" == (await gateway.invoke("greet", {"name": "Bob"})).text


async def test_search_finds_tools_by_hints(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_tool(greet, hints=Hints(aliases=("привіт",), examples=("say hi to Ann",)))

    assert ["greet"] == names(await gateway.search("привіт"))
    assert ["greet"] == names(await gateway.search("say hi"))


async def test_server_cannot_take_the_name_of_the_functions(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    first, second = open_gateway(), open_gateway()
    first.add_server("local", server=Shelf(catalog).server)
    second.add_tool(greet)

    with pytest.raises(ConfigError, match="'local'"):
        first.add_tool(greet)
    with pytest.raises(ConfigError, match="'local'"):
        second.add_server("local", server=Shelf(catalog).server)


async def test_source_of_the_host_is_listed_and_called(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway, source = open_gateway(), ListSource("own", catalog[:2], trusted=True)
    gateway.add_source(source, hints={"send_email": Hints(aliases=("courier",))})
    result = await gateway.search("courier")
    answer = await gateway.invoke("own/send_email")
    source.fail_with = OSError("gone")
    failed = await gateway.refresh()

    assert (["send_email"], "called send_email") == (names(result), answer.text)
    assert (2, "source_load_failed") == (failed.entities, failed.diagnostics[0].code)
    with pytest.raises(ConfigError, match="'own'"):
        gateway.add_source(source)


async def test_empty_store_of_the_host_is_used(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """An empty store may be falsy, so it must not be confused with a missing one."""
    store = CountedStore()

    await open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), vector_store=store
    ).report()

    assert 24 == len(store)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"command": "x", "url": "http://h/mcp"}, {"url": "http://h", "server": object()}],
)
def test_add_server_requires_exactly_one_target(
    open_gateway: OpenGateway, arguments: dict[str, object]
) -> None:
    with pytest.raises(ConfigError, match="exactly one"):
        open_gateway().add_server("x", **arguments)  # type: ignore[arg-type]  # this is the point


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "magic"}, "graph, embeddings, auto"),
        ({"embedder": "remote"}, "give an Embedder, or a name"),
    ],
)
def test_invalid_options_raise_config_error_with_valid_choices(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Gateway(**options)  # type: ignore[arg-type]  # this is the point


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "a", "limit": 0},
        {"query": "a", "limit": True},
        {"query": "a", "limit": 2.5},
        {"query": "a", "queries": ["b"]},
        {"queries": "abc"},
        {"queries": ["a"] * 9},
        {"query": 7},
    ],
)
async def test_search_refuses_invalid_arguments_before_listing(
    open_gateway: OpenGateway, arguments: dict[str, object]
) -> None:
    gateway = open_gateway()

    with pytest.raises(InvalidRequestError):
        await gateway.search(**arguments)  # type: ignore[arg-type]  # this is the point
    assert 0 == gateway.index_builds


async def test_search_corrects_arguments_with_a_diagnostic(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog, options=Options(search=SearchOptions(max_query_chars=20)))

    result = await gateway.search("send an e-mail " * 9, limit=99, context={"x": {1, 2}})

    assert {"limit_clamped", "query_truncated", "context_ignored"} == set(codes(result))
    assert "send_email" == names(result)[0]


@pytest.mark.parametrize(
    ("form", "begins", "holds"),
    [
        ("turtle", "@prefix", "tg:nextStep"),
        ("json-ld", "{", "nextStep"),
        ("n-triples", "<", "ns#nextStep> <urn:"),
        ("mermaid", "graph LR", "-->|nextStep|"),
        ("dot", "digraph {", 'label="nextStep"'),
    ],
)
async def test_graph_is_exported_in_five_formats(
    open_gateway: OpenGateway,
    catalog: tuple[ToolDefinition, ...],
    form: GraphFormat,
    begins: str,
    holds: str,
) -> None:
    text = await open_gateway(catalog).export_graph(form)

    assert text.startswith(begins)
    assert holds in text


async def test_graph_can_be_returned_as_a_networkx_graph(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The returned graph is a copy, which the host may change."""
    gateway = open_gateway(catalog)

    network = await gateway.graph()

    roles = {data["role"] for *_, data in network.edges(data=True)}
    assert {"member", "next_step"} <= roles
    assert len(catalog) == sum(not node.startswith("urn:") for node in network)
    network.clear()
    assert len(await gateway.graph())


async def test_diagram_shows_the_neighbours_of_a_tool(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(map(tool, ("wrap_parcel", "send_parcel", "play_music")))

    near, far, whole = [
        await gateway.export_graph("mermaid", centre=centre, hops=hops)
        for centre, hops in (("wrap_parcel", 1), ("wrap_parcel", 2), ("", 1))
    ]

    assert len(near) < len(far) < len(whole)
    assert 'n0["wrap parcel"]' in near
    with pytest.raises(ConfigError, match="turtle has no centre"):
        await gateway.export_graph(centre="wrap_parcel")
    with pytest.raises(UnknownToolError, match="wrap_parcel"):
        await gateway.export_graph("dot", centre="wrap_parcle")


@pytest.mark.requirement("edge:no-graph-keeps-vectors")
async def test_invalid_graph_document_is_skipped_with_a_diagnostic(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], tmp_path: Path
) -> None:
    (tmp_path / "bad.md").write_text("---\ntitle: never closed\n", "utf-8")
    gateway = open_gateway(
        catalog, strategy="auto", embedder=HashingEmbedder(), graph=str(tmp_path)
    )

    result = await gateway.search("send an e-mail")
    (note,) = (await gateway.report()).diagnostics

    assert ("hybrid", "send_email") == (result.mode, names(result)[0])
    assert "graph_document_invalid" == note.code
    assert "bad.md" in note.detail
    assert (note,) == result.diagnostics


@pytest.mark.requirement("edge:no-graph-keeps-vectors")
async def test_search_does_not_wait_for_a_hanging_graph_function(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The function is called once. Its result is used when it arrives."""
    gate, calls = threading.Event(), []

    def documents() -> Sequence[Document]:
        calls.append(threading.current_thread().name)
        gate.wait()
        return [
            Document(id="host:mail", title="send_email", requires=(Link(target="get_weather"),))
        ]

    options = Options(
        search=SearchOptions(query_timeout_s=0.05), upstream=UpstreamOptions(retry_after_s=0)
    )
    gateway = open_gateway(catalog, graph=documents, options=options)
    first = await gateway.search("send an e-mail")
    again = await gateway.search("send an e-mail")
    gate.set()

    async def has_them() -> bool:
        result = await gateway.search("send an e-mail")
        return not result.diagnostics and "get_weather" in [
            match.name for match in result.prerequisites
        ]

    await until(has_them)
    assert ("send_email", "send_email") == (names(first)[0], names(again)[0])
    (note,) = first.diagnostics
    assert "graph_document_invalid" == note.code
    assert "took longer than 0.05 s (SearchOptions.query_timeout_s)" in note.detail
    assert 1 == len(calls)


async def test_config_file_registers_servers_and_reports_warnings(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A server that cannot start is reported by a diagnostic of the search. The other servers
    work.
    """
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "no-such-program"}, "b": {}}}', "utf-8")
    gateway = open_gateway()
    gateway.add_tool(greet)

    warnings = gateway.add_config(path)
    more = gateway.add_config(parse_manifest({"mcpServers": {}}))
    result = await gateway.search("greet")

    assert (["config_warning"], ()) == ([note.code for note in warnings], more)
    assert (["greet"], ["source_load_failed"]) == (names(result), codes(result))
    assert "no-such-program" in result.diagnostics[0].detail


async def test_closed_gateway_refuses_everything(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Cached results are refused too. Closing twice is allowed."""
    gateway = open_gateway(catalog)
    async with gateway:
        await gateway.search("send an e-mail")
    await gateway.aclose()

    for work in (
        lambda: gateway.search("send an e-mail"),
        lambda: gateway.invoke("send_email"),
        gateway.refresh,
        gateway.report,
        gateway.list_tools,
    ):
        with pytest.raises(ClosedError):
            await work()


class Stuck(HashingEmbedder):
    """An embedder that never answers for texts with *role*."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self.role = role
        self.asked = threading.Event()

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if role == self.role:
            self.asked.set()
            await asyncio.Event().wait()
        return await super().embed(texts, role=role)


@pytest.mark.parametrize("role", ["document", "query"])
async def test_search_during_close_raises_closed_error(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], role: Role
) -> None:
    """The caller did not cancel the search, so a cancellation would be wrong."""
    embedder = Stuck(role)
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder)
    searching = asyncio.ensure_future(gateway.search("send an e-mail"))
    await asyncio.to_thread(embedder.asked.wait, 30)

    await gateway.aclose()

    with pytest.raises(ClosedError):
        await searching


class Lingering(ListSource):
    """A source that closes slowly, unless it is closed again meanwhile."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.begun = asyncio.Event()
        self.again = asyncio.Event()
        self.closed: list[str] = []

    async def close(self) -> None:
        self.begun.set()
        self.closed.append("begun")
        if len(self.closed) > 1:
            self.again.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.again.wait(), 0.3)
        self.closed.append("ended")


def test_second_close_of_a_gateway_waits_for_the_first(open_gateway: OpenGateway) -> None:
    """A signal handler and the end of a block may close at the same time."""
    gateway, source = open_gateway(), Lingering("srv")
    gateway.add_source(source)
    begun = gateway.bridge.submit(source.begun.wait)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(gateway.close)
        assert begun.result(30)
        threads.submit(gateway.close).result(30)
        assert ["begun", "ended"] == source.closed
        first.result(30)
    assert ["begun", "ended"] == source.closed


async def test_close_on_the_gateways_own_loop_is_refused(open_gateway: OpenGateway) -> None:
    """`close` would wait for the loop on which it runs."""
    gateway = open_gateway()

    async def inside() -> None:
        gateway.close()

    with pytest.raises(RuntimeError, match="own loop"):
        await gateway.bridge.run(inside)
    gateway.bridge.check_open()


async def test_repr_shows_sources_but_no_secret(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    entry = {"command": "nothing", "env": {"TOKEN": "s3cret"}}
    gateway.add_config(parse_manifest({"mcpServers": dict.fromkeys("hgfedcba", entry)}))
    small = open_gateway([tool("one", "First.")])

    large, new = repr(gateway), repr(small)
    await small.search("one")

    many = "sources=['a', 'b', 'c', 'd', 'e', 'f', ...]"
    assert f"Gateway(strategy='auto', reason='given', {many})" == large
    assert "Gateway(strategy='graph', reason='given', sources=['shelf'])" == new
    searched = new.replace("])", "], tools=1)")
    assert f"SyncGateway({searched})" == repr(SyncGateway(small))
