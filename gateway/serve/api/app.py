"""The API as routes, and as an ASGI application of its own.

* The guard of `gateway.serve.http` stands before it, as before `/mcp`, and names the caller.
* Unknown fields and parameters are refused: ignoring a misspelt one would answer another question.
* Every response that is an error is a problem (RFC 9457).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from gateway.access.audit import ACTOR
from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.mcp.definitions import is_too_deep
from gateway.options.environment import environment
from gateway.serve.api.audit_routes import AuditRoutes
from gateway.serve.api.catalog_routes import CatalogRoutes
from gateway.serve.api.operations import (
    DOCUMENT_PATH,
    HEADERS,
    ApiCall,
    Operation,
    document,
    operations_of,
    problem,
    read_limited,
    respond,
)
from gateway.serve.api.problems import RefusedError, RequestFault, refusal
from gateway.serve.api.search_routes import SearchRoutes, default_ranking
from gateway.serve.auth import CALLER, CHALLENGE, check_right
from gateway.serve.guard import guarded
from gateway.serve.http import ROUTE
from gateway.serve.http_options import HttpOptions

M = TypeVar("M", bound=BaseModel)
MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 32
"""Objects and lists within each other in a body."""
MAX_FAULTS = 20
"""The most faults that one response names."""


def api_app(
    gateway: Gateway, http: HttpOptions, *, fusion: str = "", time_limit_s: float = 30.0
) -> ASGIApp:
    """Make an application of the API alone; see `api_routes`."""
    routes = api_routes(gateway, http, fusion=fusion, time_limit_s=time_limit_s)
    return guarded(Starlette(routes=routes), http)


def api_routes(
    gateway: Gateway, http: HttpOptions, *, fusion: str = "", time_limit_s: float = 30.0
) -> list[Route]:
    """Make the routes, for an application behind the guard.

    Args:
        gateway: The searched gateway; its owner closes it.
        http: Where they are served, and for which callers.
        fusion: ``rrf`` or ``legacy``: what ranks where a search does not say; empty is as the
            environment has it.
        time_limit_s: A slower response is given up.

    Raises:
        ConfigError: There is no such fusion.
    """
    ranking = default_ranking(fusion or environment().fusion, gateway)
    operations = [
        *operations_of(SearchRoutes(gateway, ranking)),
        *operations_of(CatalogRoutes(gateway)),
        *operations_of(AuditRoutes(gateway)),
    ]
    text = json.dumps(document(operations, is_open=not http.needs_token))
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation

    async def describe(request: Request) -> Response:
        request.scope[ROUTE] = DOCUMENT_PATH
        return Response(text, media_type="application/json", headers=HEADERS)

    routes = [Route(DOCUMENT_PATH, describe, methods=["GET"])]
    for path, by_method in by_path.items():
        endpoint = partial(_answer, by_method, time_limit_s)
        routes.append(Route(path.replace("{id}", "{id:path}"), endpoint, methods=[*by_method]))
    return routes


async def _answer(
    operations: Mapping[str, Operation], time_limit_s: float, request: Request
) -> Response:
    """Answer a request of one path; *operations* are its own, by method. An error is a problem."""
    operation = operations["GET" if request.method == "HEAD" else request.method]
    request.scope[ROUTE] = operation.path

    async def work() -> Response:
        async with asyncio.timeout(time_limit_s):
            answer = await operation.handler(await _read_call(operation, request))
        return answer if isinstance(answer, Response) else respond(answer, operation.statuses[0])

    response = await attempt(work())
    return problem(refusal(response)) if isinstance(response, Failed) else response


async def _read_call(operation: Operation, request: Request) -> ApiCall:
    caller = request.scope[CALLER]
    check_right(caller, operation.right, request.scope[CHALLENGE])
    ACTOR.set(caller)
    model: object = None
    if operation.body is not None:
        model = await _read_body(request, operation.body)
    elif operation.parameters is not None:
        model = _read_parameters(request.query_params, operation.parameters)
    return ApiCall(caller=caller, key=request.path_params.get("id", ""), request=model)


async def _read_body(request: Request, model: type[M]) -> M:
    """Read the JSON body of *request*.

    Raises:
        RefusedError: 415, 413, 400 for what is not JSON, 422 for JSON that does not fit.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != "application/json":
        raise RefusedError(415, "not_json", "send the body as application/json")
    body = await read_limited(request, MAX_BODY_BYTES, "the body")
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RefusedError(400, "not_json", "the body is not JSON") from error
    if is_too_deep(value, MAX_DEPTH):
        raise RefusedError(422, "too_deep", f"the body is nested deeper than {MAX_DEPTH}")
    return _validate(model, value, "the body does not fit: see errors", "#/")


def _read_parameters(query: QueryParams, model: type[M]) -> M:
    """Read the query string; a parameter whose field is a list may be repeated.

    Raises:
        RefusedError: 422.
    """
    values: dict[str, object] = {}
    for name in query:
        texts = query.getlist(name)
        field = model.model_fields.get(name)
        is_list = field is not None and isinstance(field.default, list)
        values[name] = texts if is_list or len(texts) > 1 else texts[0]
    return _validate(model, values, "the parameters do not fit: see errors", "?")


def _validate(model: type[M], value: object, message: str, root: str) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # Without the input: it may hold what must not stand in a log.
        faults = error.errors(include_url=False, include_context=False, include_input=False)
    named = []
    for fault in faults[:MAX_FAULTS]:
        # A JSON pointer (RFC 6901), each step clipped.
        steps = [str(step)[:64].replace("~", "~0").replace("/", "~1") for step in fault["loc"]]
        where = root + "/".join(steps) if steps else "#"
        named.append(RequestFault(where=where, detail=fault["msg"]))
    raise RefusedError(422, "invalid_request", message, errors=named)
