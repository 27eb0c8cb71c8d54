"""Route classes, dependencies and pagination that all operations of the API share.

A cursor contains the sort key of its page's last entity. Changes of the catalog therefore do not
move other entities to another page.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import Field

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.runtime.text import digest
from gateway.serve.api import models
from gateway.serve.api.models import PageQuery
from gateway.serve.api.problems import ProblemDetails, RefusedError, RequestFault, problem, refusal
from gateway.serve.api.requests import ApiRequest
from gateway.serve.auth import ADMIN, AUDIT, CALLER, CHALLENGE, WRITE, check_right
from gateway.types import Caller
from gateway.types.caller import ACTOR

MAX_FAULTS = 20


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI descriptions of problem responses, keyed by status."""
    return {
        status: {"model": ProblemDetails, "description": "A problem (RFC 9457)."}
        for status in statuses
    }


BODY_PROBLEMS = problems(400, 413, 415)


class ApiRoute(APIRoute):
    """A route that checks scopes, limits the time, and answers errors with problem documents.

    It catches all errors, because Starlette would raise them again, and the HTTP server would log
    messages that may contain secrets.
    """

    right = ""
    """Required scope, one of the rights in `gateway.serve.auth`. Empty requires none."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers requests."""
        handler = super().get_route_handler()

        async def work(request: ApiRequest) -> Response:
            # FastAPI reads the body before it checks dependencies.
            check_right(request.scope[CALLER], self.right, request.scope[CHALLENGE])
            ACTOR.set(request.scope[CALLER])
            async with asyncio.timeout(request.app.state.time_limit_s):
                if self.body_field is not None:
                    await request.read()
                try:
                    return await handler(request)
                except RequestValidationError as error:
                    raise _invalid(error) from error

        async def answer(request: Request) -> Response:
            response = await attempt(work(ApiRequest(request.scope, request.receive)))
            return problem(refusal(response)) if isinstance(response, Failed) else response

        return answer


class WriterRoute(ApiRoute):
    """A route for callers that may change the catalog."""

    right = WRITE


class AdminRoute(ApiRoute):
    """A route for callers that may rebuild the index."""

    right = ADMIN


class AuditorRoute(ApiRoute):
    """A route for callers that may read the audit log."""

    right = AUDIT


def _invalid(error: RequestValidationError) -> RefusedError:
    """Convert a validation error to a 422 response without the input, which may contain secrets."""
    faults = []
    for fault in error.errors()[:MAX_FAULTS]:
        place, *path = fault["loc"]
        # JSON pointer (RFC 6901) with steps of at most 64 characters.
        steps = [str(step)[:64].replace("~", "~0").replace("/", "~1") for step in path]
        root = "#/" if place == "body" else "?"
        where = root + "/".join(steps) if steps else "#"
        faults.append(RequestFault(where=where, detail=fault["msg"]))
    thing = "body does" if faults[0].where.startswith("#") else "parameters do"
    message = f"the {thing} not fit: see errors"
    return RefusedError(422, "invalid_request", message, errors=faults)


async def _gateway_of(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


async def _caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


ServedGateway = Annotated[Gateway, Depends(_gateway_of)]
CurrentCaller = Annotated[Caller, Depends(_caller_of)]


SortKey: TypeAlias = tuple[float, str]
"""Sort key of a listed entity: a number (0, or the negative score), then the id."""


class Pager:
    """Reads and writes the cursors of the list *name*.

    Raises:
        RefusedError: 404 if the cursor is malformed, or belongs to another list or to other
            parameters.
    """

    def __init__(self, name: str, request: PageQuery) -> None:
        parameters = request.model_dump(exclude={"cursor", "limit"})
        self._list_digest = digest(f"{name} {parameters}")
        self.start: SortKey = (
            self._decode(request.cursor) if request.cursor else (-float("inf"), "")
        )
        """Sort key of the last entity before the page."""

    def metadata(self, count: int, last: SortKey | None) -> PageMetadata:
        """Return the metadata of a page with *count* entities.

        *last* is the sort key of the page's last entity. None if no page follows.
        """
        text = f"{self._list_digest}\n{last[0]!r}\n{last[1]}" if last else ""
        cursor = base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()
        return PageMetadata(count=count, next_cursor=cursor or None)

    def _decode(self, cursor: str) -> SortKey:
        try:
            raw = base64.b64decode(cursor, altchars=b"-_", validate=True)
            text = raw.decode("utf-8", "surrogatepass")
            list_digest, number, last = text.split("\n", 2)
            if list_digest == self._list_digest:
                return float(number), last
        except ValueError:
            pass
        detail = "unknown cursor, perhaps of another list; start again with the first page"
        fault = RequestFault(where="?cursor", detail=detail)
        raise RefusedError(404, "unknown_cursor", detail, errors=[fault])


class PageMetadata(models.Response):
    """Metadata of a page, with the field names of MCP registries."""

    count: int
    """Number of entities on this page."""
    next_cursor: Annotated[str | None, Field(serialization_alias="nextCursor")]
    """Send this as `cursor` to read the next page. Null on the last page."""


class EntityPage(models.Response):
    """A page of entities, ordered by id."""

    entities: Sequence[models.EntityView]
    metadata: PageMetadata
    total: int
    """Number of entities on all pages."""


class EntityList(EntityPage):
    """A page of entities that contain the requested text.

    They are ordered by id, but skills by score.
    """

    search_mode: models.SearchMode
