"""The catalog of one gateway as a part of a larger one."""

from __future__ import annotations

from gateway.gateway import Gateway
from gateway.index.statistics import CatalogStatistics
from gateway.sharding.part import CatalogPart
from gateway.sharding.values import (
    DetailsAnswer,
    DetailsRequest,
    Overview,
    OverviewRequest,
    PartChangedError,
    SurveyAnswer,
    SurveyRequest,
)


class GatewayPart:
    """A `Part` in this process.

    Args:
        gateway: Its owner closes it. It searches as before, with the statistics of its own.
        name: What diagnostics call it.
    """

    def __init__(self, gateway: Gateway, *, name: str = "a gateway of this process") -> None:
        self.name = name
        self._gateway = gateway
        self._part: CatalogPart | None = None
        self._version = -1
        """That of the snapshot that the part was made of."""

    async def statistics(self) -> CatalogStatistics:
        """Count what the gateway holds."""
        return await self._gateway.count()

    async def adopt(self, whole: CatalogStatistics) -> None:
        """Compile the catalog with the statistics of all parts."""
        self._version, snapshot = await self._gateway.part(whole)
        self._part = CatalogPart(snapshot=snapshot, key=whole.key)

    async def overview(self, request: OverviewRequest) -> Overview:
        """Return what filters leave of it."""
        return (await self._current(request.key)).overview(request)

    async def survey(self, request: SurveyRequest) -> SurveyAnswer:
        """Return its candidates for queries, and sums over all that is eligible."""
        return (await self._current(request.key)).survey(request)

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return all that is shown of entities."""
        if self._part is None:
            raise PartChangedError("it was not compiled as a part of a catalog")
        return self._part.details(request)

    async def _current(self, key: str) -> CatalogPart:
        snapshot = await self._gateway.snapshot()
        if self._part is None or (self._part.key, self._version) != (key, snapshot.version):
            raise PartChangedError("its catalog changed")
        return self._part
