"""The state of the index over HTTP, and whether the server answers."""

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
"""Operations that need no token."""
BUILD_WAIT_S = 1.0
"""How long a question waits for a build that is under way."""


class IndexStatus(models.Response):
    """The size and state of the index; counts are of what you may see, whatever its status."""

    generation: int
    """Counts changes of the catalog."""
    entities: int
    by_kind: Mapping[str, int]
    vectors: int
    graph_nodes: int
    graph_edges: int
    strategy: str
    model: str
    """Of the vectors; empty without any."""
    duration_s: float
    """How long the last build took."""
    rebuilding: bool
    """Whether a part of it is being built, such as vectors."""
    diagnostics: Sequence[models.DiagnosticNote]
    details: Sequence[str] = ()
    """The details of the diagnostics, for callers with the scope `catalog:admin`."""


class RebuildStarted(models.Response):
    """A rebuild is under way; `/api/index` says when it is done."""

    rebuilding: bool = True


class HealthStatus(models.Response):
    """Whether the server answers."""

    status: Literal["ok", "starting"]
    """`starting` until the first index is there: the first search waits for it."""
    version: str


class ServedIndex:
    """The state of the index, and its rebuilds."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._snapshot: Snapshot | None = None
        """The last one that the state of the index was read from."""
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_failure = ""

    async def status(self, caller: Caller) -> IndexStatus:
        """Return the state of the index for *caller*."""
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
        """Start a rebuild in the background, unless one is under way."""
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
    """List every server again and build the index anew, in the background.

    Needs the scope `catalog:admin`.
    """
    served.start_rebuild()
    response.headers["Location"] = "/api/index"
    return RebuildStarted()


@open_router.get(LIVENESS)
async def health(gateway: ServedGateway) -> HealthStatus:
    """Read whether the server answers.

    It is `ok` after the first build, which this starts.
    """
    # It starts the first build, in the background.
    await gateway.report(wait=False)
    status: Literal["ok", "starting"] = "ok" if gateway.index_builds else "starting"
    return HealthStatus(status=status, version=VERSION)
