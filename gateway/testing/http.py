"""Answers of the scripted server as HTTP: JSON, events, errors, and broken on purpose."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import InvalidRequestError
from gateway.testing.endpoint import Faults
from gateway.types import JsonObject

JSON = "application/json"
EVENTS = "text/event-stream"
_TYPES = {400: "invalid_request_error", 404: "invalid_request_error", 429: "rate_limit_error"}


def json_bytes(body: JsonObject) -> bytes:
    """Write *body*; NaN is written as NaN, which only a spoilt answer holds."""
    return json.dumps(dict(body)).encode()


def answered(parts: Iterable[bytes], media_type: str) -> Response:
    """Send *parts* one by one, or together if they are JSON."""
    if media_type == JSON:
        return Response(b"".join(parts), media_type=JSON)
    return StreamingResponse(_each(parts), media_type=media_type)


async def _each(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def dropped(parts: Sequence[bytes], media_type: str) -> ASGIApp:
    """Promise the whole answer, send half of its parts, or half of its only one, and hang up."""
    body = b"".join(parts)
    half = b"".join(parts[: len(parts) // 2]) or body[: len(body) // 2]
    headers = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(body)).encode()),
    ]

    async def send_half(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": half, "more_body": True})

    return send_half


def garbage(media_type: str) -> Response:
    """Send JSON that ends in the middle, with every sign of success."""
    body = b'{"id": "garbage", "data": ['
    return Response(
        body if media_type == JSON else b"data: " + body + b"\n\n", 200, None, media_type
    )


def failed(faults: Faults) -> Response:
    """Send the status that a test asked for; a client that retries may do so at once."""
    return error(faults.status, "the test asked for this fault", {"retry-after-ms": "1"})


def error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Send an error as the service shapes it."""
    detail = {
        "message": message,
        "type": _TYPES.get(status, "server_error"),
        "param": None,
        "code": None,
    }
    return Response(json_bytes({"error": detail}), status, headers, JSON)


async def refused(_request: Request, fault: Exception) -> Response:
    """Answer what the policy or the rules of the service refuse."""
    return error(HTTPStatus.BAD_REQUEST, str(fault))


async def unknown(request: Request, fault: Exception) -> Response:
    """Answer a path or method that is not served."""
    status = fault.status_code if isinstance(fault, HTTPException) else HTTPStatus.NOT_FOUND
    return error(status, f"unknown request URL: {request.method} {request.url.path}")


async def crashed(_request: Request, fault: Exception) -> Response:
    """Show a policy's own fault, and keep the client from asking again."""
    told = f"the policy raised {type(fault).__name__}: {fault}"
    return error(HTTPStatus.INTERNAL_SERVER_ERROR, told, {"x-should-retry": "false"})


async def read_object(request: Request) -> dict[str, object]:
    """Read the body.

    Raises:
        InvalidRequestError: It is not a JSON object.
    """
    try:
        body = json.loads(await request.body())
    except ValueError as fault:
        raise InvalidRequestError("we could not parse the JSON body of your request") from fault
    if not isinstance(body, dict):
        raise InvalidRequestError("the body of your request must be a JSON object")
    return body
