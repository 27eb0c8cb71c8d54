"""FastAPI application of the HTTP API, and its routes for the gateway's HTTP server.

The guard (`gateway.serve.guard`) first identifies the caller. Routes with query parameters reject
unknown ones, because a misspelt filter would otherwise be ignored.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.gateway import Gateway
from gateway.options.environment import environment
from gateway.plugin_manager import own_plugins
from gateway.runtime import VERSION
from gateway.serve.api import catalog_routes, index_routes, search_routes
from gateway.serve.api.problems import HEADERS, MEDIA_TYPE, ApiResponse
from gateway.serve.api.routing import problems
from gateway.serve.guard import guarded
from gateway.serve.http import ROUTE
from gateway.serve.http_options import HttpOptions

DOCUMENT_PATH = "/openapi.json"
_ALWAYS = (403, 404, 405, 421, 422, 500, 503)
_ERROR = "400"


def api_app(
    gateway: Gateway, http: HttpOptions, *, fusion: str = "", time_limit_s: float = 30.0
) -> ASGIApp:
    """Return an ASGI application that serves only the API, with the arguments of `api_routes`."""
    routes = api_routes(gateway, http, fusion=fusion, time_limit_s=time_limit_s)
    return guarded(Starlette(routes=routes), http)


def api_routes(
    gateway: Gateway, http: HttpOptions, *, fusion: str = "", time_limit_s: float = 30.0
) -> list[Route]:
    """Return the routes of the API, for an application behind the guard.

    Each path is one Starlette route, because FastAPI does not answer HEAD, and its 405 responses
    list only one method.

    Args:
        gateway: The gateway to search. It is not closed.
        http: Address and accepted callers of the server.
        fusion: Default ranking of searches, ``rrf`` or ``legacy``. Empty uses the environment.
        time_limit_s: Maximum duration of a request.

    Raises:
        ConfigError: If *fusion* is unknown.
    """
    app = _fastapi_app(needs_token=http.needs_token)
    app.state.gateway = gateway
    app.state.time_limit_s = time_limit_s
    app.state.ranking = search_routes.default_ranking(fusion or environment().fusion, gateway)
    app.state.entities = catalog_routes.Entities(gateway)
    app.state.index = index_routes.ServedIndex(gateway)
    document = _document(app)
    text = json.dumps(document)

    async def describe(request: Request) -> Response:
        request.scope[ROUTE] = DOCUMENT_PATH
        return Response(text, media_type="application/json", headers=HEADERS)

    routes = [Route(DOCUMENT_PATH, describe, methods=["GET"])]
    for path, operations in document["paths"].items():
        methods = [method.upper() for method in operations]
        endpoint = partial(_forward, app, path)
        routes.append(Route(path.replace("{id}", "{id:path}"), endpoint, methods=methods))
    return routes


def _fastapi_app(*, needs_token: bool) -> FastAPI:
    app = FastAPI(
        title="Gateway catalog",
        version=VERSION,
        description="MCP servers, tools, agents and skills, found by one search.",
        openapi_url=None,
        default_response_class=ApiResponse,
        generate_unique_id_function=_operation_id,
        responses=problems(*_ALWAYS),
        # FastAPI's log contains messages of exceptions.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    # The guard checks the token. This scheme only documents it.
    bearer = [Depends(HTTPBearer(scheme_name="bearer", auto_error=False))] if needs_token else []
    app.include_router(index_routes.open_router)
    routers = [
        search_routes.router,
        catalog_routes.router,
        catalog_routes.writer_router,
        index_routes.router,
        index_routes.admin_router,
    ]
    if "access" in own_plugins():
        from gateway.serve.api import audit_routes  # noqa: PLC0415  (it imports the plugin)

        routers.append(audit_routes.router)
    for router in routers:
        refusals = problems(401) if needs_token else {}
        app.include_router(router, dependencies=bearer, responses=refusals)
    return app


async def _forward(app: ASGIApp, route: str, request: Request) -> ASGIApp:
    request.scope[ROUTE] = route
    return partial(_answer_head, app) if request.method == "HEAD" else app


async def _answer_head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    # The server sends no body, because the method in its own scope is HEAD.
    await app({**scope, "method": "GET"}, receive, send)


def _operation_id(route: APIRoute) -> str:
    first, *others = route.name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with docstrings as summaries."""
    document = app.openapi()
    operations = chain.from_iterable(path.values() for path in document["paths"].values())
    for operation in operations:
        text = operation.pop("description").partition("\n\nRaises:")[0]
        operation["summary"], _, description = text.partition("\n\n")
        if description:
            operation["description"] = description
        operation.setdefault("security", [])
        for status, response in operation["responses"].items():
            if status >= _ERROR:
                response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    return document
