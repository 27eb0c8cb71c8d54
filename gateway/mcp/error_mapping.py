"""Mapping of errors of the SDK, the operating system and the network to errors of this package.

Messages contain only codes, kinds and origins, because foreign texts may contain a secret. The text
of a tool's error is a result for the caller (`answer_text`).
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.types import CONNECTION_CLOSED, MISSING_REQUIRED_CLIENT_CAPABILITY, PARSE_ERROR
from pydantic import ValidationError

from gateway.errors import UpstreamError, UpstreamFault, UpstreamTimeoutError
from gateway.mcp.bearer_auth import RefreshError
from gateway.mcp.servers import HttpServer, OAuth, StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import as_text
from gateway.runtime.text import clean

_HTTP_REMEDIES = {
    401: 'give it the right headers, or "auth": {"type": "oauth"} if it signs people in',
    403: "give it the right headers",
    404: "correct the path of the url",
    405: "correct the path of the url",
}
UNAUTHORIZED = frozenset({401, 403})
_SIGN_IN_FAILURES: Mapping[type[BaseException], str] = {
    OAuthRegistrationError: "failed: it registers no client like this one; give auth a client_id",
    OAuthTokenError: "failed: it gave no token; try again, and look at its log",
}
_START_FAILURES: Mapping[type[BaseException], str] = {
    FileNotFoundError: "was not found: install it or correct the config",
    NotADirectoryError: "was not found: install it or correct the config",
    PermissionError: "may not be run: make it executable or correct the config",
}

OVERSIZED = -32098
"""JSON-RPC error code of the gateway's transports for an answer that was too long."""
MALFORMED = -32097
"""JSON-RPC error code of the gateway's transports for an answer that was malformed."""
_GATEWAY_CODES = frozenset({OVERSIZED, MALFORMED, MISSING_REQUIRED_CLIENT_CAPABILITY})
_MAX_ANSWER_CHARS = 4000

SDK_ERRORS = (ExceptionGroup, MCPError, OSError, RuntimeError, ValueError, httpx2.HTTPError)
"""Errors raised when a connection is opened or used. `TimeoutError` is an `OSError`."""


class NoAnswerError(MCPError):
    """An error raised by the SDK because the server did not answer by JSON-RPC.

    *status* is the HTTP status of the answer, or 0.
    """

    def __init__(self, error: MCPError, *, status: int) -> None:
        super().__init__(error.code, error.message)
        self.status = status


def answer_text(error: MCPError) -> str:
    """Return the server's message in *error*; empty if it does not come from the server."""
    if isinstance(error, NoAnswerError) or error.code in _GATEWAY_CODES:
        return ""
    words = filter(None, dict.fromkeys((error.message, as_text(error.error.data))))
    text = clean("\n".join(words), limit=_MAX_ANSWER_CHARS)
    return text or f"The tool failed without a message (JSON-RPC error {error.code})."


def timeout_error(
    server: str, action: str, options: UpstreamOptions, option: str, *, sent: bool = True
) -> UpstreamTimeoutError:
    """Return the error for a server that was too slow.

    Args:
        server: Name of the server.
        action: Action that the server did not finish, as an infinitive (such as "answer").
        options: Options with the time limit.
        option: Name of the option that contains the time limit.
        sent: True if the server may have got the request.
    """
    limit_s = getattr(options, option)
    return UpstreamTimeoutError(
        server,
        f"did not {action} within {limit_s} s: look at its log, or raise UpstreamOptions.{option}",
        sent=sent,
    )


def connect_error(
    server: str, target: object, error: BaseException, *, status: int
) -> UpstreamError:
    """Return the error for a *target* to which no connection could be opened.

    *status* is the HTTP status of the last answer, or 0.
    """
    cause = _first_cause(error)
    if isinstance(cause, UpstreamError):
        return cause
    if isinstance(cause, RefreshError):
        return UpstreamError(server, str(cause), kind="authorization", sent=False)
    kind: UpstreamFault = "connect"
    if isinstance(target, StdioServer):
        detail = _stdio_detail(target, cause)
        if type(cause) in _START_FAILURES:
            kind = "config"
    elif isinstance(target, HttpServer):
        detail = _http_detail(server, target, cause, status)
        if status in UNAUTHORIZED or isinstance(cause, OAuthFlowError):
            kind = "authorization"
    else:
        detail = f"the server object could not be opened ({_error_name(cause)})"
        kind = "config"
    failure = UpstreamError(server, detail, kind=kind, sent=False)
    failure.status = status
    return failure


def request_error(
    server: str, method: str, error: BaseException, *, target: object = None
) -> UpstreamError:
    """Return the error for a request that failed on an open connection.

    The *target* of the connection selects the remedy in the message.
    """
    cause = _first_cause(error)
    status = cause.status if isinstance(cause, NoAnswerError) else 0
    if is_closed(cause):
        sent = not isinstance(cause, BrokenPipeError)
        outcome = "which may or may not have been done" if sent else "which was not done"
        return UpstreamError(
            server,
            f"the connection ended during {method}, {outcome}; the next use reconnects",
            kind="lost",
            sent=sent,
        )
    code = cause.code if isinstance(cause, MCPError) else 0
    if code == OVERSIZED or (code == PARSE_ERROR and isinstance(cause, NoAnswerError)):
        return UpstreamError(
            server,
            f"its answer to {method} is longer than UpstreamOptions.max_message_bytes, has more "
            "values than max_message_values, is nested too deeply, or is not a message",
        )
    if isinstance(cause, ValidationError) or code == MALFORMED:
        return UpstreamError(server, f"answered {method} in a form that MCP does not define")
    if status in UNAUTHORIZED:
        detail = f"refused {method} with HTTP {status}: {_remedy(server, target, status)}"
        failure = UpstreamError(server, detail, kind="authorization")
        failure.status = status
        return failure
    reason = f"HTTP {status}" if status else _error_name(cause)
    return UpstreamError(server, f"refused {method} ({reason}): look at its log")


def is_closed(error: BaseException) -> bool:
    """Return whether *error* means that the connection has ended."""
    # A connected server may answer with the same error code.
    is_lost = isinstance(error, NoAnswerError) and error.code == CONNECTION_CLOSED
    return is_lost or isinstance(error, BrokenPipeError)


def _stdio_detail(target: StdioServer, cause: BaseException) -> str:
    if target.cwd is not None and not target.cwd.is_dir():
        return f"folder {str(target.cwd)!r} was not found: correct cwd in the config"
    if is_closed(cause):
        detail = (
            "ended before it answered: see what it wrote to standard error, by -v or in the DEBUG "
            "log of 'gateway.upstream', or run it by hand"
        )
    else:
        unknown = f"is not a usable MCP server ({_error_name(cause)})"
        detail = _START_FAILURES.get(type(cause), unknown)
    return f"command {target.command!r} {detail}"


def _http_detail(server: str, target: HttpServer, cause: BaseException, status: int) -> str:
    if isinstance(cause, OAuthFlowError):
        return f"signing in {_SIGN_IN_FAILURES.get(type(cause), 'failed')}"
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"nothing answers at {target.origin}: start the server or correct the url"
    if status in _HTTP_REMEDIES:
        return f"{target.origin} answered HTTP {status}: {_remedy(server, target, status)}"
    return (
        f"{target.origin} did not open an MCP session ({_error_name(cause)}, HTTP {status}): "
        "look at its log, and check the url"
    )


def _remedy(server: str, target: object, status: int) -> str:
    if isinstance(target, HttpServer) and isinstance(target.auth, OAuth) and status in UNAUTHORIZED:
        fault = target.auth.tokens.fault if target.auth.tokens is not None else ""
        return f"sign in with: gateway login {server}{fault and f' ({fault})'}"
    return _HTTP_REMEDIES[status]


def _first_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _error_name(error: BaseException) -> str:
    return f"error {error.code}" if isinstance(error, MCPError) else type(error).__name__
