"""The API as an ASGI application: who may come in, what is read, and how it is answered.

* Host and Origin are checked before anything else, as those of `/mcp` are.
* Every answer that is an error is a problem (RFC 9457), whatever went wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

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
from gateway.serve.api.callers import NOBODY, OPERATOR, Callers, Token, check
from gateway.serve.api.operations import Call, Operation, Reply, operations
from gateway.serve.api.problems import MEDIA_TYPE, ProblemDetails, RefusedError, refusal
from gateway.serve.api.reading import ApiOptions, adapter, body, parameters, repeatable
from gateway.serve.api.semantic import ranking_of
from gateway.serve.http import HttpOptions, security

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_DEFAULTS = ApiOptions()
_MISSED = {
    404: ("unknown_path", "there is nothing here: see /openapi.json"),
    405: ("wrong_method", "this cannot be done here: see Allow"),
}
_OWN = ("/api/", openapi.PATH)
_DOORS = frozenset({"/", "/api"})
"""Where people knock first: the refusal there names the document."""


def api_app(
    gateway: Gateway,
    http: HttpOptions,
    *,
    tokens: Sequence[Token] = (),
    fusion: str = "",
    options: ApiOptions = _DEFAULTS,
) -> ASGIApp:
    """Make the application.

    Args:
        gateway: What is searched; closing it stays the caller's.
        http: Where it is served. Its token, if there is one, is the operator's.
        tokens: Who may ask besides. Without any token anybody may, as the operator.
        fusion: ``rrf`` or ``legacy``: what ranks where a search does not say; empty is as the
            environment has it.
        options: What one request may cost.

    Raises:
        ConfigError: There is no such fusion.
    """
    operator = [Token.of("operator", http.token, OPERATOR)] if http.token else []
    callers = Callers([*operator, *tokens])
    table = operations(gateway, ranking=ranking_of(fusion or environment().fusion, gateway))
    told = json.dumps(openapi.document(table, open_to_all=callers.open), ensure_ascii=False)

    async def described(_request: Request) -> Response:
        return Response(told, media_type="application/json", headers=_HEADERS)

    by_path: defaultdict[str, list[Operation]] = defaultdict(list)
    for each in table:
        by_path[each.path].append(each)
    app = Starlette(
        routes=[
            Route(openapi.PATH, described, methods=["GET"]),
            *_routes(by_path, callers, options),
        ],
        exception_handlers={HTTPException: _missed},
    )
    app.router.redirect_slashes = False
    return _Door(app, security(http))


def _routes(
    by_path: Mapping[str, Iterable[Operation]], callers: Callers, options: ApiOptions
) -> Iterable[Route]:
    for path, every in by_path.items():
        served = {each.method: _Served(each, callers, options) for each in every}

        async def answer(request: Request, served: Mapping[str, _Served] = served) -> Response:
            return await served["GET" if request.method == "HEAD" else request.method](request)

        yield Route(path.replace("{id}", "{id:path}"), answer, methods=[*served])


class _Served:
    """One operation, ready to be asked."""

    def __init__(self, operation: Operation, callers: Callers, options: ApiOptions) -> None:
        self._operation = operation
        self._callers = callers
        self._options = options
        self._takes = adapter(operation.body or operation.parameters)
        self._lists = repeatable(operation.parameters) if operation.parameters else frozenset()
        self._gives = adapter(operation.answer)

    async def __call__(self, request: Request) -> Response:
        done = await attempt(self._in_time(request))
        return problem(refusal(done)) if isinstance(done, Failed) else done

    async def _in_time(self, request: Request) -> Response:
        async with asyncio.timeout(self._options.time_limit_s):
            return self._written(await self._operation.run(await self._call(request)))

    async def _call(self, request: Request) -> Call:
        operation = self._operation
        caller = NOBODY
        if not operation.public:
            caller = self._callers.who(request.headers.get("authorization", ""))
        check(caller, operation.right)
        asked: object = None
        if operation.body:
            asked = await body(request, self._takes, self._options)
        elif operation.parameters:
            asked = parameters(request.query_params, self._takes, self._lists)
        return Call(caller=caller, key=request.path_params.get("id", ""), asked=asked)

    def _written(self, reply: Reply) -> Response:
        operation = self._operation
        content = reply.content
        if operation.answer and not content:
            content = self._gives.dump_json(reply.value, by_alias=True)
        return Response(
            content,
            status_code=reply.status or operation.status,
            media_type="application/json" if operation.answer else None,
            headers={**_HEADERS, **reply.headers},
        )


class _Door:
    """Lets requests in that call us by our name and come from no foreign page."""

    def __init__(self, app: ASGIApp, security: TransportSecuritySettings) -> None:
        self._app = app
        self._checks = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; see ASGI."""
        refused = await self._checks.validate_request(Request(scope))
        if refused is None:
            await self._app(scope, receive, send)
            return
        about = "Host" if refused.status_code == 421 else "Origin"
        told = RefusedError(
            refused.status_code, "foreign", f"the {about} of the request is not ours"
        )
        await problem(told)(scope, receive, send)


def problem(told: RefusedError) -> Response:
    """Write a refusal."""
    return Response(
        adapter(ProblemDetails).dump_json(told.details),
        status_code=told.status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS, **told.headers},
    )


async def _missed(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    code, phrase = _MISSED.get(status, _MISSED[404])
    return problem(RefusedError(status, code, phrase, headers=headers or {}))


def beside(api: ASGIApp) -> Callable[[ASGIApp], ASGIApp]:
    """Serve *api* under its own paths, and what it is put beside everywhere else."""

    def joined(rest: ASGIApp) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            own = scope["type"] == "http" and (
                scope["path"].startswith(_OWN) or scope["path"] in _DOORS
            )
            await (api if own else rest)(scope, receive, send)

        return app

    return joined
