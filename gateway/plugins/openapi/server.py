"""MCP server in this process whose tools are the operations of an HTTP API.

* The OpenAPI document is untrusted. It must not name another host, a file or an address to load.
* Documents and responses have the size limits and the address guard of other servers.
* The host's headers are sent only to the API, and override arguments of a model.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
from mcp import types
from mcp.server import Server

from gateway.errors import ConfigError, Failed, MissingExtraError, attempt, attempt_call
from gateway.mcp.servers import HttpServer
from gateway.runtime.json_schema import objects_in

_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME_CHARS = 64
MakeRequest: TypeAlias = Callable[[str, Mapping[str, Any], str], Any]
"""Function that returns an HTTP request for an operation's name, arguments and base address."""


async def openapi_server(
    target: HttpServer, client: httpx2.AsyncClient, max_bytes: int
) -> Server[Any]:
    """Return an MCP server whose tools are the operations of an HTTP API.

    Args:
        target: Server entry. Its ``openapi`` field is the address or file of the OpenAPI document.
        client: HTTP client with size limits and address guard.
        max_bytes: Maximum size of a document file.

    Raises:
        ConfigError: If the document cannot be read or used.
        MissingExtraError: If the extra ``openapi`` is not installed.
        httpx2.HTTPError: If the document cannot be downloaded.
    """
    parsed = await attempt(asyncio.to_thread(_parse, await _read(target, client, max_bytes)))
    if isinstance(parsed, Failed):
        if isinstance(parsed.error, ConfigError | MissingExtraError):
            raise parsed.error
        raise ConfigError(f"{_document_name(target)} is not valid or not supported")
    document, tools, make_request = parsed
    base = _base_url(target, document)
    names = {tool.name for tool in tools}

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in names:
            return _result(f"unknown tool {params.name!r}", is_error=True)
        request = attempt_call(lambda: make_request(params.name, params.arguments or {}, base))
        if isinstance(request, Failed):
            return _result(f"the arguments do not fit: {request.reason}", is_error=True)
        headers = request.headers
        headers.update(target.headers)
        response = await client.request(
            request.method, request.url, headers=headers, content=request.read()
        )
        text = response.text or f"HTTP {response.status_code}"
        return _result(text, is_error=not response.is_success)

    return Server("openapi", on_list_tools=list_tools, on_call_tool=call_tool)


async def _read(target: HttpServer, client: httpx2.AsyncClient, max_bytes: int) -> bytes:
    if "://" not in target.openapi:
        return await asyncio.to_thread(_read_file, Path(target.openapi), max_bytes)
    url = httpx2.URL(target.openapi)
    if _is_same_host(url, target):
        response = await client.get(url, headers=target.headers)
    else:
        # Another host must not receive the API's token.
        response = await client.get(url, auth=None)
    return response.raise_for_status().content


def _read_file(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise ConfigError(f"the OpenAPI document cannot be read: {error.strerror}") from error
    if len(content) > max_bytes:
        raise ConfigError(f"the OpenAPI document is longer than {max_bytes} bytes")
    return content


def _parse(content: bytes) -> tuple[dict[str, Any], list[types.Tool], MakeRequest]:
    try:
        from fastmcp.utilities.openapi import HTTPRoute, parse_openapi_to_http_routes  # noqa: PLC0415  (an optional extra)
        from fastmcp.utilities.openapi.director import RequestDirector  # noqa: PLC0415
        from jsonschema_path import SchemaPath  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("an OpenAPI document", "openapi") from error
    document = json.loads(content)
    for part in objects_in(document):
        if not str(part.get("$ref", "#")).startswith("#"):
            raise ConfigError("the OpenAPI document refers to another file: merge them into one")
    routes: dict[str, HTTPRoute] = {}
    for route in parse_openapi_to_http_routes(document):
        words = route.operation_id or f"{route.method.lower()}{route.path}"
        name = _INVALID_CHARACTERS.sub("_", words).strip("_.")[:_NAME_CHARS]
        if name in routes:
            name = f"{name[: _NAME_CHARS - 5]}_{len(routes)}"
        routes[name] = route
    director = RequestDirector(SchemaPath.from_dict(document))
    tools = [
        types.Tool(
            name=name,
            title=route.summary or None,
            description=route.description or route.summary or f"{route.method} {route.path}",
            input_schema={"type": "object", **route.flat_param_schema},
        )
        for name, route in routes.items()
    ]
    return document, tools, lambda name, *parts: director.build(routes[name], *parts)


def _base_url(target: HttpServer, document: Mapping[str, Any]) -> str:
    """Return the base address of the API, from the target or the document.

    Raises:
        ConfigError: If the document names another host.
    """
    servers = document.get("servers") or [{}]
    if target.url != target.openapi:
        return target.url
    url = httpx2.URL(target.url).join(str(servers[0].get("url", "/")))
    if not _is_same_host(url, target):
        raise ConfigError(
            f"{_document_name(target)} names another API host: if that is correct, set it as 'url'"
        )
    return str(url)


def _is_same_host(url: httpx2.URL, target: HttpServer) -> bool:
    target_url = httpx2.URL(target.url)
    return (url.scheme, url.host, url.port) == (target_url.scheme, target_url.host, target_url.port)


def _document_name(target: HttpServer) -> str:
    return f"the OpenAPI document of {target.origin}"


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)
