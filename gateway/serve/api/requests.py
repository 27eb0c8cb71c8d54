"""Strict parsing of API requests."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json
from starlette.datastructures import QueryParams
from starlette.requests import Request

from gateway.mcp.definitions import is_too_deep
from gateway.serve.api.problems import RefusedError

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 32
"""Maximum nesting depth of a request body."""


class _Parameters(QueryParams):
    """Query parameters that return a list for a repeated name, which validation rejects.

    FastAPI would use only the last value.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a parameter, or the list of its repeated values."""
        values = self.getlist(key)
        return values if len(values) > 1 else super().get(key, default)


class ApiRequest(Request):
    """A request in which a repeated query parameter is an error.

    Call `read` before `body` and `json`.
    """

    _text = b""
    _value: object = None

    @property
    def query_params(self) -> QueryParams:
        """Return the query parameters."""
        return _Parameters(self.scope["query_string"])

    async def read(self) -> None:
        """Read and check the body.

        Raises:
            RefusedError: 415 for a media type other than JSON, 413 for a large body, 422 for JSON
                nested deeper than `MAX_DEPTH`, 400 for a body that is not JSON or is nested too
                deeply to parse (about 200 levels).
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
        """Return the body that `read` read."""
        return self._text

    async def json(self) -> Any:
        """Return the JSON value that `read` read."""
        return self._value


async def read_limited(request: Request, max_bytes: int, name: str) -> bytes:
    """Return the body of *request*, called *name* in messages.

    Raises:
        RefusedError: 413 if the body is larger than *max_bytes*.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise RefusedError(413, "too_large", f"{name} may have at most {max_bytes} bytes")
    return bytes(body)
