"""MCP clients of the served gateway, which upstream servers may ask for input during a call.

* Protocol versions before 2026-07-28: the gateway sends a request on the stream of the client's
  own request.
* Later versions: the call continues in the background, and the client gets the response "input
  required". It repeats its request with the input and a random token, which is valid once.

Upstream sessions run on another event loop, so all methods of a client can be awaited on any loop.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeVar

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from gateway.discovery.approval import Approval
from gateway.errors import CallerError, GatewayError, InvalidRequestError, LimitExceededError
from gateway.mcp.server_requests import (
    CALLING_CLIENT,
    forwarded_capabilities,
    missing_capabilities,
    on_behalf_of,
)
from gateway.options import Options
from gateway.runtime.text import visible
from gateway.serve.auth import caller_of
from gateway.types import JsonObject

T = TypeVar("T")
Context = ServerRequestContext[Any]
Params = (
    types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
)
STATELESS_SINCE = "2026-07-28"
MAX_PENDING = 1000
RETRY_AFTER = "retryAfterSeconds"
"""Key in error data and result metadata: whole seconds until a rate limit allows another call."""
_RESPONSES: Mapping[str, tuple[type[Any], ...]] = {
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "elicitation/create": (types.ElicitResult,),
    "roots/list": (types.ListRootsResult,),
}
"""Response types, keyed by request method. The last type is for requests that offer tools."""


def is_stateless(context: Context) -> bool:
    """Return whether only clients send requests in the client's protocol version."""
    return context.protocol_version >= STATELESS_SINCE


def client_identity(context: Context) -> Hashable:
    """Return a key that identifies the client.

    It is the HTTP session, a new key for HTTP without a session, or else the connection.
    """
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return id(context.lifespan_context)
    return headers.get("mcp-session-id") or object()


@contextmanager
def raise_as_mcp_error(subject: JsonObject, context: Context) -> Iterator[None]:
    """Convert gateway errors that the block raises to MCP errors.

    *subject* is added to their data, except for a `CallerError`.
    """
    try:
        yield
    except CallerError as error:
        if error.needed and is_stateless(context):
            raise missing_capability(str(error), error.needed) from error
        # The SDK's clients interpret INVALID_REQUEST as a lost session.
        raise MCPError(types.INVALID_PARAMS, str(error)) from error
    except GatewayError as error:
        is_clients_fault = isinstance(error, InvalidRequestError | LimitExceededError)
        code = types.INVALID_PARAMS if is_clients_fault else types.INTERNAL_ERROR
        more = {RETRY_AFTER: wait} if (wait := seconds_to_wait(error)) is not None else {}
        raise MCPError(code, str(error), {**subject, **more}) from error


def seconds_to_wait(error: GatewayError) -> int | None:
    """Return the whole seconds until a retry. None unless *error* is a limit."""
    return ceil(error.retry_after_s) if isinstance(error, LimitExceededError) else None


def missing_capability(message: str, needed: JsonObject) -> MCPError:
    """Return the MCP error for a client without the capabilities *needed*."""
    data = {"requiredCapabilities": dict(needed)}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClient:
    """Asks the client of the current call whether a tool may be called.

    Args:
        options: Which calls need approval, and the timeout.
        shows_tools: True if the client sees each tool and its hints. Such a client asks its own
            user, and is asked only if a policy requires approval.
    """

    options: Options
    shows_tools: bool

    def asks(self, approval: Approval) -> bool:
        """Return whether the client must be asked to approve this call.

        A policy can require approval for any tool. Otherwise, ``destructive`` in
        `ChatOptions.confirm` requires it only for tools that declare themselves destructive.
        """
        if approval.rule or self.shows_tools:
            return bool(approval.rule)
        return self.options.chat.confirm != "destructive" or bool(approval.entity.hints.destructive)

    async def __call__(self, approval: Approval) -> bool:
        """Return whether the client approves the call with its complete arguments.

        Raises:
            CallerError: If the client cannot be asked.
            TimeoutError: If the client does not answer in time.
        """
        arguments = json.dumps(approval.arguments, ensure_ascii=False)
        message = visible(f"May the model call {approval.entity.id} with {arguments}?")
        form: dict[str, Any] = {"type": "object", "properties": {}}
        params = types.ElicitRequestFormParams(message=message, requested_schema=form)
        request, caller = types.ElicitRequest(params=params), CALLING_CLIENT.get()
        if caller is None or not can_ask_client():
            detail = (
                "it does not support elicitation; allow all calls with 'gateway serve --confirm "
                "never', or let it see each tool and decide, with --expose all"
            )
            raise CallerError("client", detail, needed={})
        async with asyncio.timeout(self.options.upstream.ask_timeout_s):
            responses = await caller.ask({"approval": request})
        return getattr(responses["approval"], "action", "") == "accept"


def can_ask_client() -> bool:
    """Return whether the current call's client can be asked for approval."""
    form = types.ElicitRequestFormParams(message="", requested_schema={"type": "object"})
    caller = CALLING_CLIENT.get()
    return caller is not None and not missing_capabilities(caller, types.ElicitRequest(params=form))


class _SessionClient:
    """A client that answers requests during its call (see `CallingClient`)."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.who = client_identity(context)
        self._loop = asyncio.get_running_loop()

    @property
    def capabilities(self) -> JsonObject:
        declared = self.context.session.client_capabilities or types.ClientCapabilities()
        return declared.model_dump(by_alias=True, mode="json", exclude_none=True)

    @property
    def listens(self) -> bool:
        return "progress_token" in (self.context.meta or {})

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Send *requests*, and return the responses with the same keys."""
        return await self._on_own_loop(lambda: self._send_all(requests))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        session = self.context.session
        await self._on_own_loop(lambda: session.report_progress(progress, total, message))

    async def _on_own_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run *work* on the client's event loop. Cancelling this method cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def _send_all(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        responses = await asyncio.gather(*map(self._send, requests.values()))
        return dict(zip(requests, responses, strict=True))

    async def _send(self, request: types.InputRequest) -> types.InputResponse:
        offers_tools = isinstance(request, types.CreateMessageRequest) and (
            request.params.tools is not None or request.params.tool_choice is not None
        )
        expected = _RESPONSES[request.method][-1 if offers_tools else 0]
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        try:
            response: types.InputResponse = await self.context.session.send_request(
                request, expected, metadata=metadata
            )
        except MCPError as error:
            detail = f"the client refused {request.method} ({error.error.code})"
            raise CallerError("client", detail, needed={}) from error
        return response


@dataclass(slots=True, eq=False)
class _InputRound:
    """Requests sent to the client in one response, and the client's responses."""

    requests: dict[str, types.InputRequest]
    responses: asyncio.Future[types.InputResponses]

    def is_complete(self, responses: types.InputResponses) -> bool:
        """Return whether each request has a response of the right type."""
        return all(
            isinstance(responses.get(key), _RESPONSES[request.method])
            for key, request in self.requests.items()
        )


class _DetachedClient(_SessionClient):
    """A client without a session. Its call continues between the client's requests."""

    task: asyncio.Task[Any]
    round: _InputRound | None = None
    """Latest requests to the client. None before the first ones."""

    def __init__(self, context: Context, params: Params) -> None:
        super().__init__(context)
        self.request = _request_text(params)
        """JSON of the client's request, without the client's input."""
        self._caller = caller_of(context)
        self.rounds: asyncio.Queue[_InputRound] = asyncio.Queue()

    def is_repeated_by(self, context: Context, params: Params) -> bool:
        """Return whether the same caller sent the same request again."""
        return self._caller == caller_of(context) and self.request == _request_text(params)

    async def _send_all(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        current = _InputRound(dict(requests), self._loop.create_future())
        self.rounds.put_nowait(current)
        return await current.responses


class PendingCalls:
    """Calls that wait for input from their clients. More than *max_pending* fail."""

    def __init__(self, *, max_pending: int = MAX_PENDING) -> None:
        self._max_pending = max_pending
        self._clients: dict[str, _DetachedClient] = {}

    async def run(
        self, context: Context, params: Params, work: Callable[[], Awaitable[T]]
    ) -> T | types.InputRequiredResult:
        """Run *work* as a call of the client, or continue the call that the request's token names.

        Return the result of the work, or a result that asks the client for input.

        Raises:
            MCPError: If the token does not belong to a waiting call, or too many calls wait.
        """
        if not is_stateless(context):
            with on_behalf_of(_SessionClient(context)):
                return await work()
        result: T | types.InputRequiredResult
        if params.request_state is not None:
            result = await self._resume(context, params)
            return result
        client = _DetachedClient(context, params)
        with on_behalf_of(client):
            if not forwarded_capabilities(client.capabilities):
                # Clients that cannot be asked need no background call.
                return await work()
            client.task = asyncio.ensure_future(work())
        result = await self._wait(client)
        return result

    async def _resume(self, context: Context, params: Params) -> Any:
        token = params.request_state or ""
        client = self._clients.get(token)
        if client is None or client.round is None or not client.is_repeated_by(context, params):
            message = "requestState does not belong to a waiting call; start a new call"
            raise MCPError(types.INVALID_PARAMS, message)
        del self._clients[token]
        client.context = context
        current, responses = client.round, params.input_responses or {}
        if not current.is_complete(responses):
            return self._require_input(client, current)
        with suppress(asyncio.InvalidStateError):  # the call has just reached its time limit
            current.responses.set_result({key: responses[key] for key in current.requests})
        return await self._wait(client)

    async def _wait(self, client: _DetachedClient) -> Any:
        """Return the result of the call, or its request for input."""
        next_round = asyncio.ensure_future(client.rounds.get())
        try:
            await asyncio.wait({client.task, next_round}, return_when=asyncio.FIRST_COMPLETED)
            if client.task.done():
                return client.task.result()
            return self._require_input(client, next_round.result())
        except BaseException:
            client.task.cancel()
            raise
        finally:
            next_round.cancel()

    def _require_input(
        self, client: _DetachedClient, input_round: _InputRound
    ) -> types.InputRequiredResult:
        if len(self._clients) >= self._max_pending:
            raise MCPError(types.INTERNAL_ERROR, "too many calls are waiting for their clients")
        token = secrets.token_urlsafe(24)
        client.round = input_round
        self._clients[token] = client
        client.task.add_done_callback(lambda task: self._forget(token, task))
        return types.InputRequiredResult(input_requests=input_round.requests, request_state=token)

    def _forget(self, token: str, task: asyncio.Task[Any]) -> None:
        """Remove an ended call whose client did not return."""
        self._clients.pop(token, None)
        if not task.cancelled():
            task.exception()


def _request_text(params: Params) -> str:
    return params.model_dump_json(exclude={"input_responses", "request_state", "meta"})
