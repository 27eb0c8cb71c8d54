"""Where tools live: one protocol for local functions and for servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from gateway.errors import Failed, InvalidRequestError, UpstreamError
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.invocation import error_result
from gateway.types.listing import Listing, WatchCallbacks

Function = Callable[..., object]
"""What a host may offer as a tool, plain or async."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFunction:
    """A function that can be offered as a tool."""

    definition: ToolDefinition
    function: Function
    bind: Callable[[JsonObject], dict[str, object]]
    """Checks and coerces arguments, or raises `ValueError`; what was left out keeps the function's
    default."""


@runtime_checkable
class ResourceSource(Protocol):
    """A source that has more than tools: resources, prompts, completions."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send one request that changes nothing, and return its result as JSON.

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
    """A source that may report changes of a resource."""

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of *uri* until cancelled, over as many connections as it takes.

        Raises:
            InvalidRequestError: The source does not report changes of this one.
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

        A failure that the tool itself reports is a result with ``is_error``. So are an unknown name
        and arguments that it refuses, since a model can correct both. Cancelling the caller
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


class Transform(Protocol):
    """A change of a listing, and of the names in it."""

    @property
    def kind(self) -> Kind:
        """Whose names and texts it changes: ``tool``, ``prompt`` or ``resource``."""

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return *listing* changed, with a diagnostic for each rule that matches nothing.

        Args:
            listing: As its source returned it.
            server: For messages.
        """

    def original_name(self, name: str) -> str | None:
        """Return the source's own name of what is shown as *name*; None if nothing is."""


def resources_of(source: Source | None, server: str) -> ResourceSource:
    """Return *source* if it has more than tools.

    Raises:
        InvalidRequestError: It has not, or there is none.
    """
    if not isinstance(source, ResourceSource):
        raise InvalidRequestError(f"server {server!r} has no resources and no prompts")
    return source


def watchable(source: Source | None, server: str, uri: str) -> Watchable:
    """Return *source* if it may report changes of a resource.

    Raises:
        InvalidRequestError: It does not, or there is none.
    """
    if not isinstance(source, Watchable):
        raise InvalidRequestError(f"server {server!r} reports no changes of {uri!r}")
    return source


def load_failed(server: str, failed: Failed, previous: Listing | None) -> Listing:
    """Return what stands in for a listing that could not be read, with the reason."""
    error, reason = failed.error, failed.reason
    detail = error.with_stderr if isinstance(error, UpstreamError) else reason
    detail = detail if server in reason else f"{server!r}: {detail}"
    note = Diagnostic(stage="catalog", code="source_load_failed", detail=detail)
    return replace(previous or Listing(), diagnostics=(note,))


def unknown_tool(tool_id: str, tool: str) -> InvokeResult:
    """Return the answer to a call of a tool that a source does not have."""
    return error_result(tool_id, f"unknown tool {tool!r}")
