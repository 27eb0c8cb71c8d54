"""What a server asks while a call runs, and the way back to the caller.

* Since 2026-07-28 the answer to a call may be that input is required: the caller is asked, and the
  call is sent again with what it said, round by round.
* Before, a server sends a request of its own, which names no call. The caller of the calls under
  way answers it, if all of them have the same one; otherwise nobody could tell whose it is.
* While a caller is asked, the call's own time limit rests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mcp import MCPError, types
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CLIENT_CAPABILITIES_META_KEY, JSONRPCRequest

from gateway.errors import CallerError
from gateway.options import UpstreamOptions
from gateway.types import JsonObject

_PASSED = ("elicitation", "roots", "sampling")
_NOTHING: JsonObject = {}


class Caller(Protocol):
    """A client that waits for a call. Its methods may be awaited on any loop."""

    @property
    def who(self) -> Hashable:
        """Which client it is: equal values are the same client."""

    @property
    def capabilities(self) -> JsonObject:
        """The capabilities that it declared, as the protocol writes them."""

    @property
    def listens(self) -> bool:
        """Whether it wants to hear of progress."""

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Have *requests* answered, all of which it can do.

        Raises:
            CallerError: It refused, or went away.
        """

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell it how far the call is."""


CALLER: ContextVar[Caller | None] = ContextVar("gateway_upstream_caller", default=None)


@contextmanager
def on_behalf_of(caller: Caller) -> Iterator[None]:
    """Make every call in this context one of *caller*."""
    token = CALLER.set(caller)
    try:
        yield
    finally:
        CALLER.reset(token)


def passed(capabilities: JsonObject) -> dict[str, object]:
    """Give those of a client's capabilities that servers behind us are told."""
    return {key: capabilities[key] for key in _PASSED if capabilities.get(key) is not None}


def declaring(message: JSONRPCRequest, *, askable: bool) -> JSONRPCRequest:
    """Give *message* with the capabilities of the caller that waits for its answer, if any.

    Args:
        message: On its way to a server.
        askable: Whether a session, which declares once for all its calls, declares any.
    """
    params = message.params or {}
    if message.method == "initialize" and not askable:
        return message.model_copy(update={"params": {**params, "capabilities": {}}})
    meta = params.get("_meta")
    if not isinstance(meta, dict) or CLIENT_CAPABILITIES_META_KEY not in meta:
        return message
    caller = CALLER.get()
    told = passed(caller.capabilities if caller is not None else _NOTHING)
    changed = {**params, "_meta": {**meta, CLIENT_CAPABILITIES_META_KEY: told}}
    return message.model_copy(update={"params": changed})


def needed(request: types.InputRequest) -> JsonObject:
    """Give the capabilities that a client needs for *request*."""
    if isinstance(request, types.ListRootsRequest):
        return {"roots": {}}
    if isinstance(request, types.ElicitRequest):
        form = not isinstance(request.params, types.ElicitRequestURLParams)
        return {"elicitation": {"form": {}} if form else {"url": {}}}
    wants_tools = request.params.tools is not None or request.params.tool_choice is not None
    return {"sampling": {"tools": {}} if wants_tools else {}}


def lacking(capabilities: JsonObject, request: types.InputRequest) -> JsonObject:
    """Give what *capabilities* lack for *request*; empty if nothing."""
    for name, parts in needed(request).items():
        have = capabilities.get(name)
        if not isinstance(have, Mapping):
            return {name: {}}
        # An elicitation capability without parts means forms, once the only kind.
        own = have or ({"form": {}} if name == "elicitation" else {})
        if isinstance(parts, Mapping) and not set(parts) <= set(own):
            return {name: parts}
    return {}


def check(server: str, caller: Caller | None, request: types.InputRequest) -> None:
    """Refuse to ask *caller* for what it cannot do.

    Raises:
        CallerError: There is nobody, or it declared no such capability.
    """
    missing = needed(request) if caller is None else lacking(caller.capabilities, request)
    if missing:
        what = ", ".join(missing)
        whom = "nobody waits here who can be asked" if caller is None else "the client cannot do it"
        raise CallerError(server, f"asks for {what}, and {whom}", needed=missing)


def incapable(server: str, error: MCPError) -> CallerError:
    """Say that *server* refused a call for what its caller cannot do."""
    data = error.error.data
    found = data.get("requiredCapabilities") if isinstance(data, Mapping) else None
    missing = passed(found if isinstance(found, Mapping) else {})
    told = f"needs a client that can do {', '.join(missing) or 'more'}, and this one cannot"
    return CallerError(server, told, needed=missing)


T = TypeVar("T")
_MAX_ROUNDS = 16
_PATIENCE_S = 0.05
"""How long a server that asks for nothing but patience is left alone."""
_TOLD_S = 1.0
"""How long after an answer its caller may take to hear the progress before it."""

Send = Callable[[types.InputResponses | None, str | None], Awaitable[T | types.InputRequiredResult]]


@dataclass(slots=True, eq=False)
class Call:
    """One call under way."""

    caller: Caller | None
    """Whoever waits for it; None if nobody can be asked."""
    limit: asyncio.Timeout
    limit_s: float
    asking: int = field(default=0)
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while progress is passed on, so that it arrives in order."""

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on to the caller, after all that came before."""
        if self.caller is not None:
            async with self.telling:
                await self.caller.progress(progress, total, message)

    async def told(self, within_s: float = _TOLD_S) -> None:
        """Wait until all progress is passed on: after the answer it would be lost.

        A caller that does not take it in time loses the rest of the progress, not the answer.
        """
        if not self.limit.expired():
            self.limit.reschedule(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self.telling:
                pass

    def pause(self) -> None:
        """Let its time limit rest."""
        self.asking += 1
        self.limit.reschedule(None)

    def go_on(self) -> None:
        """Begin its time limit anew, once nobody is asked any more."""
        self.asking -= 1
        if not self.asking and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self.limit_s)


class Backchannel:
    """The calls under way on one connection, and who waits for them.

    Args:
        server: For messages.
        options: How long a call and an answer may take.
    """

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self.server = server
        self._options = options
        self._calls: list[Call] = []

    @asynccontextmanager
    async def call(self, limit_s: float) -> AsyncIterator[Call]:
        """Hold a call of the current caller, for at most *limit_s* without the time of asking."""
        async with asyncio.timeout(limit_s) as limit:
            call = Call(caller=CALLER.get(), limit=limit, limit_s=limit_s)
            self._calls.append(call)
            try:
                yield call
                await call.told()
            finally:
                self._calls.remove(call)

    @staticmethod
    def listener(call: Call) -> ProgressFnT | None:
        """Give what hears of the progress of *call*; None if nobody wants to."""
        return call.tell if call.caller is not None and call.caller.listens else None

    async def rounds(self, call: Call, send: Send[T]) -> T:
        """Send a request until its answer is no longer that input is required.

        Raises:
            CallerError: What is asked for cannot be had.
        """
        answer = await send(None, None)
        for _ in range(_MAX_ROUNDS):
            if not isinstance(answer, types.InputRequiredResult):
                return answer
            responses: types.InputResponses | None = None
            if answer.input_requests:
                responses = await self._ask(call, answer.input_requests)
            else:
                await asyncio.sleep(_PATIENCE_S)
            answer = await send(responses, answer.request_state)
        if isinstance(answer, types.InputRequiredResult):
            raise CallerError(self.server, f"asks again after {_MAX_ROUNDS} answers", needed={})
        return answer

    async def answer(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Answer a request that the server sent of its own."""
        try:
            return (await self._ask(self._whose(), {"asked": request}))["asked"]
        except CallerError as error:
            # Not INVALID_REQUEST: from a server that passes it on, that would mean a lost session.
            return types.ErrorData(code=types.INVALID_PARAMS, message=error.detail)

    def _whose(self) -> Call | None:
        waiting = [call for call in self._calls if call.caller is not None]
        if len({call.caller.who for call in waiting if call.caller is not None}) > 1:
            told = "asks for input while several clients wait: nobody can tell whom it means"
            raise CallerError(self.server, told, needed={})
        return waiting[-1] if waiting else None

    async def _ask(
        self, call: Call | None, requests: Mapping[str, types.InputRequest]
    ) -> types.InputResponses:
        caller = call.caller if call is not None else None
        for request in requests.values():
            check(self.server, caller, request)
        if call is None or caller is None:
            raise CallerError(self.server, "asks for nothing that is known", needed={})
        limit_s = self._options.ask_timeout_s
        call.pause()
        try:
            async with asyncio.timeout(limit_s):
                return await caller.ask(requests)
        except TimeoutError as error:
            told = f"the client did not answer what it asks for within {limit_s} s"
            raise CallerError(self.server, told, needed={}) from error
        finally:
            call.go_on()
