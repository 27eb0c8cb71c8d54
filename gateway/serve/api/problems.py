"""What went wrong, as the client reads it (RFC 9457). No trace, no secret, no query.

A code says which problem it is; ``type`` stays ``about:blank``, so the title is the status's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from gateway.errors import (
    ClosedError,
    ConfigError,
    EmbeddingError,
    Failed,
    GatewayError,
    InvalidRequestError,
    StoreError,
    UpstreamError,
)

MEDIA_TYPE = "application/problem+json"
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with a request."""

    where: str
    """A JSON pointer into the body, as ``#/max_results``; or ``?name`` of a parameter."""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
    """The body of every answer that is an error."""

    type: str = "about:blank"
    title: str
    """The status in words."""
    status: int
    detail: str
    """What is wrong with this request, and what to do."""
    code: str
    """Which problem it is: stable, for programs."""
    errors: Sequence[Fault] = ()
    """Each single fault, where there are several."""


class RefusedError(GatewayError):
    """A request that is answered with a problem.

    Args:
        status: Of HTTP.
        code: Which problem it is.
        detail: What is wrong, and what to do.
        errors: Each single fault.
        headers: What the answer bears besides.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: Sequence[Fault] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
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


_KNOWN: tuple[tuple[type[GatewayError], int, str], ...] = (
    (InvalidRequestError, 422, "invalid_request"),
    (ConfigError, 422, "invalid_entity"),
    (StoreError, 503, "store_unavailable"),
    (EmbeddingError, 503, "embedding_failed"),
    (UpstreamError, 502, "upstream_failed"),
    (ClosedError, 503, "closed"),
)
"""Our errors: the status each gets, and its code."""


def refusal(failed: Failed) -> RefusedError:
    """Say what *failed* is to a client: our errors in their own words, others not at all."""
    error = failed.error
    if isinstance(error, RefusedError):
        return error
    for kind, status, code in _KNOWN:
        if isinstance(error, kind):
            return RefusedError(status, code, str(error))
    if isinstance(error, TimeoutError):
        return RefusedError(
            503,
            "too_slow",
            "the answer took too long; try again, or ask for less",
            headers={"Retry-After": "1"},
        )
    return RefusedError(500, "internal", "the request could not be answered")
