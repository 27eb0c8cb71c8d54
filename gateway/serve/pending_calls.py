"""Calls that wait for input from their client, where only clients send requests (since 2026-07-28).

If a server asks for something during a call, the call goes on in the background and its client is
told that input is required. The client tries again with that input and with a token that names the
call. The token cannot be guessed, and is good once, for the very same request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import MCPError, types

from gateway.mcp.server_requests import forwarded_capabilities, on_behalf_of
from gateway.serve.client import Context, SessionClient, is_stateless

T = TypeVar("T")
Params = (
    types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
)
MAX_PENDING = 1000
_RESPONSES: Mapping[str, tuple[type, ...]] = {
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "elicitation/create": (types.ElicitResult,),
    "roots/list": (types.ListRootsResult,),
}


@dataclass(slots=True, eq=False)
class _InputRound:
    """Requests that are sent to the client together, and their responses."""

    requests: dict[str, types.InputRequest]
    responses: asyncio.Future[types.InputResponses]

    def is_complete(self, responses: types.InputResponses) -> bool:
        """Return whether *responses* hold one of the right type for each request."""
        return all(
            isinstance(responses.get(key), _RESPONSES[request.method])
            for key, request in self.requests.items()
        )


class _DetachedClient(SessionClient):
    """A client whose call goes on while it is away."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rounds: asyncio.Queue[_InputRound] = asyncio.Queue()

    async def _send_all(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        current = _InputRound(dict(requests), self._loop.create_future())
        self.rounds.put_nowait(current)
        return await current.responses


@dataclass(slots=True, eq=False)
class _PendingCall:
    """A call, and the last round that its client was told of."""

    client: _DetachedClient
    task: asyncio.Task[Any]
    request: str
    """The client's request, without its responses to rounds."""
    round: _InputRound | None = None


class PendingCalls:
    """The calls of one server that wait for their clients.

    Args:
        max_pending: How many calls may wait at a time.
    """

    def __init__(self, *, max_pending: int = MAX_PENDING) -> None:
        self._max_pending = max_pending
        self._calls: dict[str, _PendingCall] = {}

    async def run(
        self, context: Context, params: Params, work: Callable[[], Awaitable[T]]
    ) -> T | types.InputRequiredResult:
        """Do *work* on behalf of the client, or go on with it.

        Raises:
            MCPError: The client's token names no waiting call.
        """
        if not is_stateless(context):
            with on_behalf_of(SessionClient(context)):
                return await work()
        result: T | types.InputRequiredResult
        if params.request_state is not None:
            result = await self._resume(context, params)
            return result
        client = _DetachedClient(context)
        with on_behalf_of(client):
            if not forwarded_capabilities(client.capabilities):
                # The client can be asked for nothing: the call need not run in the background.
                return await work()
            task = asyncio.ensure_future(_as_coroutine(work))
        result = await self._wait(_PendingCall(client, task, _request_text(params)))
        return result

    async def _resume(self, context: Context, params: Params) -> Any:
        token = params.request_state or ""
        call = self._calls.get(token)
        if call is None or call.round is None or call.request != _request_text(params):
            raise MCPError(
                types.INVALID_PARAMS, "requestState names no call that waits: begin anew"
            )
        del self._calls[token]
        call.client.context = context
        responses = params.input_responses or {}
        if not call.round.is_complete(responses):
            return self._require_input(call, call.round)
        with suppress(asyncio.InvalidStateError):  # its time has just run out
            call.round.responses.set_result({key: responses[key] for key in call.round.requests})
        return await self._wait(call)

    async def _wait(self, call: _PendingCall) -> Any:
        """Wait until the call is done, or asks for something."""
        next_round = asyncio.ensure_future(call.client.rounds.get())
        with ExitStack() as on_error:
            on_error.callback(call.task.cancel)
            try:
                await asyncio.wait({call.task, next_round}, return_when=asyncio.FIRST_COMPLETED)
                if call.task.done():
                    result = call.task.result()
                else:
                    result = self._require_input(call, next_round.result())
            finally:
                next_round.cancel()
            on_error.pop_all()
        return result

    def _require_input(
        self, call: _PendingCall, input_round: _InputRound
    ) -> types.InputRequiredResult:
        if len(self._calls) >= self._max_pending:
            raise MCPError(types.INTERNAL_ERROR, "too many calls wait for their clients")
        token = secrets.token_urlsafe(24)
        call.round = input_round
        self._calls[token] = call
        call.task.add_done_callback(lambda task: self._forget(token, task))
        return types.InputRequiredResult(input_requests=input_round.requests, request_state=token)

    def _forget(self, token: str, task: asyncio.Task[Any]) -> None:
        """Forget a call that ended, even if its client never comes back for the result."""
        self._calls.pop(token, None)
        if not task.cancelled():
            task.exception()


async def _as_coroutine(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _request_text(params: Params) -> str:
    return params.model_dump_json(exclude={"input_responses", "request_state", "meta"})
