"""The index over HTTP: what it is made of, making it anew, and whether there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.runtime import VERSION
from gateway.serve.api.answers import Health, Index, Note, Rebuilding
from gateway.serve.api.callers import ADMIN, Caller
from gateway.serve.api.views import Views

PATIENCE_S = 1.0


class Upkeep:
    """Answers what is asked about the index.

    Args:
        gateway: Whose index it is.
        views: Shared by all of the API.
        patience_s: How long a question waits for a build that is under way.
    """

    def __init__(self, gateway: Gateway, views: Views, *, patience_s: float = PATIENCE_S) -> None:
        self._gateway = gateway
        self._views = views
        self._patience_s = patience_s
        self._counts: Mapping[str, int] = {}
        self._rebuild: asyncio.Task[None] | None = None
        self.failure = ""
        """Why the last rebuild failed; empty if it did not."""
        self._first: asyncio.Task[object] | None = None

    async def index(self, caller: Caller) -> Index:
        """Say what the index is made of; while it is built, what it was before or is so far."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                self._counts = self._views.of(await self._gateway.snapshot()).counts
        report, info = await self._gateway.report(wait=False), self._gateway.embedder
        building = any(each.code == "index_building" for each in report.diagnostics)
        told = [f"{each.code}: {each.detail}" for each in report.diagnostics]
        if self.failure:
            told.append(f"the last rebuild failed: {self.failure}")
        return Index(
            generation=report.generation,
            entities=report.entities,
            by_kind=self._counts,
            vectors=report.vectors,
            graph_nodes=report.graph_nodes,
            graph_edges=report.graph_edges,
            strategy=self._gateway.strategy,
            model=info.info.model_id if info is not None and report.vectors else "",
            duration_s=report.duration_s,
            rebuilding=self.rebuilding or building,
            diagnostics=[Note(stage=each.stage, code=each.code) for each in report.diagnostics],
            details=told if caller.may(ADMIN) else (),
        )

    @property
    def rebuilding(self) -> bool:
        """Whether a rebuild is under way."""
        return self._rebuild is not None

    async def rebuild(self, _caller: Caller) -> Rebuilding:
        """List every server again and build anew, behind the answer; one at a time."""
        if self._rebuild is None:
            self._rebuild = asyncio.create_task(self._anew(), name="rebuild")
        return Rebuilding()

    async def _anew(self) -> None:
        done = await attempt(self._gateway.refresh())
        self.failure = done.reason if isinstance(done, Failed) else ""
        self._rebuild = None

    async def health(self) -> Health:
        """Say whether searches are answered at once; the first question starts the first build.

        Raises:
            ClosedError: The gateway was closed.
        """
        if self._gateway.known is None and self._first is None:
            self._first = asyncio.create_task(self._made(), name="first build")
        ready = self._gateway.known is not None or (self._first is not None and self._first.done())
        return Health(status="ok" if ready else "starting", version=VERSION)

    async def _made(self) -> object:
        return await attempt(self._gateway.snapshot(vectors=True))
