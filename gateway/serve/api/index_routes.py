"""The index over HTTP: its state, a rebuild, and the server's health."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from starlette.responses import Response as HttpResponse

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.runtime import VERSION
from gateway.serve.api.auth import ADMIN
from gateway.serve.api.catalog_view import CatalogViews
from gateway.serve.api.models import DiagnosticNote, Response
from gateway.serve.api.operations import ApiCall, operation, respond

BUILD_WAIT_S = 1.0
"""How long a question waits for a build that is under way."""


class IndexStatus(Response):
    """The size and state of the index."""

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
    diagnostics: Sequence[DiagnosticNote]
    details: Sequence[str] = ()
    """The details of the diagnostics, for callers with the scope `catalog:admin`."""


class RebuildStarted(Response):
    """A rebuild is under way; `/api/index` says when it is done."""

    rebuilding: bool = True


class HealthStatus(Response):
    """Whether the server answers."""

    status: Literal["ok", "starting"]
    """`starting` until the first index is there: the first search waits for it."""
    version: str


class IndexRoutes:
    """The operations under ``/api/index``, and ``/api/health``.

    Args:
        gateway: The gateway of the index.
        views: Shared by all routes.
    """

    def __init__(self, gateway: Gateway, views: CatalogViews) -> None:
        self._gateway = gateway
        self._views = views
        self._counts: Mapping[str, int] = {}
        self._rebuild_task: asyncio.Task[None] | None = None
        self._rebuild_failure = ""

    @operation("GET", "/api/index", response=IndexStatus)
    async def index(self, call: ApiCall) -> IndexStatus:
        """Read the size and state of the index."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BUILD_WAIT_S):
                self._counts = (await self._views.current()).counts
        report, embedder = await self._gateway.report(wait=False), self._gateway.embedder
        is_building = any(note.code == "index_building" for note in report.diagnostics)
        details = [f"{note.code}: {note.detail}" for note in report.diagnostics]
        if self._rebuild_failure:
            details.append(f"the last rebuild failed: {self._rebuild_failure}")
        return IndexStatus(
            generation=report.generation,
            entities=report.entities,
            by_kind=self._counts,
            vectors=report.vectors,
            graph_nodes=report.graph_nodes,
            graph_edges=report.graph_edges,
            strategy=self._gateway.strategy,
            model=embedder.info.model_id if embedder is not None and report.vectors else "",
            duration_s=report.duration_s,
            rebuilding=self._rebuild_task is not None or is_building,
            diagnostics=list(map(DiagnosticNote.model_validate, report.diagnostics)),
            details=details if call.caller.has_scope(ADMIN) else (),
        )

    @operation("POST", "/api/index/rebuild", right=ADMIN, response=RebuildStarted, statuses=(202,))
    async def rebuild_index(self, _call: ApiCall) -> HttpResponse:
        """List every server again and build the index anew, in the background."""
        if self._rebuild_task is None:
            self._rebuild_task = asyncio.create_task(self._rebuild(), name="rebuild")
        return respond(RebuildStarted(), 202, {"Location": "/api/index"})

    async def _rebuild(self) -> None:
        done = await attempt(self._gateway.refresh())
        self._rebuild_failure = done.reason if isinstance(done, Failed) else ""
        self._rebuild_task = None

    @operation("GET", "/api/health", is_public=True, response=HealthStatus)
    async def health(self, _call: ApiCall) -> HealthStatus:
        """Read whether the server answers.

        It is ``ok`` after the first build, which this starts.
        """
        # It starts the first build, in the background.
        await self._gateway.report(wait=False)
        status: Literal["ok", "starting"] = "ok" if self._gateway.index_builds else "starting"
        return HealthStatus(status=status, version=VERSION)
