"""The API as an ASGI application.

* Host and Origin are checked before anything else, as those of `/mcp` are.
* Every response that is an error is a problem (RFC 9457).
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.options.environment import environment
from gateway.serve.api import openapi
from gateway.serve.api.auth import ANONYMOUS, OPERATOR, Authenticator, BearerToken
from gateway.serve.api.catalog_view import CatalogViews
from gateway.serve.api.entity_routes import EntityRoutes
from gateway.serve.api.index_routes import IndexRoutes
from gateway.serve.api.operations import ApiCall, Operation, Reply, operations_of
from gateway.serve.api.problems import MEDIA_TYPE, RefusedError, refusal
from gateway.serve.api.requests import ApiOptions, read_body, read_parameters
from gateway.serve.api.search_routes import SearchRoutes, default_ranking
from gateway.serve.http import HttpOptions, transport_security

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_DEFAULTS = ApiOptions()
_HTTP_ERRORS = {
    404: ("unknown_path", "there is nothing here: see /openapi.json"),
    405: ("wrong_method", "this cannot be done here: see Allow"),
}
_PREFIXES = ("/api/", openapi.PATH)
_ENTRANCES = frozenset({"/", "/api"})
"""Paths that a person tries first: the refusal there names the OpenAPI document."""


def api_app(
    gateway: Gateway,
    http: HttpOptions,
    *,
    tokens: Sequence[BearerToken] = (),
    fusion: str = "",
    options: ApiOptions = _DEFAULTS,
) -> ASGIApp:
    """Make the application.

    Args:
        gateway: The searched gateway; its owner closes it.
        http: Where the application is served. Its token, if any, is the operator's.
        tokens: More accepted tokens. Without any token every caller is the operator.
        fusion: ``rrf`` or ``legacy``: what ranks where a search does not say; empty is as the
            environment has it.
        options: What one request may cost.

    Raises:
        ConfigError: There is no such fusion.
    """
    operator = [BearerToken.from_secret("operator", http.token, OPERATOR)] if http.token else []
    authenticator = Authenticator([*operator, *tokens])
    ranking = default_ranking(fusion or environment().fusion, gateway)
    views = CatalogViews(gateway)
    endpoints = [
        _Endpoint(operation, routes, authenticator, options)
        for routes in (
            SearchRoutes(gateway, views, ranking=ranking),
            EntityRoutes(gateway, views),
            IndexRoutes(gateway, views),
        )
        for operation in operations_of(routes)
    ]
    table = [endpoint.operation for endpoint in endpoints]
    document = json.dumps(openapi.document(table, is_open=authenticator.is_open))

    async def describe(_request: Request) -> Response:
        return Response(document, media_type="application/json", headers=_HEADERS)

    app = Starlette(
        routes=[Route(openapi.PATH, describe, methods=["GET"]), *_routes(endpoints)],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return _HostCheck(app, transport_security(http))


class _Endpoint:
    """One operation, ready to answer requests."""

    def __init__(
        self,
        operation: Operation,
        routes: object,
        authenticator: Authenticator,
        options: ApiOptions,
    ) -> None:
        self.operation = operation
        self._routes = routes
        self._authenticator = authenticator
        self._options = options

    async def __call__(self, request: Request) -> Response:
        response = await attempt(self._answer_in_time(request))
        return problem(refusal(response)) if isinstance(response, Failed) else response

    async def _answer_in_time(self, request: Request) -> Response:
        async with asyncio.timeout(self._options.time_limit_s):
            call = await self._read_call(request)
            answer = await self.operation.handler(self._routes, call)
        reply = answer if isinstance(answer, Reply) else Reply(value=answer)
        return Response(
            reply.value.model_dump_json() if reply.value is not None else b"",
            status_code=reply.status or self.operation.status,
            media_type="application/json" if reply.value is not None else None,
            headers={**_HEADERS, **reply.headers},
        )

    async def _read_call(self, request: Request) -> ApiCall:
        operation, caller = self.operation, ANONYMOUS
        if not operation.is_public:
            caller = self._authenticator.authenticate(request.headers.get("authorization", ""))
        caller.check_right(operation.right)
        model: object = None
        if operation.body is not None:
            model = await read_body(request, operation.body, self._options)
        elif operation.parameters is not None:
            model = read_parameters(request.query_params, operation.parameters)
        return ApiCall(caller=caller, key=request.path_params.get("id", ""), request=model)


def _routes(endpoints: Sequence[_Endpoint]) -> Iterator[Route]:
    by_path: defaultdict[str, dict[str, _Endpoint]] = defaultdict(dict)
    for endpoint in endpoints:
        by_path[endpoint.operation.path][endpoint.operation.method] = endpoint
    for path, by_method in by_path.items():

        async def answer(request: Request, by_method: dict[str, _Endpoint] = by_method) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await by_method[method](request)

        yield Route(path.replace("{id}", "{id:path}"), answer, methods=[*by_method])


class _HostCheck:
    """Refuses requests that call the server by a foreign name or come from a foreign page."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app = app
        self._checks = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._checks.validate_request(Request(scope))
        if response is None:
            await self._app(scope, receive, send)
            return
        header = "Host" if response.status_code == 421 else "Origin"
        error = RefusedError(
            response.status_code, "foreign", f"the {header} of the request is not ours"
        )
        await problem(error)(scope, receive, send)


def problem(error: RefusedError) -> Response:
    """Return the response for a refusal."""
    return Response(
        error.details.model_dump_json(),
        status_code=error.status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS, **error.headers},
    )


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    code, detail = _HTTP_ERRORS.get(status, _HTTP_ERRORS[404])
    return problem(RefusedError(status, code, detail, headers=headers or {}))


def beside(api: ASGIApp) -> Callable[[ASGIApp], ASGIApp]:
    """Serve *api* under its own paths, and another application everywhere else."""

    def join(other: ASGIApp) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            is_ours = scope["type"] == "http" and (
                scope["path"].startswith(_PREFIXES) or scope["path"] in _ENTRANCES
            )
            await (api if is_ours else other)(scope, receive, send)

        return app

    return join
