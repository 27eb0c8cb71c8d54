"""A conversation that is the same in every run: ten requests, a search in every third.

The scripted model searches for the queries of the data, and calls the found tools with arguments
made from the schemas. The requests are measured where they arrive.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

from openai import OpenAI

from benchmarks.data import Benchmark, sources
from gateway import AutoDiscoveryClient, Gateway, Options
from gateway.discovery.parameters import to_parameters
from gateway.discovery.window import proxy
from gateway.options import DiscoveryOptions
from gateway.plugins.quality.distractors import FixedSource
from gateway.runtime.text import json_tokens
from gateway.testing import Call, ModelRequest, ScriptedModel, Turn
from gateway.types import Content, InvokeResult, JsonObject, Strategy
from gateway.types.listing import Listing

Mode = Literal["proxy", "stable", "native"]
MODES: tuple[Mode, ...] = ("proxy", "stable", "native")
TURNS = 10
_EVERY = 3
_SYSTEM = "You are a careful assistant of a company. Use tools where they help. " * 14
"""Some 1,000 characters."""
_RESULT = "The tool has done its work, and this is a line of what it has to tell about it. " * 5
"""Some 400 characters."""
_VALUES: Mapping[str, object] = {
    "string": "value",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


class AnsweringSource:
    """A server of the data whose tools give a constant answer."""

    trusted = False

    def __init__(self, listed: FixedSource) -> None:
        self.server = listed.server
        self._listed = listed

    async def list_tools(self) -> Listing:
        """Return the tools of the data."""
        return await self._listed.list_tools()

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Return the answer."""
        del tool, arguments
        return InvokeResult(tool_id=tool_id, content=(Content(type="text", text=_RESULT),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTrace:
    """The requests of one conversation."""

    requests: tuple[ModelRequest, ...]
    all_tokens: int
    """Estimated tokens of every schema of the catalog."""

    @property
    def definition_token_share(self) -> float:
        """Tokens of the definitions of a request, loaded ones too, against all schemas; mean."""
        sent = [json_tokens([*request.tools, *request.loaded]) for request in self.requests]
        return mean(sent) / self.all_tokens

    @property
    def first_definition_tokens(self) -> int:
        """Those of the first request."""
        return json_tokens(self.requests[0].tools)

    @property
    def prefix_reuse(self) -> float:
        """The longest common prefix with the request before, by bytes, as a share of the request;
        mean from the second request on. Tools come first, then messages, as services read them.
        """
        prompts = [prompt(request) for request in self.requests]
        shares = [_common_prefix(old, new) / len(new) for old, new in itertools.pairwise(prompts)]
        return mean(shares)

    @property
    def same_tools(self) -> bool:
        """Whether every request carried the same tools, to the byte."""
        return len({_to_bytes(request.tools) for request in self.requests}) == 1


def prompt(request: ModelRequest) -> bytes:
    """Write a request in the order in which services read it."""
    messages = request.body.get("input") if request.is_responses else request.messages
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    instructions = request.body.get("instructions") or ""
    return _to_bytes(request.tools) + _to_bytes(instructions) + _to_bytes(messages)


def _to_bytes(value: object) -> bytes:
    # Without the closing bracket: a list that grows keeps its beginning.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()[:-1]


def _common_prefix(left: bytes, right: bytes) -> int:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[:middle] == right[:middle] else (low, middle - 1)
    return low


def open_gateway(benchmark: Benchmark, mode: Mode, *, strategy: Strategy = "graph") -> Gateway:
    """Open a gateway over the data."""
    gateway = Gateway(strategy=strategy, options=Options(discovery=DiscoveryOptions(mode=mode)))
    for source in sources(benchmark):
        gateway.add_source(AnsweringSource(source))
    return gateway


async def catalog_tokens(gateway: Gateway) -> int:
    """Estimate the tokens of every schema of the catalog."""
    options = gateway.options.discovery
    entities = await gateway.list_tools()
    return json_tokens([proxy(entity, options) for entity in entities])


class Model:
    """The scripted model of one conversation."""

    def __init__(self, queries: Sequence[str], schemas: Mapping[str, JsonObject]) -> None:
        self._queries = queries
        self._schemas = schemas
        self._found: list[str] = []

    def __call__(self, request: ModelRequest) -> Turn:
        """Search in every third turn, call found tools between, answer at the end."""
        turn = request.progress
        if turn == TURNS - 1:
            return Turn("That is all that was to be done.")
        if turn % _EVERY == 0:
            query = {"query": self._queries[turn // _EVERY % len(self._queries)]}
            native = any(tool.get("type") == "tool_search" for tool in request.tools)
            return Turn(calls=(Call("tool_search" if native else "search_tools", query),))
        if turn % _EVERY == 1:
            self._found = _names(request)
        if not self._found:
            return Turn(calls=(Call("search_tools", {"query": "anything"}),))
        name = self._found[(turn - 1) % _EVERY % len(self._found)]
        arguments = _arguments(self._schemas[name])
        if name in request.functions:
            return Turn(calls=(Call(name, arguments),))
        return Turn(calls=(Call("call_tool", {"name": name, "arguments": arguments}),))


def _names(request: ModelRequest) -> list[str]:
    """Return the names that the last search found."""
    if request.loaded:
        return list(request.functions)[-3:]
    result: Any = json.loads(str(request.last_tool_results()[0]["content"]))
    return [row["name"] for row in result["tools"]]


def _arguments(schema: JsonObject) -> dict[str, object]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    return {name: _value(properties.get(name)) for name in required}


def _value(schema: object) -> object:
    if not isinstance(schema, Mapping):
        return "value"
    for key in ("default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    if isinstance(schema.get("enum"), list):
        return schema["enum"][0]
    if schema.get("type") == "object":
        return _arguments(schema)
    if schema.get("type") == "array" and schema.get("minItems"):
        return [_value(schema.get("items"))]
    kind = schema.get("type")
    return _VALUES.get(str(kind[0] if isinstance(kind, list) else kind), "value")


async def run_conversation(benchmark: Benchmark, mode: Mode) -> ConversationTrace:
    """Run one conversation."""
    gateway = open_gateway(benchmark, mode)
    async with gateway:
        entities = await gateway.list_tools()
        tokens = await catalog_tokens(gateway)
        schemas = {
            entity.exposed_name: to_parameters(entity.definition.input_schema)
            for entity in entities
        }
        queries = [str(query["query"]).split(".")[0][:100] for query in benchmark.queries[:4]]
        model = Model(queries, schemas)
        with (
            ScriptedModel(model) as server,
            OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
        ):
            await _ask(AutoDiscoveryClient(client, gateway), mode)
            return ConversationTrace(requests=tuple(server.requests), all_tokens=tokens)


async def _ask(client: AutoDiscoveryClient, mode: Mode) -> None:
    task = "Please see what is to be done for our customers today, step by step."

    def ask() -> None:
        if mode == "native":
            client.responses.create(model="scripted", instructions=_SYSTEM, input=task)
            return
        client.chat.completions.create(
            model="scripted",
            messages=[{"role": "system", "content": _SYSTEM}, {"role": "user", "content": task}],
        )

    await asyncio.to_thread(ask)
