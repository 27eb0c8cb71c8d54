"""A served gateway as a part of a sharded catalog, for a coordinator with a right of its own."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.serve.api.operations import HEADERS, problem, read_limited
from gateway.serve.api.problems import RefusedError, refusal
from gateway.serve.auth import CALLER, SHARD, check_right
from gateway.serve.http import ROUTE
from gateway.sharding.gateway_part import GatewayPart
from gateway.sharding.values import PartChangedError
from gateway.sharding.wire import CHANGED, PATH, REQUESTS, from_json, to_json

MAX_BODY_BYTES = 1024 * 1024 * 1024
"""Of the statistics of a catalog of many millions."""


def part_routes(gateway: Gateway) -> list[Route]:
    """Make the routes, for an application behind the guard.

    Args:
        gateway: The part; its owner closes it.
    """
    part = GatewayPart(gateway)
    return [
        Route(f"{PATH}/{name}", partial(_answer, part, name), methods=["POST"]) for name in REQUESTS
    ]


async def _answer(part: GatewayPart, name: str, request: Request) -> Response:
    request.scope[ROUTE] = f"{PATH}/{name}"
    response = await attempt(_work(part, name, request))
    return problem(refusal(response)) if isinstance(response, Failed) else response


async def _work(part: GatewayPart, name: str, request: Request) -> Response:
    check_right(request.scope[CALLER], SHARD)
    body = await read_limited(request, MAX_BODY_BYTES, "the body")
    try:
        value = from_json(body, REQUESTS[name])
    except ValueError as error:
        raise RefusedError(422, "invalid_request", "the body does not fit") from error
    arguments = () if name == "statistics" else (value,)
    try:
        answer = await getattr(part, name)(*arguments)
    except PartChangedError as error:
        raise RefusedError(CHANGED, "part_changed", str(error)) from error
    return Response(to_json(answer), media_type="application/json", headers=HEADERS)
