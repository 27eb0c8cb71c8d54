"""HTTP routes of the server that plugins add."""

from __future__ import annotations

import httpx2
import pytest

from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import Options
from gateway.serve.http import http_app
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.plugin_routes import plugin_routes
from tests.conftest import InstallPlugin, OpenGateway

SOURCE = """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from gateway.hookspecs import hookimpl
from gateway.serve.auth import CALLER

@hookimpl
def register_routes(gateway):
    async def count(request):
        caller = request.scope[CALLER]
        tools = await gateway.list_tools(caller=caller)
        return PlainTextResponse(f"{caller.user}: {len(tools)}")

    return {"stock": Starlette(routes=[Route("/count", count)])}
"""


def client(gateway: Gateway, http: HttpOptions) -> httpx2.AsyncClient:
    app = http_app(mcp_server(gateway), http, routes=plugin_routes(gateway))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1")


async def test_plugin_route_requires_the_token_and_gets_the_caller(
    install_plugin: InstallPlugin, open_gateway: OpenGateway, catalog: tuple[object, ...]
) -> None:
    install_plugin("stock_routes", SOURCE)
    gateway = open_gateway(catalog, options=Options(plugins=("stock_routes",)))
    http = HttpOptions(token="s3cret-s3cret-s3cret-s3cret-s3cret")

    async with client(gateway, http) as requests:
        refused = await requests.get("/plugins/stock/count")
        foreign = await requests.get("/plugins/stock/count", headers={"host": "evil.example"})
        headers = {"authorization": f"Bearer {http.token}"}
        answer = await requests.get("/plugins/stock/count", headers=headers)
        missing = await requests.get("/plugins/other/count", headers=headers)

    assert (401, 421, 200, 404) == (
        *(response.status_code for response in (refused, foreign, answer, missing)),
    )
    assert answer.text.endswith(f": {len(catalog)}")


def test_applications_of_two_plugins_with_one_name_are_refused(
    install_plugin: InstallPlugin, open_gateway: OpenGateway
) -> None:
    install_plugin("stock_one", SOURCE)
    install_plugin("stock_two", SOURCE)
    gateway = open_gateway(options=Options(plugins=("stock_one", "stock_two")))

    with pytest.raises(ConfigError, match="two plugins give register_routes the name 'stock'"):
        plugin_routes(gateway)
