"""What a server asks while a call runs, and the way back to the caller.

* Code that calls on behalf of a client sets `CALLING_CLIENT`; a call without one has no client to
  ask.
* A server is told what the caller can do and no more (`declare_capabilities`). What the caller
  cannot do is never asked of it.
* Since 2026-07-28 the answer to a call may be that input is required: the caller is asked, and the
  call is sent again with its answers, round by round.
* Before, a server sends a request of its own, which names no call. The caller of the active calls
  answers it, if all of them have the same one; otherwise it is refused.
* While a caller is asked, the call's own time limit rests.
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

_FORWARDED = ("elicitation", "roots", "sampling")
_INPUT_REQUIRED = "input_required"
_MAX_ROUNDS = 16
_RETRY_PAUSE_S = 0.05
"""How long a server that asks for nothing but patience is left alone."""
_MAX_REPORTS = 64
"""Reports of progress of one call that wait for its caller; more are dropped."""
_MAX_QUESTIONS = 16
"""Requests of one server that wait for a caller's answer; more are refused."""
_PROGRESS_GRACE_S = 1.0
"""How long after an answer its caller may take to hear the progress before it."""

Send = Callable[[JsonObject], Awaitable[dict[str, Any]]]


class CallingClient(Protocol):
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
        """Hear how far the call is."""


CALLING_CLIENT: ContextVar[CallingClient | None] = ContextVar(
    "gateway_upstream_caller", default=None
)


@contextmanager
def on_behalf_of(caller: CallingClient) -> Iterator[None]:
    """Make every call in this context one of *caller*."""
    token = CALLING_CLIENT.set(caller)
    try:
        yield
    finally:
        CALLING_CLIENT.reset(token)


@dataclass(slots=True, eq=False)
class ActiveCall:
    """One call that waits for its answer."""

    caller: CallingClient | None
    """The client that waits for it; None if no client can be asked."""
    limit: asyncio.Timeout
    limit_s: float
    questions: int = field(default=0)
    """How many times its caller is being asked at the moment."""
    reporting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while progress is passed on, so that it arrives in order."""
    reports: int = field(default=0)
    """How many reports of progress are to be passed on."""

    @property
    def progress_listener(self) -> ProgressFnT | None:
        """The function that passes progress on; None if the caller does not want any."""
        caller = self.caller
        if caller is None or not caller.listens:
            return None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if self.reports == _MAX_REPORTS:
                return  # A later one says more.
            self.reports += 1
            try:
                async with self.reporting:
                    await caller.progress(progress, total, message and visible(message))
            finally:
                self.reports -= 1

        return report

    async def flush_progress(self, within_s: float = _PROGRESS_GRACE_S) -> None:
        """Wait until all progress is passed on: after the answer it would be lost.

        A caller that does not take it in time loses the rest of the progress, not the answer.
        """
        if not self.limit.expired():
            self.limit.reschedule(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self.reporting:
                pass

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let the time limit rest for the block, and begin it anew after the last question."""
        self.questions += 1
        self.limit.reschedule(None)
        try:
            yield
        finally:
            self.questions -= 1
            if not self.questions and not self.limit.expired():
                self.limit.reschedule(asyncio.get_running_loop().time() + self.limit_s)


class ActiveCalls:
    """The calls of one connection that wait for an answer, and their callers.

    Args:
        server: For messages.
        options: How long a call and an answer may take.
    """

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self.server = server
        self._options = options
        self._calls: list[ActiveCall] = []
        self._questions = 0

    @asynccontextmanager
    async def start(self) -> AsyncIterator[ActiveCall]:
        """Hold a call of the current caller, within its time limit without the time of asking."""
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
        """Send a request until its result is no longer that input is required.

        Args:
            call: The request.
            send: Sends it, with more parameters.

        Raises:
            CallerError: What is asked for cannot be had.
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
                more["inputResponses"] = await self._ask(call, required.input_requests)
            else:
                await asyncio.sleep(_RETRY_PAUSE_S)
        raise CallerError(self.server, f"asks again after {_MAX_ROUNDS} answers", needed={})

    async def answer(self, request: types.InputRequest) -> types.InputResponse | types.ErrorData:
        """Answer a request that the server sent of its own."""
        calls = {call.caller.who: call for call in self._calls if call.caller is not None}
        # Not INVALID_REQUEST: from a server that passes it on, that would mean a lost session.
        code = types.INVALID_PARAMS
        if len(calls) > 1:
            detail = "asks for input while several clients wait, and does not say which it means"
            return types.ErrorData(code=code, message=detail)
        if self._questions == _MAX_QUESTIONS:
            return types.ErrorData(code=code, message="asks for too many things at once")
        call = next(iter(calls.values()), None)
        self._questions += 1
        try:
            return (await self._ask(call, {"request": request}))["request"]
        except CallerError as error:
            return types.ErrorData(code=code, message=error.detail)
        finally:
            self._questions -= 1

    async def _ask(
        self, call: ActiveCall | None, requests: Mapping[str, types.InputRequest]
    ) -> types.InputResponses:
        caller = call.caller if call is not None else None
        for request in requests.values():
            missing = missing_capabilities(caller, request)
            if missing:
                reason = (
                    "the client cannot do it"
                    if caller
                    else "no client that can be asked waits here"
                )
                detail = f"asks for {', '.join(missing)}, and {reason}"
                raise CallerError(self.server, detail, needed=missing)
        assert call is not None  # noqa: S101  (else something is missing)
        assert caller is not None  # noqa: S101
        limit_s = self._options.ask_timeout_s
        requests = {key: _clean(request) for key, request in requests.items()}
        try:
            with call.paused():
                async with asyncio.timeout(limit_s):
                    return await caller.ask(requests)
        except TimeoutError as error:
            detail = f"the client did not answer what it asks for within {limit_s} s"
            raise CallerError(self.server, detail, needed={}) from error


async def ask_to_sign_in(server: str, address: str, limit_s: float) -> bool:
    """Ask the client that waits for the call to have its user open *address*.

    Returns:
        Whether the user will; false if the client opens no addresses.

    Raises:
        CallerError: It went away, or did not answer in time.
    """
    caller = CALLING_CLIENT.get()
    params = types.ElicitRequestURLParams(
        message=f"{server} needs a sign-in of your own. Only go on at an address of your gateway.",
        url=address,
        # Of no use to anybody: the page asks its visitor for a token.
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


def _clean(request: types.InputRequest) -> types.InputRequest:
    """Return *request* without what no reader can see: a person or a model reads it."""
    raw = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return type(request).model_validate(visible_json(raw), by_name=False)


def forwarded_capabilities(capabilities: JsonObject) -> dict[str, object]:
    """Return those of a client's capabilities that servers behind the gateway are told."""
    return {key: capabilities[key] for key in _FORWARDED if capabilities.get(key) is not None}


def declare_capabilities(method: str, params: JsonObject, *, can_be_asked: bool) -> JsonObject:
    """Return *params* with the capabilities of the caller that waits for the answer, if any.

    Args:
        method: A request on its way to a server.
        params: Its parameters.
        can_be_asked: Whether a session, which declares once for all its calls, declares any.
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
    """Return the capabilities that *caller* lacks for *request*; empty if none."""
    name, part = _required_capability(request)
    declared = caller.capabilities.get(name) if caller is not None else None
    if not isinstance(declared, Mapping):
        return {name: {part: {}} if part and caller is None else {}}
    # An elicitation capability without parts means forms, once the only kind.
    parts = declared or ({"form": {}} if name == "elicitation" else {})
    return {name: {part: {}}} if part and part not in parts else {}


def _required_capability(request: types.InputRequest) -> tuple[str, str]:
    """Return the capability that a client needs for *request*, and which part of it, if any."""
    if isinstance(request, types.ListRootsRequest):
        return "roots", ""
    if isinstance(request, types.ElicitRequest):
        is_address = isinstance(request.params, types.ElicitRequestURLParams)
        return "elicitation", "url" if is_address else "form"
    wants_tools = request.params.tools is not None or request.params.tool_choice is not None
    return "sampling", "tools" if wants_tools else ""


def capability_error(server: str, error: MCPError) -> CallerError:
    """Return the error that says that *server* refused a call for what its caller cannot do."""
    required = as_object(error.error.data).get("requiredCapabilities")
    missing = forwarded_capabilities(as_object(required))
    detail = f"needs a client that can do {', '.join(missing) or 'more'}, and this one cannot"
    return CallerError(server, detail, needed=missing)
