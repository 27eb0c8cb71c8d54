"""Requests of a server to its caller while a call runs (sampling, elicitation, roots).

* Since protocol version 2026-07-28, a result may require input. The caller is asked, and the call
  is sent again with the answers.
* Before that version, the server sends a separate request, which names no call. It is refused if
  several clients wait.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp import MCPError, types
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CLIENT_CAPABILITIES_META_KEY

from gateway.errors import CallerError
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import as_object
from gateway.runtime.text import visible, visible_json
from gateway.types import JsonObject

_FORWARDED_CAPABILITIES = ("elicitation", "roots", "sampling")
_INPUT_REQUIRED = "input_required"
_MAX_ROUNDS = 16
_RETRY_PAUSE_S = 0.05
"""Pause in seconds before a call is sent again, if the server requests a repeat without input."""
_MAX_REPORTS = 64
"""Maximum number of undelivered progress reports of one call; further reports are dropped."""
_MAX_QUESTIONS = 16
"""Maximum number of unanswered requests of one server to callers; further requests are refused."""
_FLUSH_TIMEOUT_S = 1.0
"""Maximum time to deliver a call's remaining progress reports after its answer, in seconds."""

Send = Callable[[JsonObject], Awaitable[dict[str, Any]]]


class CallingClient(Protocol):
    """A client that waits for the result of a call. Its methods run on any event loop."""

    @property
    def who(self) -> Hashable:
        """Identity; equal identities mean the same client."""

    @property
    def capabilities(self) -> JsonObject:
        """Declared capabilities, in the form of MCP."""

    @property
    def listens(self) -> bool:
        """True if the client wants progress reports."""

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        """Return the client's answers to *requests*, with the same keys.

        The client must support all *requests*.

        Raises:
            CallerError: If the client refused or disconnected.
        """

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Report the progress of the call to the client."""


CALLING_CLIENT: ContextVar[CallingClient | None] = ContextVar(
    "gateway_upstream_caller", default=None
)


@contextmanager
def on_behalf_of(caller: CallingClient) -> Iterator[None]:
    """Make *caller* the client of all calls in the block."""
    token = CALLING_CLIENT.set(caller)
    try:
        yield
    finally:
        CALLING_CLIENT.reset(token)


@dataclass(slots=True, eq=False)
class ActiveCall:
    """A call that waits for the answer of its server."""

    caller: CallingClient | None
    """Client that waits for the result; None if no client can be asked."""
    limit: asyncio.Timeout
    limit_s: float
    questions: int = field(default=0)
    """Number of server requests that the caller has not answered."""
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Lock that keeps progress reports in order."""
    reports: int = field(default=0)
    """Number of undelivered progress reports."""

    @property
    def progress_listener(self) -> ProgressFnT | None:
        """Callback for progress reports; None if the caller does not want any."""
        caller = self.caller
        if caller is None or not caller.listens:
            return None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if self.reports == _MAX_REPORTS:
                return  # a later report contains more recent progress
            self.reports += 1
            try:
                async with self.reporting:
                    await caller.progress(progress, total, message and visible(message))
            finally:
                self.reports -= 1

        return report

    async def flush_progress(self, within_s: float = _FLUSH_TIMEOUT_S) -> None:
        """Wait at most *within_s* until all progress reports are delivered."""
        if not self.limit.expired():
            self.limit.reschedule(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self.reporting:
                pass

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend the time limit of the call during the block.

        After the last of overlapping blocks, the time limit restarts in full.
        """
        self.questions += 1
        self.limit.reschedule(None)
        try:
            yield
        finally:
            self.questions -= 1
            if not self.questions and not self.limit.expired():
                self.limit.reschedule(asyncio.get_running_loop().time() + self.limit_s)


class ActiveCalls:
    """Active calls of one connection, and their callers."""

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self.server = server
        self._options = options
        self._calls: list[ActiveCall] = []
        self._questions = 0

    @asynccontextmanager
    async def start(self) -> AsyncIterator[ActiveCall]:
        """Limit the time of a call, which the block sends for the current caller.

        Time spent asking the caller does not count.
        """
        limit_s = self._options.call_timeout_s
        async with asyncio.timeout(limit_s) as limit:
            call = ActiveCall(caller=CALLING_CLIENT.get(), limit=limit, limit_s=limit_s)
            self._calls.append(call)
            try:
                yield call
                await call.flush_progress()
            finally:
                self._calls.remove(call)

    async def input_rounds(self, call: ActiveCall, send: Send) -> dict[str, Any]:
        """Send a call again with the caller's input, until its result requires no more.

        *send* sends the call with additional parameters.

        Raises:
            CallerError: If the caller cannot provide the input.
        """
        more: dict[str, Any] = {}
        for answers in range(_MAX_ROUNDS + 1):
            result = await send(more)
            if result.get("resultType") != _INPUT_REQUIRED:
                return result
            if answers == _MAX_ROUNDS:
                break
            required = types.InputRequiredResult.model_validate(result, by_name=False)
            more = {}
            if required.request_state is not None:
                more["requestState"] = required.request_state
            if required.input_requests:
                more["inputResponses"] = await self._ask_caller(call, required.input_requests)
            else:
                await asyncio.sleep(_RETRY_PAUSE_S)
        raise CallerError(self.server, f"asks again after {_MAX_ROUNDS} answers", needed={})

    async def answer(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Answer a request that the server sent separately from a result."""
        calls = {call.caller.who: call for call in self._calls if call.caller is not None}
        # INVALID_REQUEST would mean a lost session if a server passes it on.
        code = types.INVALID_PARAMS
        if len(calls) > 1:
            detail = "asks for input while several clients wait, and does not name one"
            return types.ErrorData(code=code, message=detail)
        if self._questions == _MAX_QUESTIONS:
            return types.ErrorData(code=code, message="sends too many requests at once")
        call = next(iter(calls.values()), None)
        self._questions += 1
        try:
            return (await self._ask_caller(call, {"request": request}))["request"]
        except CallerError as error:
            return types.ErrorData(code=code, message=error.detail)
        finally:
            self._questions -= 1

    async def _ask_caller(
        self, call: ActiveCall | None, requests: Mapping[str, types.InputRequest]
    ) -> types.InputResponses:
        caller = call.caller if call is not None else None
        for request in requests.values():
            missing = missing_capabilities(caller, request)
            if missing:
                reason = (
                    "the client does not support it"
                    if caller
                    else "no client that can be asked is waiting"
                )
                detail = f"asks for {', '.join(missing)}, and {reason}"
                raise CallerError(self.server, detail, needed=missing)
        assert call is not None  # noqa: S101  (else something is missing)
        assert caller is not None  # noqa: S101
        limit_s = self._options.ask_timeout_s
        requests = {key: _clean_request(request) for key, request in requests.items()}
        try:
            with call.paused():
                async with asyncio.timeout(limit_s):
                    return await caller.ask(requests)
        except TimeoutError as error:
            detail = f"the client did not answer the request within {limit_s} s"
            raise CallerError(self.server, detail, needed={}) from error


async def ask_to_sign_in(server: str, address: str, limit_s: float) -> bool:
    """Ask the waiting client to open *address* for its user. Return True if the user accepts.

    Raises:
        CallerError: If the client disconnected or did not answer in time.
    """
    caller = CALLING_CLIENT.get()
    params = types.ElicitRequestURLParams(
        message=f"{server} needs a sign-in of your own. Only go on at an address of your gateway.",
        url=address,
        # Never looked up, because the sign-in page itself asks for a token.
        elicitation_id=secrets.token_urlsafe(16),
    )
    request = types.ElicitRequest(params=params)
    if caller is None or missing_capabilities(caller, request):
        return False
    try:
        async with asyncio.timeout(limit_s):
            responses = await caller.ask({"sign_in": request})
    except TimeoutError as error:
        detail = f"the client did not say within {limit_s} s whether its user signs in"
        raise CallerError(server, detail, needed={}) from error
    return getattr(responses["sign_in"], "action", "") == "accept"


def _clean_request(request: types.InputRequest) -> types.InputRequest:
    raw = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return type(request).model_validate(visible_json(raw), by_name=False)


def forwarded_capabilities(capabilities: JsonObject) -> dict[str, object]:
    """Return the client capabilities that servers may see."""
    return {
        key: capabilities[key]
        for key in _FORWARDED_CAPABILITIES
        if capabilities.get(key) is not None
    }


def declare_capabilities(method: str, params: JsonObject, *, can_be_asked: bool) -> JsonObject:
    """Return *params* with the forwarded capabilities of the current caller.

    A session declares capabilities in ``initialize`` once for all calls, and only if it
    *can_be_asked*.
    """
    if method == "initialize" and not can_be_asked:
        return {**params, "capabilities": {}}
    meta = params.get("_meta")
    if not isinstance(meta, dict) or CLIENT_CAPABILITIES_META_KEY not in meta:
        return params
    caller = CALLING_CLIENT.get()
    declared = forwarded_capabilities(caller.capabilities) if caller is not None else {}
    return {**params, "_meta": {**meta, CLIENT_CAPABILITIES_META_KEY: declared}}


def missing_capabilities(caller: CallingClient | None, request: types.InputRequest) -> JsonObject:
    """Return the capabilities that *request* needs and *caller* lacks."""
    name, part = _required_capability(request)
    declared = caller.capabilities.get(name) if caller is not None else None
    if not isinstance(declared, Mapping):
        return {name: {part: {}} if part and caller is None else {}}
    # Elicitation without parts means forms, once the only kind.
    parts = declared or ({"form": {}} if name == "elicitation" else {})
    return {name: {part: {}}} if part and part not in parts else {}


def _required_capability(request: types.InputRequest) -> tuple[str, str]:
    """Return the capability that *request* needs, and the needed part of it, or ""."""
    if isinstance(request, types.ListRootsRequest):
        return "roots", ""
    if isinstance(request, types.ElicitRequest):
        is_address = isinstance(request.params, types.ElicitRequestURLParams)
        return "elicitation", "url" if is_address else "form"
    wants_tools = request.params.tools is not None or request.params.tool_choice is not None
    return "sampling", "tools" if wants_tools else ""


def capability_error(server: str, error: MCPError) -> CallerError:
    """Return the error for a call that *server* refused for lack of a capability."""
    required = as_object(error.error.data).get("requiredCapabilities")
    missing = forwarded_capabilities(as_object(required))
    detail = f"needs a client that supports {', '.join(missing) or 'more'}, and this one does not"
    return CallerError(server, detail, needed=missing)
