"""Reads a registry's list of servers: ``GET {base}/v0.1/servers``, page by page.

* It goes only where `gateway.mcp.ssrf_guard` lets it, redirects too.
* Pages, bytes, entries and time have caps. An entry that cannot be read is left out and told.
* What may mend itself (no connection, 429, 5xx) is tried again with back-off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import httpx2

from gateway.errors import ConfigError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.retry import until_connected
from gateway.mcp.ssrf_guard import guarded
from gateway.options import UpstreamOptions
from gateway.provision.entries import Entry
from gateway.provision.options import ProvisionOptions
from gateway.provision.reading import read_entry
from gateway.runtime import VERSION
from gateway.types import Code, Diagnostic

_PAGE = 100
"""Entries that are asked for at once: the most that the official registry gives."""
_TOLD = 20
"""So many entries that cannot be read are told one by one."""
_CURSOR_CHARS = 2000
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a registry answered."""

    raw: tuple[object, ...]
    """The items of ``servers`` as they came, of all pages."""
    whole: bool = True
    """False if pages are missing."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Gathered:
    raw: list[object] = field(default_factory=list)
    cut: str = ""


def origin(base: str) -> str:
    """Give what may be shown of a registry's address: scheme, host and port.

    Raises:
        ConfigError: It is no address of a registry.
    """
    told = (
        "the registry's URL must look like https://host or https://host/path, "
        "without a name, a password or a query"
    )
    try:
        parts = urlsplit(base)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(told) from error
    more = "@" in parts.netloc or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not host or more:
        raise ConfigError(told)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def entries_of(raw: tuple[object, ...], *, source: str) -> tuple[list[Entry], list[Diagnostic]]:
    """Read the items of ``servers``: the newest version of each name, in their order.

    Args:
        raw: As JSON gave them.
        source: See `Entry.source`.

    Returns:
        The entries, and a diagnostic for each of the first items that cannot be read.
    """
    found: dict[str, Entry] = {}
    faults: list[str] = []
    for number, item in enumerate(raw):
        try:
            entry = read_entry(item, source=source)
        except ValueError as error:
            faults.append(f"{source}: entry {number + 1}: {error}")
            continue
        known = found.get(entry.name)
        if known is None or (known.latest, known.updated) < (entry.latest, entry.updated):
            found[entry.name] = entry
    if len(faults) > _TOLD:
        faults[_TOLD:] = [f"{source}: {len(faults) - _TOLD} more entries cannot be read"]
    return list(found.values()), [_note("registry_entry_skipped", fault) for fault in faults]


async def fetch(base: str, options: ProvisionOptions, upstream: UpstreamOptions) -> Fetched:
    """Read every page.

    Args:
        base: The registry's address; ``/v0.1`` is added where no version stands.
        options: Caps.
        upstream: How often and how far apart it is tried, and which hosts may be private.

    Raises:
        UpstreamError: Not even the first page could be read.
        ConfigError: The address may not be asked.
    """
    shown = origin(base)
    gathered = _Gathered()
    try:
        async with asyncio.timeout(options.fetch_timeout_s), _client(base, upstream) as client:
            await _pages(client, base, options, upstream, gathered)
    except TimeoutError as error:
        gathered.cut = f"did not answer within {options.fetch_timeout_s} s"
        if not gathered.raw:
            raise UpstreamTimeoutError(shown, gathered.cut, sent=False) from error
    except UpstreamError as error:
        if not gathered.raw:
            raise
        gathered.cut = error.detail
    if not gathered.cut:
        return Fetched(raw=tuple(gathered.raw))
    told = f"{shown}: {gathered.cut}; {len(gathered.raw)} entries were read"
    return Fetched(
        raw=tuple(gathered.raw), whole=False, diagnostics=(_note("registry_truncated", told),)
    )


def _client(base: str, upstream: UpstreamOptions) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=guarded(base, upstream.private_hosts),
        follow_redirects=True,
        max_redirects=5,
        timeout=upstream.connect_timeout_s,
        headers={"accept": "application/json", "user-agent": f"tool-gateway/{VERSION}"},
    )


async def _pages(
    client: httpx2.AsyncClient,
    base: str,
    options: ProvisionOptions,
    upstream: UpstreamOptions,
    gathered: _Gathered,
) -> None:
    shown, url = origin(base), _servers(base)
    cursor, seen = "", set[str]()
    for _ in range(options.max_pages):
        asked = {"limit": str(_PAGE), "version": "latest", **({"cursor": cursor} if cursor else {})}
        asking = partial(_page, client, url, asked, shown, options)
        page = await until_connected(asking, upstream)
        items, cursor = _taken(page, shown)
        room = options.max_entries - len(gathered.raw)
        gathered.raw.extend(items[:room])
        if len(items) > room or (cursor and len(items) == room):
            gathered.cut = f"offers more than {options.max_entries} entries"
            return
        if not cursor:
            return
        if cursor in seen:
            gathered.cut = "gives the same page again and again"
            return
        seen.add(cursor)
    gathered.cut = f"offers more than {options.max_pages} pages"


def _servers(base: str) -> str:
    path = base.rstrip("/")
    return f"{path}/servers" if path.endswith(("/v0.1", "/v0")) else f"{path}/v0.1/servers"


async def _page(
    client: httpx2.AsyncClient,
    url: str,
    asked: Mapping[str, str],
    shown: str,
    options: ProvisionOptions,
) -> object:
    try:
        async with client.stream("GET", url, params=dict(asked)) as answer:
            _check_status(answer.status_code, shown)
            body = bytearray()
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > options.max_page_bytes:
                    told = f"sent a page of more than {options.max_page_bytes} bytes"
                    raise UpstreamError(shown, told)
    except httpx2.TransportError as error:
        told = f"cannot be reached: {type(error).__name__}"
        raise UpstreamError(shown, told, kind="connect") from error
    except httpx2.HTTPError as error:
        raise UpstreamError(shown, f"cannot be read: {type(error).__name__}") from error
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise UpstreamError(shown, "sent a page that is not JSON") from error


def _check_status(status: int, shown: str) -> None:
    if status == _TOO_MANY_REQUESTS or status >= _SERVER_ERRORS:
        raise UpstreamError(shown, f"answered {status}", kind="connect")
    if not httpx2.codes.is_success(status):
        raise UpstreamError(shown, f"answered {status}: is it a registry?")


def _taken(page: object, shown: str) -> tuple[list[object], str]:
    items = page.get("servers") if isinstance(page, dict) else None
    if not isinstance(page, dict) or not isinstance(items, list):
        raise UpstreamError(shown, "sent a page without a list 'servers': is it a registry?")
    about = page.get("metadata")
    cursor = about.get("nextCursor") if isinstance(about, dict) else None
    return items, cursor if isinstance(cursor, str) and len(cursor) <= _CURSOR_CHARS else ""


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=detail)
