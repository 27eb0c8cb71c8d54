"""Calls that wait for input from their client, where only clients send requests (since 2026-07-28).

If a server asks for something during a call, the call goes on in the background and its client is
told that input is required. The client tries again with that input and with a token that names the
call. The token cannot be guessed, and is good once, for the very same request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import MCPError, types

from gateway.mcp.server_requests import on_behalf_of, passed
from gateway.serve.client import Context, SessionClient, across, stateless, who
from gateway.types import JsonObject

T = TypeVar("T")
Params = (
    types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
)
MAX_WAITING = 1000
_ANSWERS: Mapping[str, tuple[type, ...]] = {
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "elicitation/create": (types.ElicitResult,),
    "roots/list": (types.ListRootsResult,),
}


@dataclass(slots=True, eq=False)
class _Round:
    """What is asked for at one time, and the answers."""

    requests: dict[str, types.InputRequest]
    said: asyncio.Future[types.InputResponses]


class _Patient:
    """A client whose call goes on while it is away; see `Caller`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rounds: asyncio.Queue[_Round] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self.who: Hashable = who(context)
        self.capabilities: JsonObject = SessionClient(context).capabilities
        self.listens = SessionClient(context).listens

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        return await across(self._loop, lambda: self._ask(requests))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        session = self.context.session
        await across(self._loop, lambda: session.report_progress(progress, total, message))

    async def _ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        asked = _Round(dict(requests), self._loop.create_future())
        self.rounds.put_nowait(asked)
        return await asked.said


@dataclass(slots=True, eq=False)
class _Talk:
    """A call, and the last round that its client was told of."""

    client: _Patient
    work: asyncio.Task[Any]
    request: str
    """The client's request, without its answers to rounds."""
    round: _Round | None = None


class Exchanges:
    """The calls of one server that wait for their clients.

    Args:
        most: How many calls may wait at a time.
    """

    def __init__(self, *, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: dict[str, _Talk] = {}

    async def run(
        self, context: Context, params: Params, work: Callable[[], Awaitable[T]]
    ) -> T | types.InputRequiredResult:
        """Do *work* on behalf of the client, or go on with it.

        Raises:
            MCPError: The client's token names no such call.
        """
        if not stateless(context):
            with on_behalf_of(SessionClient(context)):
                return await work()
        found: T | types.InputRequiredResult
        if params.request_state is not None:
            found = await self._go_on(context, params)
            return found
        client = _Patient(context)
        with on_behalf_of(client):
            if not passed(client.capabilities):
                # The client can be asked for nothing: the call need not run in the background.
                return await work()
            task = asyncio.ensure_future(_done(work))
        found = await self._next(_Talk(client, task, _told(params)))
        return found

    async def _go_on(self, context: Context, params: Params) -> Any:
        token = params.request_state or ""
        talk = self._waiting.get(token)
        if talk is None or talk.round is None or talk.request != _told(params):
            raise MCPError(
                types.INVALID_PARAMS, "requestState names no call that waits: begin anew"
            )
        del self._waiting[token]
        talk.client.context = context
        said = params.input_responses or {}
        if not _complete(talk.round, said):
            return self._required(talk, talk.round)
        with suppress(asyncio.InvalidStateError):  # its time has just run out
            talk.round.said.set_result({key: said[key] for key in talk.round.requests})
        return await self._next(talk)

    async def _next(self, talk: _Talk) -> Any:
        """Wait until the call is done, or asks for something."""
        asking = asyncio.ensure_future(talk.client.rounds.get())
        with ExitStack() as unless_told:
            unless_told.callback(talk.work.cancel)
            try:
                await asyncio.wait({talk.work, asking}, return_when=asyncio.FIRST_COMPLETED)
                done = talk.work.done()
                told = talk.work.result() if done else self._required(talk, asking.result())
            finally:
                asking.cancel()
            unless_told.pop_all()
        return told

    def _required(self, talk: _Talk, asked: _Round) -> types.InputRequiredResult:
        if len(self._waiting) >= self._most:
            raise MCPError(types.INTERNAL_ERROR, "too many calls wait for their clients")
        token = secrets.token_urlsafe(24)
        talk.round = asked
        self._waiting[token] = talk
        talk.work.add_done_callback(lambda work: self._forget(token, work))
        return types.InputRequiredResult(input_requests=asked.requests, request_state=token)

    def _forget(self, token: str, work: asyncio.Task[Any]) -> None:
        """Forget a call that ended, even if its client never comes back for the answer."""
        self._waiting.pop(token, None)
        if not work.cancelled():
            work.exception()


async def _done(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _told(params: Params) -> str:
    return params.model_dump_json(exclude={"input_responses", "request_state", "meta"})


def _complete(asked: _Round, said: types.InputResponses) -> bool:
    return all(
        isinstance(said.get(key), _ANSWERS[request.method])
        for key, request in asked.requests.items()
    )
