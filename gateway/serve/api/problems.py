"""Problems, the responses to requests that fail (RFC 9457). They hold no trace, secret or query.

``type`` stays ``about:blank``, so the title is that of the status; ``code`` names the problem.

The JSON responses of the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from math import ceil
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import JSONResponse

from gateway import errors
from gateway.runtime.text import visible_json

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class ApiResponse(JSONResponse):
    """A JSON response with `HEADERS`."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set `HEADERS` and *headers*."""
        super().init_headers({**HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Return *content* as JSON; numbers that JSON lacks become null."""
        try:
            return to_json(content, inf_nan_mode="null")
        except PydanticSerializationError:
            # UTF-8 cannot write a lone surrogate, which texts of the host's own may hold.
            return to_json(visible_json(content))


MEDIA_TYPE = "application/problem+json"
_MODEL = ConfigDict(frozen=True, use_attribute_docstrings=True)


class RequestFault(BaseModel):
    """One fault of a request."""

    model_config = _MODEL

    where: str
    """A JSON pointer into the body, as ``#/max_results``; or ``?name`` of a parameter."""
    detail: str


class ProblemDetails(BaseModel):
    """The body of every response that is an error."""

    model_config = _MODEL

    type: str = "about:blank"
    title: str
    """The status in words."""
    status: int
    detail: str
    """What is wrong with this request, and what to do."""
    code: str
    """The stable name of the problem, for programs."""
    errors: Sequence[RequestFault] = ()
    """The single faults, where there are several."""


class RefusedError(errors.GatewayError):
    """A request that is answered with a problem.

    Args:
        status: The HTTP status.
        code: The name of the problem.
        detail: What is wrong, and what to do.
        errors: The single faults.
        headers: More headers of the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[RequestFault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self.details = ProblemDetails(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            code=code,
            errors=tuple(errors),
        )
        super().__init__(detail)


_STATUSES: tuple[tuple[type[errors.GatewayError], int, str], ...] = (
    (errors.InvalidRequestError, 422, "invalid_request"),
    (errors.ConfigError, 422, "invalid_entity"),
    (errors.StoreError, 503, "store_unavailable"),
    (errors.EmbeddingError, 503, "embedding_failed"),
    (errors.UpstreamError, 502, "upstream_failed"),
    (errors.ClosedError, 503, "closed"),
)
"""The status and the code of our errors, whose messages hold no secret and no query."""


def refusal(failed: errors.Failed) -> RefusedError:
    """Return the refusal for *failed*; the message of a foreign error is left out."""
    error = failed.error
    if isinstance(error, RefusedError):
        return error
    for kind, status, code in _STATUSES:
        if isinstance(error, kind):
            return RefusedError(status, code, str(error))
    if isinstance(error, errors.LimitExceededError):
        headers = {"Retry-After": str(ceil(error.retry_after_s))}
        return RefusedError(429, "limit_reached", str(error), headers=headers)
    if isinstance(error, TimeoutError):
        detail = "the answer took too long; try again, or ask for less"
        return RefusedError(503, "too_slow", detail, headers={"Retry-After": "1"})
    return RefusedError(500, "internal", "the request could not be answered")


def problem(error: RefusedError) -> ApiResponse:
    """Return the response for a refusal."""
    body = error.details.model_dump(mode="json")
    return ApiResponse(body, error.status, error.headers, MEDIA_TYPE)
