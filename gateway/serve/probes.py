"""`/livez` and `/readyz`: whether an orchestrator leaves the process alone, and sends it requests.

Neither needs a token, and neither names anything: counts alone are told.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.gateway import Gateway
from gateway.serve.api.responses import ApiResponse
from gateway.serve.auth import LIVEZ, READYZ
from gateway.types import Code

_UNAVAILABLE = 503
_UNLISTED: Code = "source_load_failed"
_BUILDING: Code = "index_building"
_STORE_FAILURES: frozenset[Code] = frozenset({"catalog_unavailable", "store_unavailable"})


class Liveness(BaseModel):
    """The body of `/livez`."""

    model_config = ConfigDict(frozen=True)

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """The body of `/readyz`: 200 for ``ready`` and ``partial``, else 503."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    status: Literal["ready", "partial", "starting", "draining"]
    """``partial`` lacks servers, or vectors that are still being made."""
    failed_servers: int = 0
    """How many could not be listed."""
    degraded: bool = False
    """Whether a store failed. Searches go on, and all replicas would have the same: it is ready."""


def probe_routes(gateway: Gateway) -> list[Route]:
    """Return the routes of both probes."""

    async def live(_request: Request) -> Response:
        return ApiResponse(Liveness())

    async def ready(_request: Request) -> Response:
        return readiness_response(await _readiness(gateway))

    return [Route(LIVEZ, live, methods=["GET"]), Route(READYZ, ready, methods=["GET"])]


def readiness_response(readiness: Readiness) -> Response:
    """Return the response of `/readyz` that says *readiness*."""
    is_ready = readiness.status in {"ready", "partial"}
    return ApiResponse(readiness, 200 if is_ready else _UNAVAILABLE)


async def _readiness(gateway: Gateway) -> Readiness:
    # It starts the first build, in the background.
    report = await gateway.report(wait=False)
    if not gateway.index_builds:
        return Readiness(status="starting")
    codes = [note.code for note in report.diagnostics]
    is_partial = _UNLISTED in codes or _BUILDING in codes
    return Readiness(
        status="partial" if is_partial else "ready",
        failed_servers=codes.count(_UNLISTED),
        degraded=not _STORE_FAILURES.isdisjoint(codes),
    )
