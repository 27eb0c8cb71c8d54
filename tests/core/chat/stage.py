"""One scripted model server for many tests. A role is a model name with its own script.

There are four ways to call the wrapper: blocking or async, whole or streamed. All must give the
same answer, so most tests use all four.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, get_args

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.chat.accounting import Observer
from gateway.testing import Call, ModelRequest, Policy, ScriptedModel, Turn, script
from tests.apps.testing.driving import rejoin

Way = Literal["whole", "async whole", "stream", "async stream"]
WAYS: tuple[Way, ...] = get_args(Way)
"""Ways to call the wrapper."""


def user_messages(text: str) -> list[ChatCompletionMessageParam]:
    """Return a new conversation that begins with *text*."""
    return [{"role": "user", "content": text}]


ASK = user_messages("Please help me.")


def find(query: str, **named: str) -> Turn:
    """Return a turn that calls the search tool."""
    return Turn(calls=(look(query, **named),))


def look(query: str, **named: str) -> Call:
    """Return a call of the search tool."""
    return Call("search_tools", {"query": query}, **named)


def function(name: str, **properties: object) -> dict[str, Any]:
    """Return a function tool of the host."""
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


SUM = Turn(calls=(Call("add", {"a": 1, "b": 2}),))
"""A turn in which the model adds two numbers."""
THREE = Turn("It is 3.")


@dataclass(frozen=True, slots=True)
class Role:
    """A model name that has its own script."""

    model: str
    _server: ScriptedModel

    @property
    def requests(self) -> list[ModelRequest]:
        return [request for request in self._server.requests if request.model == self.model]

    @property
    def tool_names(self) -> list[tuple[str, ...]]:
        """Names of the tools in each request."""
        return [request.tool_names for request in self.requests]

    def results(self, request: int = -1) -> list[str]:
        """Return the tool messages at the end of the request with the index *request*."""
        return [str(result["content"]) for result in self.requests[request].last_tool_results()]

    def result(self, request: int = -1) -> dict[str, Any]:
        """Return the only tool message at the end of a request, parsed as JSON."""
        (text,) = self.results(request)
        read: dict[str, Any] = json.loads(text)
        return read


class Stage:
    def __init__(self, *, chunk_chars: int = 7) -> None:
        self._lock = threading.Lock()
        self._policies: dict[str, Policy] = {}
        self.server = ScriptedModel(self._play, chunk_chars=chunk_chars)

    def _play(self, request: ModelRequest) -> Turn:
        return self._policies[request.model](request)

    def cast(self, *turns: Turn | Policy) -> Role:
        """Return a new role that replies with *turns*."""
        return self.act(script(*turns))

    def cast_sum(self, last: Turn | Policy = THREE) -> Role:
        """Return a new role that finds the adding tool, calls it, and ends with *last*."""
        return self.cast(find("add two numbers"), SUM, last)

    def act(self, policy: Policy) -> Role:
        """Return a new role that replies by *policy*."""
        with self._lock:
            role = Role(f"role-{len(self._policies)}", self.server)
            self._policies[role.model] = policy
        return role


class Speaker:
    """Sends requests in any of the four ways, and returns whole completions."""

    def __init__(self, openai: OpenAI) -> None:
        self.openai = openai
        self._asynchronous: AsyncOpenAI | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._asynchronous is not None:
            await self._asynchronous.close()

    @property
    def asynchronous(self) -> AsyncOpenAI:
        """Return the async client for this event loop."""
        if self._asynchronous is None:
            base_url = str(self.openai.base_url)
            # Without TLS, because loading the certificates is slow.
            plain = DefaultAsyncHttpxClient(verify=False)
            self._asynchronous = AsyncOpenAI(
                base_url=base_url, api_key="test", max_retries=0, http_client=plain
            )
        return self._asynchronous

    async def ask(
        self,
        way: Way,
        gateway: Gateway,
        role: Role,
        *,
        messages: Iterable[Any] = ASK,
        observer: Observer | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Send *messages* to the role, and return the completion as JSON."""
        options |= {"model": role.model, "messages": messages}
        if way.startswith("async"):
            client = AsyncAutoDiscoveryClient(self.asynchronous, gateway, observer=observer)
            if way == "async whole":
                answer: dict[str, Any] = (await client.chat.completions.create(**options)).to_dict()
                return answer
            async with await client.chat.completions.create(stream=True, **options) as stream:
                return rejoin([chunk async for chunk in stream])
        blocking = AutoDiscoveryClient(self.openai, gateway, observer=observer)
        if way == "whole":
            whole: dict[str, Any] = blocking.chat.completions.create(**options).to_dict()
            return whole
        with blocking.chat.completions.create(stream=True, **options) as opened:
            return rejoin(opened)


def message(answer: dict[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = answer["choices"][0]["message"]
    return reply


def text(answer: dict[str, Any]) -> str:
    return str(message(answer)["content"])


def calls(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (name, arguments) of each call in a completion."""
    listed = message(answer).get("tool_calls", [])
    return [(call["function"]["name"], call["function"]["arguments"]) for call in listed]
