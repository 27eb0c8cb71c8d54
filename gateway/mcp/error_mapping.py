"""From an error of the SDK, the operating system or the network to one of ours, with the mend.

Only codes, kinds and origins are shown: what a foreign message holds may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR
from pydantic import ValidationError

from gateway.errors import UpstreamError, UpstreamFault, UpstreamTimeoutError
from gateway.mcp.servers import HttpServer, StdioServer

_HTTP_MENDS = {
    401: 'give it the right headers, or "auth": {"type": "oauth"} if it signs people in',
    403: "give it the right headers",
    404: "correct the path of the url",
    405: "correct the path of the url",
}

_UNAUTHORIZED = frozenset({401, 403})
_SIGN_IN: Mapping[type[Exception], str] = {
    OAuthRegistrationError: "failed: it registers no client like this one; give auth a client_id",
    OAuthTokenError: "failed: it gave no token; try again, and look at its log",
}
_UNSTARTED = (FileNotFoundError, NotADirectoryError, PermissionError)

OVERSIZED = -32098
"""The JSON-RPC error code that our transports give a request whose answer was too long."""

FAULTS = (ExceptionGroup, MCPError, OSError, RuntimeError, ValueError, httpx2.HTTPError)
"""What opening or using a connection may raise. `TimeoutError` is an `OSError`."""


def late(
    server: str, what: str, limit_s: float, option: str, *, sent: bool = True
) -> UpstreamTimeoutError:
    """Say that *what* took longer than *limit_s*, which *option* sets."""
    return UpstreamTimeoutError(
        server,
        f"did not {what} within {limit_s} s: look at its log, or raise UpstreamOptions.{option}",
        sent=sent,
    )


def not_opened(server: str, target: object, error: BaseException, *, status: int) -> UpstreamError:
    """Say why *target* could not be opened; *status* is its last HTTP answer, or 0."""
    cause = _leaf(error)
    if isinstance(cause, UpstreamError):
        return cause
    if isinstance(target, StdioServer):
        kind: UpstreamFault = "config" if isinstance(cause, _UNSTARTED) else "connect"
        return UpstreamError(server, _no_child(target, cause), kind=kind, sent=False)
    if isinstance(target, HttpServer):
        denied = status in _UNAUTHORIZED or isinstance(cause, OAuthFlowError)
        kind = "authorization" if denied else "connect"
        return UpstreamError(server, _no_host(server, target, cause, status), kind=kind, sent=False)
    told = f"the server object could not be opened ({_kind(cause)})"
    return UpstreamError(server, told, kind="config", sent=False)


def failed(
    server: str, what: str, error: BaseException, *, sent: bool, status: int, target: object = None
) -> UpstreamError:
    """Say that *what* failed on an open connection.

    Args:
        server: Whose.
        what: The request.
        error: What the SDK raised.
        sent: False if it is certain that the request never left.
        status: The last HTTP answer's, or 0.
        target: What is connected.
    """
    cause = _leaf(error)
    if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
        told = "which may or may not have been done" if sent else "which never left"
        return UpstreamError(
            server,
            f"the connection ended during {what}, {told}; the next use connects anew",
            kind="lost",
            sent=sent,
        )
    if isinstance(cause, MCPError) and cause.code in {OVERSIZED, PARSE_ERROR}:
        return UpstreamError(
            server,
            f"its answer to {what} is longer than UpstreamOptions.max_message_bytes, "
            "nested without end, or no message",
        )
    if isinstance(cause, ValidationError):
        return UpstreamError(server, f"answered {what} in a form that MCP does not know")
    if status in _UNAUTHORIZED:
        told = f"refused {what} with HTTP {status}: {_mend(server, target, status)}"
        return UpstreamError(server, told, kind="authorization")
    return UpstreamError(server, f"refused {what} ({_kind(cause)}); its own log says more")


def _no_child(target: StdioServer, cause: BaseException) -> str:
    command = target.command
    if isinstance(cause, FileNotFoundError | NotADirectoryError):
        if target.cwd is not None and not target.cwd.is_dir():
            return f"folder {str(target.cwd)!r} was not found: correct cwd in the config"
        return f"command {command!r} was not found: install it or correct the config"
    if isinstance(cause, PermissionError):
        return f"command {command!r} may not be run: make it executable or correct the config"
    if isinstance(cause, MCPError) and cause.code == CONNECTION_CLOSED:
        return (
            f"command {command!r} ended before it answered: run it by hand to see why; "
            "its standard error is in the DEBUG log of 'gateway.upstream'"
        )
    return f"command {command!r} is no MCP server that we understand ({_kind(cause)})"


def _no_host(server: str, target: HttpServer, cause: BaseException, status: int) -> str:
    if isinstance(cause, OAuthFlowError):
        told = next((text for kind, text in _SIGN_IN.items() if isinstance(cause, kind)), "failed")
        return f"signing in {told}"
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"nothing answers at {target.origin}: start the server or correct the url"
    if status in _HTTP_MENDS:
        return f"{target.origin} answered HTTP {status}: {_mend(server, target, status)}"
    return (
        f"{target.origin} did not open an MCP session ({_kind(cause)}, HTTP {status}): "
        "look at its log, and check the url"
    )


def _mend(server: str, target: object, status: int) -> str:
    if isinstance(target, HttpServer) and target.auth is not None and status in _UNAUTHORIZED:
        return f"sign in with: gateway login {server}"
    return _HTTP_MENDS[status]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _kind(error: BaseException) -> str:
    return f"error {error.code}" if isinstance(error, MCPError) else type(error).__name__
