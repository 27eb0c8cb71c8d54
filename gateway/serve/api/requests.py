"""Requests of the API, as strict as its document."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json
from starlette.datastructures import QueryParams
from starlette.requests import Request

from gateway.mcp.definitions import is_too_deep
from gateway.serve.api.problems import RefusedError

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 32
"""Maximum number of objects and lists within each other in a body."""


class _Parameters(QueryParams):
    """Parameters in which a repeated name has a list, so that validation refuses it.

    FastAPI would take the last value where no list is allowed.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value or the values of *key*."""
        values = self.getlist(key)
        return values if len(values) > 1 else super().get(key, default)


class ApiRequest(Request):
    """A request with unambiguous parameters and, once it was read, a body that is limited JSON."""

    _text = b""
    _value: object = None

    @property
    def query_params(self) -> QueryParams:
        """The parameters."""
        return _Parameters(self.scope["query_string"])

    async def read(self) -> None:
        """Read the body.

        Raises:
            RefusedError: 415 for another media type, 413 for a large body, 400 for a body that is
                not JSON, 422 for deeply nested JSON.
        """
        media = self.headers.get("content-type", "").partition(";")[0].strip().casefold()
        if media != "application/json":
            raise RefusedError(415, "not_json", "send the body as application/json")
        self._text = await read_limited(self, MAX_BODY_BYTES, "the body")
        try:
            self._value = from_json(self._text, allow_inf_nan=False)
        except ValueError as error:
            raise RefusedError(400, "not_json", "the body is not JSON") from error
        if is_too_deep(self._value, MAX_DEPTH):
            raise RefusedError(422, "too_deep", f"the body is nested deeper than {MAX_DEPTH}")

    async def body(self) -> bytes:
        """Return the body."""
        return self._text

    async def json(self) -> Any:
        """Return the value of the body."""
        return self._value


async def read_limited(request: Request, max_bytes: int, name: str) -> bytes:
    """Return the body of *request*.

    Args:
        request: The request.
        max_bytes: Maximum size of the body.
        name: The name of the body in a refusal.

    Raises:
        RefusedError: 413 for a larger body.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise RefusedError(413, "too_large", f"{name} may take {max_bytes} bytes")
    return bytes(body)
