"""Routes of the HTTP server for applications that plugins register."""

from __future__ import annotations

from functools import partial

from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.gateway import Gateway
from gateway.serve.http import ROUTE

PREFIX = "/plugins"


def plugin_routes(gateway: Gateway) -> list[Mount]:
    """Return a route ``/plugins/NAME`` for each application of a plugin, behind the guard.

    Raises:
        ConfigError: If two plugins register applications with the same name.
    """
    apps = gateway.plugins.tables("register_routes", gateway=gateway)
    return [
        Mount(f"{PREFIX}/{name}", app=partial(_forward, f"{PREFIX}/{name}", app))
        for name, app in apps.items()
    ]


async def _forward(route: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    scope[ROUTE] = route
    await app(scope, receive, send)
