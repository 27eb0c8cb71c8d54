"""Conformance of every `Source`: functions, servers, transforms, combinations, virtual servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.errors import ClosedError, UpstreamTimeoutError
from gateway.mcp import HttpServer, StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import (
    Alias,
    CombinedSource,
    Describe,
    Filter,
    FunctionSource,
    McpSource,
    Prefix,
    Rename,
    Source,
    TransformedSource,
    VirtualServer,
    VirtualSource,
)
from gateway.storage import SqlCatalog
from gateway.types import Hints
from tests.core.mcp.conftest import HERE, PATIENCE_S, PATIENT, lines, served, wait_for_lines
from tests.core.mcp.servers.plain import note, plain

Build = Callable[[UpstreamOptions], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    build: Build
    record: Path


def local_source(record: Path, options: UpstreamOptions, name: str = "it") -> FunctionSource:
    source = FunctionSource(name, options=options)

    def echo(text: str) -> str:
        """Say it again.

        Args:
            text: What to say.
        """
        return text

    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    def fail() -> None:
        """Fail."""
        raise ValueError("no")

    async def wait() -> None:
        """Wait for ever."""
        note(record, "started")
        try:
            await asyncio.Event().wait()
        finally:
            note(record, "ended")

    source.add(echo, hints=Hints(read_only=True))
    for function in (add, fail, wait):
        source.add(function)
    return source


def shaped_source(record: Path, options: UpstreamOptions) -> Source:
    """Return a transformed source with the tools of `local_source`."""
    names = {f"x_{name}": name for name in ("echo", "add", "fail", "wait")}
    inner = TransformedSource(local_source(record, options), Prefix("x_"), Filter(allow=("x_*",)))
    return TransformedSource(inner, Rename(names), Describe({"add": "Add."}))


def combined_source(record: Path, options: UpstreamOptions) -> Source:
    """Return a combined source with the tools of `local_source`, from two sources.

    Errors contain the source name ``it``.
    """
    first_source, second_source = (local_source(record, options, name) for name in ("other", "it"))
    first, second = Filter(allow=("echo", "add")), Filter(deny=("echo", "add"))
    return CombinedSource(
        "it", [TransformedSource(first_source, first), TransformedSource(second_source, second)]
    )


def virtual_source(record: Path, options: UpstreamOptions) -> Source:
    """Return a virtual source with aliases of the tools of `local_source`.

    Errors contain the name of the original server.
    """
    behind: dict[str, Source] = {"it": local_source(record, options)}
    tools = {name: Alias(of=f"it/{name}") for name in ("echo", "add", "fail", "wait")}
    return VirtualSource(
        VirtualServer(name="it", tools=tools),
        sources=lambda: behind,
        store=SqlCatalog.in_files(record.with_suffix(".sqlite3")),
        owner="",
        options=options,
    )


WITHOUT_PROCESS: Mapping[str, Callable[[Path, UpstreamOptions], Source]] = {
    "local": local_source,
    "shaped": shaped_source,
    "combined": combined_source,
    "virtual": virtual_source,
}


@pytest.fixture(params=[*WITHOUT_PROCESS, "in-process", "stdio", "http"])
async def bench(
    request: pytest.FixtureRequest, bridge: Bridge, record: Path
) -> AsyncIterator[Bench]:
    """Function that creates a source of one type, and the file in which its tools write."""
    async with AsyncExitStack() as stack:

        def on(target: object) -> Build:
            def build(options: UpstreamOptions) -> Source:
                source = McpSource("it", target, bridge=bridge, options=options)
                stack.push_async_callback(source.close)
                return source

            return build

        match request.param:
            case name if name in WITHOUT_PROCESS:
                make = WITHOUT_PROCESS[name]
                yield Bench(build=lambda options: make(record, options), record=record)
            case "in-process":
                yield Bench(build=on(plain(record)), record=record)
            case "stdio":
                script = (str(HERE / "quick.py"), "plain", str(record))
                yield Bench(build=on(StdioServer(sys.executable, script)), record=record)
            case _:
                app = plain(record).streamable_http_app()
                port = await stack.enter_async_context(served(bridge, app))
                yield Bench(build=on(HttpServer(f"http://127.0.0.1:{port}/mcp")), record=record)


@pytest.fixture
def source(bench: Bench) -> Source:
    """Source of one type, with the tools echo, add, fail and wait."""
    return bench.build(PATIENT)


async def test_listing_contains_descriptions_schemas_and_hints(source: Source) -> None:
    listing = await source.list_tools()

    echo = listing.tools[0]
    assert "it" == source.server
    assert () == listing.diagnostics
    assert ["echo", "add", "fail", "wait"] == [tool.name for tool in listing.tools]
    assert "Say it again." == echo.description
    assert ["text"] == echo.input_schema["required"]
    assert {"text": {"type": "string", "description": "What to say."}} == echo.input_schema[
        "properties"
    ]
    assert echo.hints.read_only is True
    assert echo.hints.destructive is None


async def test_call_result_contains_text_structured_content_and_error_flag(source: Source) -> None:
    echoed = await source.call("echo", {"text": "hé"}, tool_id="it/echo")
    added = await source.call("add", {"a": 1, "b": 2}, tool_id="it/add")
    failed = await source.call("fail", {}, tool_id="it/fail")

    assert ("it/echo", "hé") == (echoed.tool_id, echoed.text)
    assert (None, False) == (echoed.structured, echoed.is_error)
    assert {"type": "text", "text": "hé"} == echoed.content[0].data
    assert ('{"sum": 3}', {"sum": 3}) == (added.text, added.structured)
    assert (True, "ValueError: no") == (failed.is_error, failed.text)


async def test_call_with_an_unknown_name_or_invalid_arguments_returns_an_error_result(
    source: Source,
) -> None:
    """A model reads the result and can correct the call."""
    unknown = await source.call("nothing", {}, tool_id="it/nothing")
    unfit = await source.call("echo", {"text": 7}, tool_id="it/echo")

    assert unknown.is_error
    assert "nothing" in unknown.text
    assert unfit.is_error


async def test_concurrent_calls_get_their_own_results(source: Source) -> None:
    """The first call also opens the connection."""
    answers = await asyncio.gather(
        *(source.call("echo", {"text": str(i)}, tool_id=str(i)) for i in range(20))
    )

    assert [(str(i), str(i)) for i in range(20)] == [(a.tool_id, a.text) for a in answers]


async def test_cancelled_caller_ends_only_its_call(bench: Bench) -> None:
    source = bench.build(PATIENT)
    calling = asyncio.create_task(source.call("wait", {}, tool_id="it/wait"))
    await wait_for_lines(bench.record, "started")

    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling

    assert ["started", "ended"] == await wait_for_lines(bench.record, "ended")
    assert "on" == (await source.call("echo", {"text": "on"}, tool_id="x")).text


async def test_timeout_of_a_slow_call_names_the_option(bench: Bench) -> None:
    """The source stays usable after the timeout."""
    source = bench.build(UpstreamOptions(call_timeout_s=0.2))
    await source.list_tools()

    # On a slow start, the limit may expire before the tool runs.
    while "started" not in lines(bench.record):
        with pytest.raises(UpstreamTimeoutError, match="call_timeout_s") as raised:
            await source.call("wait", {}, tool_id="it/wait")
        assert "it" == raised.value.server

    await wait_for_lines(bench.record, "ended")
    assert 4 == len((await source.list_tools()).tools)


async def test_source_is_usable_from_several_event_loops(source: Source) -> None:
    first = await source.call("echo", {"text": "here"}, tool_id="x")
    second = await asyncio.to_thread(
        asyncio.run, source.call("echo", {"text": "there"}, tool_id="x")
    )

    assert ("here", "there") == (first.text, second.text)


async def test_closed_source_refuses_calls_and_may_be_closed_again(source: Source) -> None:
    await source.list_tools()

    async with asyncio.timeout(PATIENCE_S):
        await source.close()
        await source.close()

    with pytest.raises(ClosedError):
        await source.list_tools()
    with pytest.raises(ClosedError):
        await source.call("echo", {"text": "x"}, tool_id="x")
