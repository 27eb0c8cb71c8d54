"""A client of ours, as the caller that an upstream server may ask for something during a call.

* Before 2026-07-28 the client is asked by a request of ours, on the stream of its own request.
* Since then only clients send requests: the call goes on in the background, and its client is told
  that input is required. It tries again with that input and with a token that names the call. The
  token cannot be guessed, and is good once, for the very same request.

Sessions of servers live on another loop than clients: every method of a client may be awaited on
any loop.
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
"""The key under which an error says when a limit allows a call again."""
_RESPONSES: Mapping[str, tuple[type[Any], ...]] = {
    "sampling/createMessage": (types.CreateMessageResult, types.CreateMessageResultWithTools),
    "elicitation/create": (types.ElicitResult,),
    "roots/list": (types.ListRootsResult,),
}
"""The types of response to each request; the last one to a request that offers tools."""


def is_stateless(context: Context) -> bool:
    """Return whether the client speaks a version in which only clients send requests."""
    return context.protocol_version >= STATELESS_SINCE


def client_identity(context: Context) -> Hashable:
    """Return the identity of a client: its session, its connection, or else its request."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return id(context.lifespan_context)
    return headers.get("mcp-session-id") or object()


@contextmanager
def raise_as_mcp_error(subject: JsonObject, context: Context) -> Iterator[None]:
    """Raise the errors of the block as errors of the protocol.

    Args:
        subject: What the request is about, for the data of the error.
        context: The request.
    """
    try:
        yield
    except CallerError as error:
        if error.needed and is_stateless(context):
            raise missing_capability(str(error), error.needed) from error
        # Not INVALID_REQUEST, which the SDK's clients take for a lost session.
        raise MCPError(types.INVALID_PARAMS, str(error)) from error
    except GatewayError as error:
        is_clients_fault = isinstance(error, InvalidRequestError | LimitExceededError)
        code = types.INVALID_PARAMS if is_clients_fault else types.INTERNAL_ERROR
        more = {RETRY_AFTER: wait} if (wait := seconds_to_wait(error)) is not None else {}
        raise MCPError(code, str(error), {**subject, **more}) from error


def seconds_to_wait(error: GatewayError) -> int | None:
    """Return after how many whole seconds to try again; None if no limit was reached."""
    return ceil(error.retry_after_s) if isinstance(error, LimitExceededError) else None


def missing_capability(message: str, needed: JsonObject) -> MCPError:
    """Return the error for a client that lacks the capabilities *needed*."""
    data = {"requiredCapabilities": dict(needed)}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClient:
    """Asks the client of the current call about approvals.

    Args:
        options: What is asked about, and how long the client may take.
        shows_tools: Whether the client was shown the tool with its hints: then it asks its own user
            or does not, and is asked only where a policy wants that, which no hint says.
    """

    options: Options
    shows_tools: bool

    def asks(self, approval: Approval) -> bool:
        """Return whether the client is asked at all.

        With `ChatOptions.confirm` at ``destructive`` it is asked only about tools that say that
        they may destroy: most say nothing, and about those it heard already that the call tool may
        destroy. It is asked about every tool of which a policy wants that.
        """
        if approval.rule or self.shows_tools:
            return bool(approval.rule)
        return self.options.chat.confirm != "destructive" or bool(approval.entity.hints.destructive)

    async def __call__(self, approval: Approval) -> bool:
        """Ask; the call is shown whole.

        Raises:
            CallerError: It cannot be asked.
            TimeoutError: It took longer.
        """
        arguments = json.dumps(approval.arguments, ensure_ascii=False)
        message = visible(f"May the model call {approval.entity.id} with {arguments}?")
        form: dict[str, Any] = {"type": "object", "properties": {}}
        params = types.ElicitRequestFormParams(message=message, requested_schema=form)
        request, caller = types.ElicitRequest(params=params), CALLING_CLIENT.get()
        if caller is None or not can_ask_client():
            detail = (
                "it takes no elicitation; allow all calls with 'gateway serve --confirm never', or "
                "let it see each tool and decide, with --expose all"
            )
            raise CallerError("client", detail, needed={})
        async with asyncio.timeout(self.options.upstream.ask_timeout_s):
            responses = await caller.ask({"approval": request})
        return getattr(responses["approval"], "action", "") == "accept"


def can_ask_client() -> bool:
    """Return whether the client of the current call can be asked about an approval."""
    form = types.ElicitRequestFormParams(message="", requested_schema={"type": "object"})
    caller = CALLING_CLIENT.get()
    return caller is not None and not missing_capabilities(caller, types.ElicitRequest(params=form))


class _SessionClient:
    """A client with a session, which answers requests; see
    `gateway.mcp.server_requests.CallingClient`.

    Args:
        context: Its call.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.who = client_identity(context)
        self._loop = asyncio.get_running_loop()

    @property
    def capabilities(self) -> JsonObject:
        """See `CallingClient.capabilities`."""
        declared = self.context.session.client_capabilities or types.ClientCapabilities()
        return declared.model_dump(by_alias=True, mode="json", exclude_none=True)

    @property
    def listens(self) -> bool:
        """See `CallingClient.listens`."""
        return "progress_token" in (self.context.meta or {})

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """See `CallingClient.ask`."""
        return await self._on_own_loop(lambda: self._send_all(requests))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """See `CallingClient.progress`."""
        session = self.context.session
        await self._on_own_loop(lambda: session.report_progress(progress, total, message))

    async def _on_own_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await *work* on the client's loop; when the waiting is cancelled, so is the work."""
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
    """Requests that are sent to the client together, and their responses."""

    requests: dict[str, types.InputRequest]
    responses: asyncio.Future[types.InputResponses]

    def is_complete(self, responses: types.InputResponses) -> bool:
        """Return whether *responses* hold one of the right type for each request."""
        return all(
            isinstance(responses.get(key), _RESPONSES[request.method])
            for key, request in self.requests.items()
        )


class _DetachedClient(_SessionClient):
    """A client whose call goes on while it is away."""

    task: asyncio.Task[Any]
    """The call."""
    round: _InputRound | None = None
    """The last one that it was told of."""

    def __init__(self, context: Context, params: Params) -> None:
        super().__init__(context)
        self.request = _request_text(params)
        """Without its responses to rounds."""
        self._caller = caller_of(context)
        self.rounds: asyncio.Queue[_InputRound] = asyncio.Queue()

    def sent(self, context: Context, params: Params) -> bool:
        """Return whether this request is its own one again, of the same caller."""
        return self._caller == caller_of(context) and self.request == _request_text(params)

    async def _send_all(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        current = _InputRound(dict(requests), self._loop.create_future())
        self.rounds.put_nowait(current)
        return await current.responses


class PendingCalls:
    """The calls of one server that wait for their clients.

    Args:
        max_pending: How many calls may wait at a time.
    """

    def __init__(self, *, max_pending: int = MAX_PENDING) -> None:
        self._max_pending = max_pending
        self._clients: dict[str, _DetachedClient] = {}

    async def run(
        self, context: Context, params: Params, work: Callable[[], Awaitable[T]]
    ) -> T | types.InputRequiredResult:
        """Do *work* on behalf of the client, or go on with it.

        Raises:
            MCPError: The client's token names no waiting call.
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
                # The client can be asked for nothing: the call need not run in the background.
                return await work()
            client.task = asyncio.ensure_future(work())
        result = await self._wait(client)
        return result

    async def _resume(self, context: Context, params: Params) -> Any:
        token = params.request_state or ""
        client = self._clients.get(token)
        if client is None or client.round is None or not client.sent(context, params):
            message = "requestState names no call that waits: begin anew"
            raise MCPError(types.INVALID_PARAMS, message)
        del self._clients[token]
        client.context = context
        current, responses = client.round, params.input_responses or {}
        if not current.is_complete(responses):
            return self._require_input(client, current)
        with suppress(asyncio.InvalidStateError):  # its time has just run out
            current.responses.set_result({key: responses[key] for key in current.requests})
        return await self._wait(client)

    async def _wait(self, client: _DetachedClient) -> Any:
        """Wait until the call is done, or asks for something."""
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
            raise MCPError(types.INTERNAL_ERROR, "too many calls wait for their clients")
        token = secrets.token_urlsafe(24)
        client.round = input_round
        self._clients[token] = client
        client.task.add_done_callback(lambda task: self._forget(token, task))
        return types.InputRequiredResult(input_requests=input_round.requests, request_state=token)

    def _forget(self, token: str, task: asyncio.Task[Any]) -> None:
        """Forget a call that ended, even if its client never comes back for the result."""
        self._clients.pop(token, None)
        if not task.cancelled():
            task.exception()


def _request_text(params: Params) -> str:
    return params.model_dump_json(exclude={"input_responses", "request_state", "meta"})
