from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from gateway.errors import Failed, InvalidRequestError, UpstreamError
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.invocation import error_result
from gateway.types.listing import Listing, WatchCallbacks

Function = Callable[..., object]
"""Plain or async function that a host can add as a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFunction:
    """A function with the definition of its tool."""

    definition: ToolDefinition
    function: Function
    bind: Callable[[JsonObject], dict[str, object]]
    """Returns the arguments of a call with the declared types, and with defaults for missing ones.

    Raises `ValueError` if they are invalid."""


@runtime_checkable
class ResourceSource(Protocol):
    """A source that also has resources, prompts or completions of arguments."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send one request that changes nothing, and return its result as JSON.

        Args:
            method: ``resources/read``, ``prompts/get`` or ``completion/complete``.
            params: Parameters as in MCP, with the source's own names and URIs.

        Raises:
            InvalidRequestError: If the source does not have the requested item.
            UpstreamError: If the source cannot be reached or failed.
            ClosedError: If the source is closed.
        """


@runtime_checkable
class Watchable(Protocol):
    """A source that may report changes of a resource."""

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of *uri* until cancelled, reconnecting if needed.

        Raises:
            InvalidRequestError: If the source does not report changes of this resource.
            UpstreamError: If the first request failed.
            ClosedError: If the source is closed.
        """


class Source(Protocol):
    """A source of tools: one server, or functions of the host. Usable from any event loop."""

    @property
    def server(self) -> str:
        """Unique name of the source in the gateway; not the name that a server reports."""

    @property
    def trusted(self) -> bool:
        """True if the host itself wrote the definitions."""

    async def list_tools(self) -> Listing:
        """Read the tools from the source.

        Raises:
            UpstreamError: If the source cannot be reached or failed.
            UpstreamTimeoutError: If the source did not answer in time.
            ClosedError: If the source is closed.
        """

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call *tool* with *arguments*.

        A failure that the tool reports is a result with ``is_error``. So are an unknown name and
        invalid arguments, because a model can correct both. Cancelling the caller cancels the call.

        Args:
            tool: The source's own name of the tool.
            arguments: Arguments from the model.
            tool_id: Id of the tool, for the result.

        Raises:
            UpstreamError: If the call failed, or its answer was lost. The tool may have run.
            UpstreamTimeoutError: If there was no answer in time. The tool may still run.
            ClosedError: If the source is closed.
        """

    async def close(self) -> None:
        """Release connections and processes within seconds. Repeated calls are harmless."""


class Transform(Protocol):
    """A change of a listing and of its names."""

    @property
    def kind(self) -> Kind:
        """Kind of the changed definitions: ``tool``, ``prompt`` or ``resource``."""

    def apply(self, listing: Listing, *, server: str) -> Listing:
        """Return the changed *listing*. A rule that matches no item causes a diagnostic.

        *server* is the name for messages.
        """

    def original_name(self, name: str) -> str | None:
        """Return the source's own name of the item exposed as *name*; None if not exposed."""


def resources_of(source: Source | None, server: str) -> ResourceSource:
    """Return *source*.

    Raises:
        InvalidRequestError: If it has no resources and prompts, or is None.
    """
    if not isinstance(source, ResourceSource):
        raise InvalidRequestError(f"server {server!r} has no resources and no prompts")
    return source


def watchable(source: Source | None, server: str, uri: str) -> Watchable:
    """Return *source*.

    Raises:
        InvalidRequestError: If it never reports changes of resources, or is None.
    """
    if not isinstance(source, Watchable):
        raise InvalidRequestError(f"server {server!r} does not report changes of {uri!r}")
    return source


def load_failed(server: str, failed: Failed, previous: Listing | None) -> Listing:
    """Return a listing with the *previous* definitions and a diagnostic of the failure."""
    error, reason = failed.error, failed.reason
    detail = error.with_stderr if isinstance(error, UpstreamError) else reason
    detail = detail if server in reason else f"{server!r}: {detail}"
    note = Diagnostic(stage="catalog", code="source_load_failed", detail=detail)
    return replace(previous or Listing(), diagnostics=(note,))


def unknown_tool(tool_id: str, tool: str) -> InvokeResult:
    """Return the result of a call of an unknown tool."""
    return error_result(tool_id, f"unknown tool {tool!r}")
