"""Fakes shared by the tests, in addition to `gateway.testing`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from mcp import MCPError, types
from mcp.server import Server

from gateway.embed import Embed, Embedded, EmbeddingLimits, MemoryVectorStore, QueryEmbeddings, Role
from gateway.errors import ClosedError, StoreError
from gateway.index import Eligibility, Snapshot, SnapshotCompiler, ToolGraph, traits_of
from gateway.options import GraphOptions
from gateway.runtime.vectors import Vector
from gateway.search import ModelReply
from gateway.testing import HashingEmbedder
from gateway.types import (
    Content,
    Diagnostic,
    Entity,
    Hints,
    InvokeResult,
    JsonObject,
    Listing,
    SearchResult,
    ToolDefinition,
)
from graphs import Document

V = TypeVar("V")

VERBS = (
    "list", "find", "get", "create", "update", "delete", "export", "import", "approve", "cancel",
    "archive", "share", "schedule", "validate", "summarize",
)  # fmt: skip
NOUNS = (
    "invoice", "contract", "shipment", "employee", "vacancy", "ticket", "meeting", "budget",
    "campaign", "warehouse", "supplier", "payment", "subscription", "document", "photo", "playlist",
    "recipe", "flight", "hotel", "patient",
)  # fmt: skip
SCOPES = (
    "", "draft", "yearly", "regional", "urgent", "foreign", "internal", "recurring", "shared",
    "historic",
)  # fmt: skip


def definitions(count: int) -> tuple[ToolDefinition, ...]:
    """Return distinct tools with realistic names, texts and parameters."""
    combined = ((verb, noun, scope) for scope, noun, verb in product(SCOPES, NOUNS, VERBS))
    tools = tuple(_definition(*words) for words, _ in zip(combined, range(count), strict=False))
    assert count == len(tools), f"only {len(tools)} distinct tools can be made"
    return tools


def _definition(verb: str, noun: str, scope: str) -> ToolDefinition:
    thing = f"{scope} {noun}".strip()
    return ToolDefinition(
        name="_".join(word for word in (verb, scope, noun) if word),
        description=f"{verb.capitalize()} one {thing} of the account.",
        input_schema={
            "type": "object",
            "properties": {f"{noun}_id": {"type": "string", "description": f"Which {thing}."}},
            "required": [f"{noun}_id"],
        },
    )


def tool(name: str, description: str = "", *, hints: Hints | None = None) -> ToolDefinition:
    """Return a tool without parameters."""
    return ToolDefinition(
        name=name, description=description, input_schema={"type": "object"}, hints=hints or Hints()
    )


def entity(definition: ToolDefinition, *, server: str = "srv", trusted: bool = False) -> Entity:
    """Return the entity of *definition*, exposed under its own name."""
    return Entity(
        id=f"{server}/{definition.name}",
        exposed_name=definition.name,
        server=server,
        definition=definition,
        trusted=trusted,
        digest=repr(definition),
    )


class Shelf:
    """A real MCP server in this process, whose tools can change and fail.

    Every tool answers ``called {name}``, except ``fail`` (an error) and ``wait`` (never answers).
    """

    def __init__(self, tools: Iterable[ToolDefinition] = ()) -> None:
        self.tools = list(tools)
        self.broken = False
        self.gate: Gate | None = None
        """Blocks listings until it is opened; None does not block."""
        self.listings = 0
        self.calls: list[tuple[str, JsonObject]] = []
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.server: Server[object] = Server(
            "shelf", on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(self, _context: object, _params: object) -> types.ListToolsResult:
        self.listings += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.broken:
            raise MCPError(code=types.INTERNAL_ERROR, message="the shelf is broken")
        return types.ListToolsResult(tools=[_wire(item) for item in self.tools])

    async def _call(
        self, _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self.calls.append((params.name, params.arguments or {}))
        if params.name == "wait":
            await self._wait()
        block = types.TextContent(type="text", text=f"called {params.name}")
        return types.CallToolResult(content=[block], is_error=params.name == "fail")

    async def _wait(self) -> None:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()


def _wire(definition: ToolDefinition) -> types.Tool:
    return types.Tool(
        name=definition.name,
        title=definition.title or None,
        description=definition.description or None,
        input_schema=dict(definition.input_schema),
    )


def suspicious(definition: ToolDefinition) -> ToolDefinition:
    note = Diagnostic(stage="catalog", code="tool_suspicious", detail=f"{definition.name!r}: odd")
    return replace(definition, diagnostics=(note,))


class ListSource:
    """A `Source` over a list of definitions. Every tool answers ``called {name}``."""

    def __init__(
        self, server: str, tools: Iterable[ToolDefinition] = (), *, trusted: bool = False
    ) -> None:
        self.tools = list(tools)
        self.fail_with: Exception | None = None
        self.listings = 0
        self._server = server
        self._trusted = trusted
        self._closed = False

    @property
    def server(self) -> str:
        return self._server

    @property
    def trusted(self) -> bool:
        return self._trusted

    async def list_tools(self) -> Listing:
        self._check_open()
        self.listings += 1
        if self.fail_with is not None:
            raise self.fail_with
        return Listing(definitions=tuple(self.tools))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        del arguments
        self._check_open()
        is_listed = any(item.name == tool for item in self.tools)
        text = f"called {tool}" if is_listed else f"unknown tool {tool!r}"
        block = Content(type="text", text=text, data={"type": "text", "text": text})
        return InvokeResult(tool_id=tool_id, content=(block,), is_error=not is_listed)

    async def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"source {self._server!r} is closed")


class Gate:
    """Blocks all waiting tasks, on any event loop, until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._open = False
        self._waiting: list[Future[None]] = []

    def set(self) -> None:
        """Open the gate, also for future waiters."""
        with self._lock:
            self._open = True
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            # Skip futures that were cancelled meanwhile.
            if future.set_running_or_notify_cancel():
                future.set_result(None)

    def clear(self) -> None:
        with self._lock:
            self._open = False

    async def wait(self) -> None:
        passed: Future[None] = Future()
        with self._lock:
            if self._open:
                passed.set_result(None)
            else:
                self._waiting.append(passed)
        self._loop.call_soon_threadsafe(self.reached.set)
        await asyncio.wrap_future(passed)


class Gated(HashingEmbedder):
    """An embedder of a limited number of documents, and of all queries."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.broken = False
        self.asked = 0

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        if role == "document":
            await self.gate.wait()
            self.asked += 1
            if self.broken:
                raise TimeoutError
        return await super().embed(texts, role=role)


class PanicError(BaseException):
    """An exception like those of Rust libraries, not an `Exception`."""


class TableNormalizer:
    """A `Normalizer` with a table of rewrites."""

    model_id = "table"
    provider = "testing"

    def __init__(self, rewrites: Mapping[str, str] | None = None) -> None:
        self.rewrites = dict(rewrites or {})
        self.fail_with: BaseException | None = None
        self.asked: list[str] = []

    async def rewrite(self, query: str) -> ModelReply:
        self.asked.append(query)
        if self.fail_with is not None:
            raise self.fail_with
        return ModelReply(text=self.rewrites.get(query, ""), input_tokens=3, output_tokens=2)


class CountedStore(MemoryVectorStore):
    """A store that counts its vectors. An empty store is falsy."""

    def __len__(self) -> int:
        return len(self._rows)


class Narrow(HashingEmbedder):
    """An embedder that accepts at most two texts in a request."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.info = replace(self.info, limits=EmbeddingLimits(max_texts=2))


class BrokenStore:
    """A `VectorStore` that always fails."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        raise StoreError("the disk is gone")

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        raise StoreError("the disk is full")

    def close(self) -> None:
        """Do nothing."""


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Wait until background work makes *true* hold."""
    async with asyncio.timeout(30):
        while not await true():  # noqa: ASYNC110  (no event comes from the background)
            await asyncio.sleep(0)


async def run_twice(_key: Hashable, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
    """Run equal work twice: a `Share` of requests that do not overlap."""
    await work()
    return await work()


def plain_embed(embedder: HashingEmbedder) -> Embed:
    """Embed queries without caches, telemetry or another loop."""

    async def embed(texts: Sequence[str], dimensions: int | None) -> QueryEmbeddings:
        del dimensions
        return QueryEmbeddings(vectors=embedder.vectors(texts), embedded=len(texts))

    return embed


def names(result: SearchResult) -> list[str]:
    """Return the names of the matches, best first."""
    return [match.name for match in result.matches]


def codes(result: SearchResult) -> list[str]:
    return [note.code for note in result.diagnostics]


def every_id(result: SearchResult) -> Iterator[str]:
    """Yield the ids in all lists of *result*."""
    for matches in (result.matches, result.prerequisites, result.related, result.next_steps):
        yield from (match.id for match in matches)


def compile_snapshot(
    entities: Sequence[Entity],
    *,
    rows: Mapping[str, Vector] | None = None,
    documents: Sequence[Document] = (),
    diagnostics: Sequence[Diagnostic] = (),
    options: GraphOptions | None = None,
) -> Snapshot:
    """Compile a snapshot, with vectors keyed by text."""
    compiler = SnapshotCompiler(options or GraphOptions())
    compiler.prepare(entities)
    compiler.vectors.add(rows or {})
    return compiler.compile(documents=documents, diagnostics=diagnostics)


def compile_graph(
    entities: Sequence[Entity],
    documents: Sequence[Document] = (),
    *,
    options: GraphOptions | None = None,
) -> ToolGraph:
    graph = compile_snapshot(entities, documents=documents, options=options).graph
    assert graph is not None
    return graph


def eligibility_of(entities: Sequence[Entity]) -> Eligibility:
    return Eligibility.of([entity.id for entity in entities], list(map(traits_of, entities)))


def is_running(pid: str) -> bool:
    """Return whether a process runs. A zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
