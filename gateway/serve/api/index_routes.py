"""HTTP routes of the index status, of index rebuilds and of the health check."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response as HttpResponse

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.runtime import VERSION
from gateway.serve.api import models
from gateway.serve.api.routing import AdminRoute, ApiRoute, CurrentCaller, ServedGateway
from gateway.serve.api.visibility import sizes_of
from gateway.serve.auth import ADMIN, LIVENESS
from gateway.types import Caller

router = APIRouter(route_class=ApiRoute)
admin_router = APIRouter(route_class=AdminRoute)
open_router = APIRouter(route_class=ApiRoute)
"""Routes that need no token."""
BUILD_WAIT_S = 1.0
"""Maximum time that a status request waits for a running build, in seconds."""


class IndexStatus(models.Response):
    """Size and state of the index. The counts include only entities that you may see."""

    generation: int
    """Generation of the catalog: a number that increases with each change."""
    entities: int
    by_kind: Mapping[str, int]
    vectors: int
    graph_nodes: int
    graph_edges: int
    strategy: str
    model: str
    """Name of the embedding model that computed the vectors. Empty without vectors."""
    duration_s: float
    """Duration of the last index build, in seconds."""
    rebuilding: bool
    """True while any part of the index, such as its vectors, is being built."""
    diagnostics: Sequence[models.DiagnosticNote]
    details: Sequence[str] = ()
    """Details of the diagnostics, for callers with the scope `catalog:admin`."""


class RebuildStarted(models.Response):
    """A rebuild is running. `GET /api/index` shows when it is finished."""

    rebuilding: bool = True


class HealthStatus(models.Response):
    """State of the server."""

    status: Literal["ok", "starting"]
    """`starting` until the first index is built, and then `ok`. Searches wait for the first
    index."""
    version: str


class ServedIndex:
    """Status of the gateway's index, and its rebuild."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._snapshot: Snapshot | None = None
        """Latest snapshot; `status` counts its entities. None until the first is built."""
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_failure = ""

    async def status(self, caller: Caller) -> IndexStatus:
        """Return the state of the index, counting entities that *caller* may see."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BUILD_WAIT_S):
                self._snapshot = await self._gateway.snapshot()
        sizes: dict[str, Any] = sizes_of(self._snapshot, caller) if self._snapshot else {}
        report, embedder = await self._gateway.report(wait=False), self._gateway.embedder
        is_building = any(note.code == "index_building" for note in report.diagnostics)
        details = [f"{note.code}: {note.detail}" for note in report.diagnostics]
        if self._rebuild_failure:
            details.append(f"the last rebuild failed: {self._rebuild_failure}")
        return IndexStatus(
            **{**asdict(report), "by_kind": {}, **sizes},
            strategy=self._gateway.strategy,
            model=embedder.info.model_id if embedder and sizes.get("vectors") else "",
            rebuilding=self._rebuild_task is not None or is_building,
            details=details if caller.holds({ADMIN}) else (),
        )

    def start_rebuild(self) -> None:
        """Start an index rebuild in the background, unless one is running."""
        if self._rebuild_task is None:
            self._rebuild_task = asyncio.create_task(self._rebuild(), name="rebuild")

    async def _rebuild(self) -> None:
        done = await attempt(self._gateway.refresh())
        self._rebuild_failure = done.reason if isinstance(done, Failed) else ""
        self._rebuild_task = None


async def _index_of(request: Request) -> ServedIndex:
    index: ServedIndex = request.app.state.index
    return index


Index = Annotated[ServedIndex, Depends(_index_of)]


@router.get("/api/index")
async def index(caller: CurrentCaller, served: Index) -> IndexStatus:
    """Read the size and state of the index."""
    return await served.status(caller)


@admin_router.post("/api/index/rebuild", status_code=202)
async def rebuild_index(served: Index, response: HttpResponse) -> RebuildStarted:
    """List all servers again and rebuild the index in the background.

    Requires the scope `catalog:admin`.
    """
    served.start_rebuild()
    response.headers["Location"] = "/api/index"
    return RebuildStarted()


@open_router.get(LIVENESS)
async def health(gateway: ServedGateway) -> HealthStatus:
    """Check that the server answers.

    The status is `ok` after the first build of the index. This request starts that build.
    """
    # Starts the first index build in the background.
    await gateway.report(wait=False)
    status: Literal["ok", "starting"] = "ok" if gateway.index_builds else "starting"
    return HealthStatus(status=status, version=VERSION)
