"""The caller: a client that waits for a call and may be asked for something meanwhile, such as a
person's input or a model's answer.

* Code that calls on behalf of a client sets `CALLER`; a call without one has nobody to ask.
* A server is told what the caller can do and no more (`declaring`). What the caller cannot do is
  never asked of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from mcp import MCPError, types
from mcp.types import CLIENT_CAPABILITIES_META_KEY, JSONRPCRequest

from gateway.errors import CallerError
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
