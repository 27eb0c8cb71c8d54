"""A part of a catalog in another process: `gateway serve --http --part 1/4`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

from gateway.errors import GatewayError, MissingExtraError
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
from gateway.sharding.wire import CHANGED, PATH, from_json, to_json

try:
    from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector
except ImportError as error:
    raise MissingExtraError("a part of a catalog over HTTP", "sharding") from error

T = TypeVar("T")
_TIMEOUT = ClientTimeout(total=None, sock_connect=5.0)
"""How long an answer may take, its caller says."""
_IDLE_S = 4.0
"""After which a connection is closed: a second before the served gateway does."""


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
        self._url = f"{url.rstrip('/')}{PATH}"
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._session: ClientSession | None = None

    async def statistics(self) -> CatalogStatistics:
        """Count what it holds by itself."""
        return await self._ask("statistics", CatalogStatistics)

    async def adopt(self, whole: CatalogStatistics) -> None:
        """Compile it with the statistics of all parts."""
        await self._ask("adopt", type(None), whole)

    async def overview(self, request: OverviewRequest) -> Overview:
        """Return what filters leave of it."""
        return await self._ask("overview", Overview, request)

    async def survey(self, request: SurveyRequest) -> SurveyAnswer:
        """Return its candidates for queries, and sums over all that is eligible."""
        return await self._ask("survey", SurveyAnswer, request)

    async def details(self, request: DetailsRequest) -> DetailsAnswer:
        """Return all that is shown of entities."""
        return await self._ask("details", DetailsAnswer, request)

    async def _ask(self, name: str, kind: type[T], request: object = None) -> T:
        if self._session is None:
            connector = TCPConnector(keepalive_timeout=_IDLE_S)
            self._session = ClientSession(
                connector=connector, headers=self._headers, timeout=_TIMEOUT
            )
        body = to_json(request)
        try:
            async with self._session.post(
                f"{self._url}/{name}", data=body, allow_redirects=False
            ) as answer:
                content = await answer.read()
        except (ClientError, TimeoutError) as error:
            raise GatewayError(f"it cannot be reached ({type(error).__name__})") from error
        self.bytes_sent += len(body)
        self.bytes_received += len(content)
        if answer.status == CHANGED:
            raise PartChangedError("its catalog changed")
        if answer.status != HTTPStatus.OK:
            raise GatewayError(f"it answered with status {answer.status}")
        try:
            return from_json(content, kind)
        except ValueError as error:
            raise GatewayError("its answer cannot be read: is it of the same version?") from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
