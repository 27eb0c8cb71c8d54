"""An MCP registry: ``GET {base}/v0.1/servers``, page by page, and the store of its answers.

* Requests and redirects go only where `gateway.mcp.ssrf_guard` allows.
* Pages, bytes, entries and time have caps. An entry that cannot be parsed is left out with a
  diagnostic.
* Failures that may pass (no connection, 429, 5xx) are tried again with back-off.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from gateway.errors import ConfigError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.retry import retry_connect
from gateway.mcp.ssrf_guard import guarded_transport
from gateway.options import UpstreamOptions
from gateway.provision.options import ProvisionOptions
from gateway.provision.registry_schema import RegistryEntry, parse_entry
from gateway.runtime import VERSION
from gateway.runtime.atomic_file import write_atomically
from gateway.runtime.cache import Clock
from gateway.types import Code, Diagnostic

_PAGE_SIZE = 100
"""Entries of a page: the most that the official registry allows."""
_MAX_DIAGNOSTICS = 20
"""How many entries that cannot be parsed get a diagnostic of their own."""
_MAX_CURSOR_CHARS = 2000
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAnswer:
    """The answer of a registry."""

    raw: tuple[object, ...]
    """The items of ``servers`` of all pages, as decoded JSON."""
    is_complete: bool = True
    """False if pages are missing."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Pages:
    raw: list[object] = field(default_factory=list)
    cut: str = ""
    """Why pages are missing; empty if none is."""


def origin(base: str) -> str:
    """Return scheme, host and port of a registry's address, which may be shown.

    Raises:
        ConfigError: It is no address of a registry.
    """
    message = (
        "the registry's URL must look like https://host or https://host/path, "
        "without a name, a password or a query"
    )
    try:
        parts = urlsplit(base)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(message) from error
    has_more = "@" in parts.netloc or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not host or has_more:
        raise ConfigError(message)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")


def parse_entries(
    raw: tuple[object, ...], *, source: str
) -> tuple[list[RegistryEntry], list[Diagnostic]]:
    """Parse the items of ``servers``.

    Args:
        raw: The decoded JSON.
        source: See `RegistryEntry.source`.

    Returns:
        The newest version of each name, in their order, and diagnostics for what cannot be parsed.
    """
    entries: dict[str, RegistryEntry] = {}
    faults: list[str] = []
    for number, item in enumerate(raw, 1):
        try:
            entry = parse_entry(item, source=source)
        except ValueError as error:
            faults.append(f"{source}: entry {number}: {error}")
            continue
        other = entries.get(entry.name)
        if other is None or (other.latest, other.updated) < (entry.latest, entry.updated):
            entries[entry.name] = entry
    if len(faults) > _MAX_DIAGNOSTICS:
        rest = len(faults) - _MAX_DIAGNOSTICS
        faults[_MAX_DIAGNOSTICS:] = [f"{source}: {rest} more entries cannot be read"]
    return list(entries.values()), [diagnose("registry_entry_skipped", fault) for fault in faults]


async def fetch(base: str, options: ProvisionOptions, upstream: UpstreamOptions) -> RegistryAnswer:
    """Fetch every page.

    Args:
        base: The registry's address; ``/v0.1`` is added if it names no version.
        options: Caps.
        upstream: Retries, and which hosts may be private.

    Raises:
        UpstreamError: Not even the first page could be read.
        ConfigError: The address is not allowed.
    """
    shown = origin(base)
    pages = _Pages()
    try:
        async with asyncio.timeout(options.fetch_timeout_s), _client(base, upstream) as client:
            await _fetch_pages(client, base, options, upstream, pages)
    except TimeoutError as error:
        pages.cut = f"did not answer within {options.fetch_timeout_s} s"
        if not pages.raw:
            raise UpstreamTimeoutError(shown, pages.cut, sent=False) from error
    except UpstreamError as error:
        if not pages.raw:
            raise
        pages.cut = error.detail
    if not pages.cut:
        return RegistryAnswer(raw=tuple(pages.raw))
    detail = f"{shown}: {pages.cut}; {len(pages.raw)} entries were read"
    diagnostics = (diagnose("registry_truncated", detail),)
    return RegistryAnswer(raw=tuple(pages.raw), is_complete=False, diagnostics=diagnostics)


def _client(base: str, upstream: UpstreamOptions) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=guarded_transport(base, upstream.private_hosts),
        follow_redirects=True,
        max_redirects=5,
        timeout=upstream.connect_timeout_s,
        headers={"accept": "application/json", "user-agent": f"tool-gateway/{VERSION}"},
    )


async def _fetch_pages(
    client: httpx2.AsyncClient,
    base: str,
    options: ProvisionOptions,
    upstream: UpstreamOptions,
    pages: _Pages,
) -> None:
    path = base.rstrip("/")
    url = f"{path}/servers" if path.endswith(("/v0.1", "/v0")) else f"{path}/v0.1/servers"
    cursor, cursors = "", set[str]()
    for _ in range(options.max_pages):
        query = {"limit": str(_PAGE_SIZE), "version": "latest"}
        query |= {"cursor": cursor} if cursor else {}
        page = await retry_connect(
            partial(_fetch_page, client, url, query, origin(base), options), upstream
        )
        items, cursor = _parse_page(page, origin(base))
        room = options.max_entries - len(pages.raw)
        pages.raw.extend(items[:room])
        if len(items) > room or (cursor and len(items) == room):
            pages.cut = f"offers more than {options.max_entries} entries"
            return
        if not cursor:
            return
        if cursor in cursors:
            pages.cut = "gives the same page again and again"
            return
        cursors.add(cursor)
    pages.cut = f"offers more than {options.max_pages} pages"


async def _fetch_page(
    client: httpx2.AsyncClient,
    url: str,
    query: Mapping[str, str],
    shown: str,
    options: ProvisionOptions,
) -> object:
    body = bytearray()
    try:
        async with client.stream("GET", url, params=query) as response:
            _check_status(response.status_code, shown)
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > options.max_page_bytes:
                    limit = f"sent a page of more than {options.max_page_bytes} bytes"
                    raise UpstreamError(shown, limit)
    except httpx2.TransportError as error:
        detail = f"cannot be reached: {type(error).__name__}"
        raise UpstreamError(shown, detail, kind="connect") from error
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


def _parse_page(page: object, shown: str) -> tuple[list[object], str]:
    items = page.get("servers") if isinstance(page, dict) else None
    if not isinstance(page, dict) or not isinstance(items, list):
        raise UpstreamError(shown, "sent a page without a list 'servers': is it a registry?")
    metadata = page.get("metadata")
    cursor = metadata.get("nextCursor") if isinstance(metadata, dict) else None
    is_usable = isinstance(cursor, str) and len(cursor) <= _MAX_CURSOR_CHARS
    return items, str(cursor) if is_usable else ""


def diagnose(code: Code, detail: str) -> Diagnostic:
    """Return a diagnostic of the catalog stage."""
    return Diagnostic(stage="catalog", code=code, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An earlier answer of a registry."""

    raw: tuple[object, ...]
    """See `RegistryAnswer.raw`."""
    age_s: float


class RegistryCache:
    """The answers of registries, a file each, so that each is asked once a day at most.

    Args:
        folder: Made when first needed.
        wall: Seconds since the epoch.
    """

    def __init__(self, folder: Path, *, wall: Clock = time.time) -> None:
        self._folder = folder
        self._wall = wall

    def load(self, base: str) -> StoredAnswer | None:
        """Return the last answer of the registry at *base*; None if none can be read."""
        try:
            document = json.loads(self._path(base).read_bytes())
            raw, fetched_at = tuple(document["servers"]), float(document["fetched_at"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return StoredAnswer(raw=raw, age_s=max(self._wall() - fetched_at, 0.0))

    def save(self, base: str, raw: tuple[object, ...]) -> None:
        """Store the answer of the registry at *base*.

        Raises:
            OSError: The file cannot be written.
        """
        document = {"fetched_at": self._wall(), "servers": raw}
        write_atomically(self._path(base), json.dumps(document))

    def _path(self, base: str) -> Path:
        return self._folder / f"{hashlib.sha256(base.encode()).hexdigest()[:16]}.json"
