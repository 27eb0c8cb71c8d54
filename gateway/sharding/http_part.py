"""A part of a catalog in another process: `gateway serve --http --part 1/4`."""

from __future__ import annotations

from typing import Any

import httpx2

from gateway.errors import GatewayError
from gateway.index.statistics import CatalogStatistics
from gateway.sharding.values import (
    DetailsAnswer,
    DetailsRequest,
    Overview,
    OverviewRequest,
    PartChangedError,
    SurveyAnswer,
    SurveyRequest,
)
from gateway.sharding.wire import CHANGED, OPERATIONS, PATH

_CONNECT_S = 5.0


class HttpPart:
    """A `Part` that a gateway serves over HTTP. For one event loop.

    Args:
        url: The root of the server, such as ``http://10.0.0.7:8930``.
        token: A bearer token with the scope ``catalog:shard``; empty if the server needs none.
    """

    def __init__(self, url: str, *, token: str = "") -> None:
        self.name = url
        self.bytes_sent = 0
        self.bytes_received = 0
        headers = {"content-type": "application/json"}
        headers |= {"authorization": f"Bearer {token}"} if token else {}
        # How long an answer may take, its caller says.
        limits = httpx2.Timeout(None, connect=_CONNECT_S)
        self._client = httpx2.AsyncClient(base_url=url, headers=headers, timeout=limits)

    async def statistics(self) -> CatalogStatistics:
        """Count what it holds by itself."""
        found: CatalogStatistics = await self._ask("statistics", None)
        return found

    async def adopt(self, whole: CatalogStatistics) -> None:
        """Compile it with the statistics of all parts."""
        await self._ask("adopt", whole)

    async def overview(self, request: OverviewRequest) -> Overview:
        """Return what filters leave of it."""
        found: Overview = await self._ask("overview", request)
        return found

    async def survey(self, request: SurveyRequest) -> SurveyAnswer:
        """Return its candidates for queries, and sums over all that is eligible."""
        found: SurveyAnswer = await self._ask("survey", request)
        return found

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return all that is shown of entities."""
        found: DetailsAnswer = await self._ask("details", request)
        return found

    async def _ask(self, name: str, request: object) -> Any:
        operation = OPERATIONS[name]
        body = operation.request.dump_json(request)
        try:
            answer = await self._client.post(f"{PATH}/{name}", content=body)
        except httpx2.HTTPError as error:
            raise GatewayError(f"it cannot be reached ({type(error).__name__})") from error
        self.bytes_sent += len(body)
        self.bytes_received += len(answer.content)
        if answer.status_code == CHANGED:
            raise PartChangedError("its catalog changed")
        if answer.status_code != httpx2.codes.OK:
            raise GatewayError(f"it answered with status {answer.status_code}")
        try:
            return operation.answer.validate_json(answer.content)
        except ValueError as error:
            raise GatewayError("its answer cannot be read: is it of the same version?") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()
