"""Where tools live: one protocol for local functions and for servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from gateway.types import (
    Content,
    InvokeResult,
    JsonObject,
    Kind,
)
from gateway.types.listing import Listing, WatchCallbacks

Function = Callable[..., object]
"""What a host may offer as a tool, plain or async."""


class UnfitError(Exception):
    """Arguments that a function cannot be called with, and why."""


@runtime_checkable
class ResourceSource(Protocol):
    """A source that has more than tools: resources, prompts, completions."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send one request that changes nothing, and give its result as JSON.

        Args:
            method: ``resources/read``, ``prompts/get`` or ``completion/complete``.
            params: As the protocol wants them, with the source's own names and URIs.

        Raises:
            InvalidRequestError: The source says that there is no such thing.
            UpstreamError: It could not be asked, or failed.
            ClosedError: After `close`.
        """


@runtime_checkable
class Watchable(Protocol):
    """A source that may say when a resource is another one."""

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of *uri* until cancelled, over as many connections as it takes.

        Raises:
            InvalidRequestError: The source does not tell of this one.
            UpstreamError: It could not be asked, the first time.
            ClosedError: After `close`.
        """


class Source(Protocol):
    """Tools behind one name. May be used from any event loop."""

    @property
    def server(self) -> str:
        """The name that the host gave, unique in a gateway; never what a server calls itself."""

    @property
    def trusted(self) -> bool:
        """Whether the host itself wrote the definitions."""

    async def list_tools(self) -> Listing:
        """Read the tools anew.

        Raises:
            UpstreamError: The source could not be reached, or failed.
            UpstreamTimeoutError: It did not answer within its limit.
            ClosedError: After `close`.
        """

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call *tool* with *arguments*, at most once.

        What the tool itself says of a failure is a result with ``is_error``: so are an unknown
        name and arguments that it refuses, for a model can mend both. Cancelling the caller
        cancels the call.

        Args:
            tool: The source's own name of it.
            arguments: As the model gave them.
            tool_id: Goes into the result.

        Raises:
            UpstreamError: The call could not be made, or its answer was lost: it may have run.
            UpstreamTimeoutError: No answer within the limit: it may have run, or still run.
            ClosedError: After `close`.
        """

    async def close(self) -> None:
        """Let go of what is held, within seconds. Twice is harmless."""


class Shape(Protocol):
    """What becomes of a listing, and of the names in it."""

    @property
    def kind(self) -> Kind:
        """Whose names and texts it is about: ``tool``, ``prompt`` or ``resource``."""

    def show(self, listing: Listing, *, server: str) -> Listing:
        """Give what is shown of *listing*, with a diagnostic for what meets nothing.

        Args:
            listing: As its source gave it.
            server: For messages.
        """

    def own(self, name: str) -> str | None:
        """Give the source's own name of what is shown as *name*; None if nothing is."""


def unknown_tool(tool_id: str, tool: str, why: str = "") -> InvokeResult:
    """Give the answer to a call of a tool that a source does not have."""
    text = f"unknown tool {tool!r}{why}"
    block = Content(type="text", text=text, data={"type": "text", "text": text})
    return InvokeResult(tool_id=tool_id, content=(block,), is_error=True)
