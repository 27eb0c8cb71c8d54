"""Where tools live: one protocol for local functions and for servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from gateway.errors import ConfigError
from gateway.types import Diagnostic, InvokeResult, JsonObject, ToolDefinition

_SERVER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a source offers at one moment."""

    tools: tuple[ToolDefinition, ...] = ()
    """In the source's own order; names are unique."""
    things: tuple[ToolDefinition, ...] = ()
    """Resources and prompts, names unique within a kind."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """One for each tool that cannot be used, and one if the listing was cut."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """By tool name: SHA-256 (hex) of the definition as it came; empty if nobody made any."""
    suspicions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By tool name: why its definition looks like an attack on a model; only such tools. What is
    no tool goes by ``kind:name``."""


@runtime_checkable
class Shelves(Protocol):
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


def check_server_name(name: str) -> str:
    """Give *name* back if a server may be called so.

    Raises:
        ConfigError: It is empty, too long, or holds other characters.
    """
    if not _SERVER_NAME.fullmatch(name):
        raise ConfigError(
            f"server name {name!r} cannot be used: take 1 to 64 letters, digits, '_', '.' or '-'"
        )
    return name
