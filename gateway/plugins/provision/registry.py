"""Client of an MCP registry: ``GET {base}/v0.1/servers``, page by page.

Requests and redirects go only to addresses that `gateway.mcp.ssrf_guard` allows. Pages, bytes,
entries and time are limited. Temporary failures (no connection, 429, 5xx) are retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, Field, ValidationError

from gateway.errors import ConfigError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.servers import HttpServer
from gateway.mcp.ssrf_guard import guarded_transport
from gateway.options import UpstreamOptions
from gateway.options.provision import ProvisionOptions
from gateway.plugins.provision.registry_schema import RegistryEntry, parse_entry
from gateway.runtime import VERSION
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.retry import retry_connect

_PAGE_SIZE = 100
"""Number of entries in one page, the maximum of the official registry."""
_MAX_CURSOR_CHARS = 2000
_TOO_MANY_REQUESTS = 429


class _Metadata(BaseModel):
    cursor: Annotated[str, Field(max_length=_MAX_CURSOR_CHARS)] | None = Field(
        default=None, alias="nextCursor"
    )


class _Page(BaseModel):
    servers: list[Any]
    metadata: _Metadata | None = None


@dataclass(slots=True)
class RegistryAnswer:
    """A registry's answer, joined from its pages."""

    raw: list[object] = field(default_factory=list)
    """Items of the field ``servers``, as decoded JSON."""
    cut: str = ""
    """Reason why the last pages are missing; empty if complete."""


def origin(base: str) -> str:
    """Return the scheme, host and port of a registry's URL.

    Raises:
        ConfigError: If *base* is not the URL of a registry.
    """
    try:
        registry_origin = HttpServer(base).origin
        parts = urlsplit(base)
        if "@" not in parts.netloc and not parts.query and not parts.fragment:
            return registry_origin
    except ConfigError:
        pass
    raise ConfigError(
        "the registry's URL must look like https://host or https://host/path, "
        "without a name, a password or a query"
    )


def parse_entries(raw: Sequence[object], *, source: str) -> tuple[list[RegistryEntry], str]:
    """Parse the items of a registry's answer.

    Args:
        raw: Items of the field ``servers``, as decoded JSON.
        source: `RegistryEntry.source` of the entries.

    Returns:
        The newest version of each server, in the order of *raw*, and the reason why items were
        skipped, or "".
    """
    entries: dict[str, RegistryEntry] = {}
    faults: list[str] = []
    for number, item in enumerate(raw, 1):
        try:
            entry = parse_entry(item, source=source)
        except ValueError as error:
            faults.append(f"entry {number}: {error}")
            continue
        other = entries.get(entry.name)
        if other is None or (other.latest, other.updated) < (entry.latest, entry.updated):
            entries[entry.name] = entry
    more = f"; {len(faults) - 1} more entries cannot be read" if len(faults) > 1 else ""
    return list(entries.values()), f"{faults[0]}{more}" if faults else ""


async def fetch(base: str, options: ProvisionOptions, upstream: UpstreamOptions) -> RegistryAnswer:
    """Fetch every page of a registry's list of servers.

    Args:
        base: URL of the registry; ``/v0.1`` is added if it has no version.
        options: Limits on pages, bytes, entries and time.
        upstream: Retries and allowed private hosts.

    Raises:
        UpstreamError: If the first page cannot be read.
        ConfigError: If the URL is not allowed.
    """
    registry_origin, answer = origin(base), RegistryAnswer()
    client = httpx2.AsyncClient(
        transport=guarded_transport(base, upstream.private_hosts),
        follow_redirects=True,
        max_redirects=5,
        timeout=upstream.connect_timeout_s,
        headers={"accept": "application/json", "user-agent": f"tool-gateway/{VERSION}"},
    )
    try:
        with quiet_libraries(registry_origin):
            async with asyncio.timeout(options.fetch_timeout_s), client:
                await _fetch_pages(client, base, options, upstream, answer)
    except TimeoutError as error:
        answer.cut = f"did not answer within {options.fetch_timeout_s} s"
        if not answer.raw:
            raise UpstreamTimeoutError(registry_origin, answer.cut, sent=False) from error
    except UpstreamError as error:
        if not answer.raw:
            raise
        answer.cut = error.detail
    return answer


async def _fetch_pages(
    client: httpx2.AsyncClient,
    base: str,
    options: ProvisionOptions,
    upstream: UpstreamOptions,
    answer: RegistryAnswer,
) -> None:
    path = base.rstrip("/")
    url = f"{path}/servers" if path.endswith(("/v0.1", "/v0")) else f"{path}/v0.1/servers"
    query = {"limit": str(_PAGE_SIZE), "version": "latest"}
    for _ in range(options.max_pages):
        fetch_page = partial(_fetch_page, client, url, query, options.max_page_bytes)
        page = await retry_connect(fetch_page, upstream)
        room = options.max_entries - len(answer.raw)
        answer.raw += page.servers[:room]
        cursor = page.metadata and page.metadata.cursor
        if len(page.servers) > room or (cursor and len(page.servers) == room):
            answer.cut = f"offers more than {options.max_entries} entries"
            return
        if not cursor:
            return
        query["cursor"] = cursor
    answer.cut = f"offers more than {options.max_pages} pages"


async def _fetch_page(
    client: httpx2.AsyncClient, url: str, query: Mapping[str, str], max_bytes: int
) -> _Page:
    registry_origin, body = origin(url), bytearray()
    try:
        async with client.stream("GET", url, params=query) as response:
            status = response.status_code
            if status == _TOO_MANY_REQUESTS or response.is_server_error:
                raise UpstreamError(registry_origin, f"answered {status}", kind="connect")
            if not response.is_success:
                raise UpstreamError(registry_origin, f"answered {status}: is it a registry?")
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > max_bytes:
                    raise UpstreamError(
                        registry_origin, f"sent a page of more than {max_bytes} bytes"
                    )
    except httpx2.TransportError as error:
        detail = f"cannot be reached: {type(error).__name__}"
        raise UpstreamError(registry_origin, detail, kind="connect") from error
    except httpx2.HTTPError as error:
        raise UpstreamError(registry_origin, f"cannot be read: {type(error).__name__}") from error
    try:
        return _Page.model_validate_json(bytes(body))
    except ValidationError as error:
        raise UpstreamError(
            registry_origin, "sent a page that is not in the format of a registry"
        ) from error
