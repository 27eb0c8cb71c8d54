"""Error responses of the API as problem documents (RFC 9457), and the API's JSON response class.

Error responses contain no traces, secrets or queries.
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
    """A JSON response with the headers `HEADERS`."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set *headers* and the common headers."""
        super().init_headers({**HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Return *content* as JSON. Infinity and NaN become null."""
        try:
            return to_json(content, inf_nan_mode="null")
        except PydanticSerializationError:
            # Texts of the host may contain lone surrogates.
            return to_json(visible_json(content))


MEDIA_TYPE = "application/problem+json"
_MODEL = ConfigDict(frozen=True, use_attribute_docstrings=True)


class RequestFault(BaseModel):
    """One invalid part of a request."""

    model_config = _MODEL

    where: str
    """Place of the fault: a JSON pointer into the body, such as ``#/max_results``, or a parameter,
    such as ``?name``."""
    detail: str


class ProblemDetails(BaseModel):
    """The body of every error response."""

    model_config = _MODEL

    type: str = "about:blank"
    title: str
    """Phrase of the HTTP status, such as Not Found."""
    status: int
    detail: str
    """Description of the fault in this request, and its remedy."""
    code: str
    """Stable code of the problem, for programs."""
    errors: Sequence[RequestFault] = ()
    """Individual faults of the request. At most 20 are returned."""


class RefusedError(errors.GatewayError):
    """Refusal of a request, with the status, headers and body (`details`) of the response."""

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
"""Errors whose messages contain no secrets or queries, each with its HTTP status and code."""


def refusal(failed: errors.Failed) -> RefusedError:
    """Convert a failure to an error response, without messages of unknown exceptions."""
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
        detail = "the request took too long; try again, or request less"
        return RefusedError(503, "too_slow", detail, headers={"Retry-After": "1"})
    return RefusedError(500, "internal", "the request could not be answered")


def problem(error: RefusedError) -> ApiResponse:
    """Return the response for *error*."""
    body = error.details.model_dump(mode="json")
    return ApiResponse(body, error.status, error.headers, MEDIA_TYPE)
