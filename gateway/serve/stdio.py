"""An MCP server on this process's standard input and output."""

from __future__ import annotations

import re
from contextvars import Context
from typing import Protocol, Self

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

_ESCAPE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""An escaped backslash, a pair of surrogates, or one that stands alone: the group."""


class _Incoming(Protocol):
    async def receive(self) -> SessionMessage | Exception: ...

    async def __anext__(self) -> SessionMessage | Exception: ...

    async def aclose(self) -> None: ...


async def serve_stdio(server: Server) -> None:
    """Serve one client until it hangs up. Nothing else may write to standard output meanwhile."""
    async with stdio_server() as (read, write):
        await server.run(RepairedStream(read), write, server.create_initialization_options())


class RepairedStream:
    """Wraps *inner*: a message that is refused for lone surrogates comes in without them.

    JSON can write half a character (one escape of a pair), and models do; the SDK drops such a
    request without an answer.
    """

    def __init__(self, inner: _Incoming) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Context | None:
        """The context of the sender, which the SDK asks for by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or the error that its text caused."""
        return _repair(await self._inner.receive())

    async def aclose(self) -> None:
        """Close *inner*."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _repair(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _repair(item: SessionMessage | Exception) -> SessionMessage | Exception:
    line = item.errors()[0]["input"] if isinstance(item, ValidationError) else None
    if not isinstance(line, str):
        return item
    whole = _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], line)
    if whole == line:
        return item
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except ValidationError:
        return item
