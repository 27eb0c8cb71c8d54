"""The lists of an open connection, read page by page and collected within the limits.

* A definition with a fault is left out alone, with a diagnostic.
* Resources and prompts are read beside the tools, and no failure of theirs costs the tools.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from mcp import Client, MCPError, types

from gateway.mcp.error_mapping import SDK_ERRORS, request_error, timeout_error
from gateway.mcp.injection_scanner import scan_definition
from gateway.mcp.lenient_transport import RAW
from gateway.mcp.listing_validation import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    ListMethod,
    digest_definition,
    find_fault,
    item_name,
    measure_size,
    parse_definition,
)
from gateway.mcp.naming import MAX_NAME_CHARS, pin_key
from gateway.options import UpstreamOptions
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, JsonObject, ToolDefinition
from gateway.types.listing import Listing

_Page: TypeAlias = (
    types.ListToolsResult
    | types.ListResourcesResult
    | types.ListResourceTemplatesResult
    | types.ListPromptsResult
)
_Pins: TypeAlias = dict[str, str]


class DefinitionCollector:
    """Collects definitions page by page, until a limit is reached.

    Args:
        server: Stands in each diagnostic.
        options: The limits of size.
        max_items: How many definitions are taken.
        nouns: What they are called in messages.
    """

    def __init__(
        self, server: str, options: UpstreamOptions, *, max_items: int, nouns: str
    ) -> None:
        self._server = server
        self._options = options
        self._max_items = max_items
        self._nouns = nouns
        self._items: dict[str, ToolDefinition] = {}
        self._bytes = 0
        self.diagnostics: list[Diagnostic] = []
        self.digests: _Pins = {}
        self.suspicions: dict[str, tuple[str, ...]] = {}
        self.is_full = False
        """Whether the server offers more than is taken: no more pages are needed."""

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """All that was taken, in the server's order."""
        return tuple(self._items.values())

    def add_page(
        self, method: ListMethod, page: Sequence[object], *, accepted: frozenset[str] | None = None
    ) -> None:
        """Take the usable definitions of one page.

        Args:
            method: The list it is a page of.
            page: As the server sent it.
            accepted: The names that the SDK's own rules let through; None if it judged none.
        """
        for item in page:
            name = item_name(item, method)
            reason = find_fault(item, method) or self._find_conflict(name, method, accepted)
            fields: JsonObject = item if isinstance(item, dict) else {}
            size = 0 if reason else measure_size(fields, method)
            if size > self._options.max_schema_bytes:
                part = "its schemas are" if method is TOOLS else "it is"
                reason = f"{part} larger than {self._options.max_schema_bytes} bytes"
            if reason:
                shown = clean(name, limit=MAX_NAME_CHARS)
                self.add_note("tool_quarantined", f"{method.kind} {shown!r}: {reason}")
                continue
            definition = parse_definition(
                fields, method, max_chars=self._options.max_description_chars
            )
            self._check_room(size + (len(definition.description) if method is TOOLS else 0))
            if self.is_full:
                return
            key = pin_key(method.kind, name)
            self._items[key] = definition
            self._pin(key, digest_definition(fields, method), scan_definition(fields))

    def add_instructions(self, instructions: str) -> str:
        """Pin what the server says of itself, silence too, and return it cleaned."""
        reasons = scan_definition({"description": instructions})
        self._pin(pin_key("server", self._server), _digest(instructions), reasons)
        return clean(instructions, limit=self._options.max_description_chars)

    def truncate(self, why: str) -> None:
        """Note that the server offers more than what is taken."""
        self.is_full = True
        self.add_note("listing_truncated", f"offers {why}; the rest was left out")

    def add_note(self, code: Code, detail: str) -> None:
        """Leave a diagnostic that names the server."""
        note = Diagnostic(stage="catalog", code=code, detail=f"{self._server!r}: {detail}")
        self.diagnostics.append(note)

    def _find_conflict(self, name: str, method: ListMethod, accepted: frozenset[str] | None) -> str:
        if accepted is not None and name not in accepted:
            return "its x-mcp-header marks are invalid"
        return "the server offers it twice" if pin_key(method.kind, name) in self._items else ""

    def _check_room(self, size: int) -> None:
        self._bytes += size
        if len(self._items) == self._max_items:
            self.truncate(f"more than {self._max_items} {self._nouns}")
        elif self._bytes > self._options.max_listing_bytes:
            self.truncate(f"{self._nouns} of more than {self._options.max_listing_bytes} bytes")

    def _pin(self, key: str, digest: str, reasons: tuple[str, ...]) -> None:
        self.digests[key] = digest
        if reasons:
            self.suspicions[key] = reasons


async def read_listing(client: Client, server: str, options: UpstreamOptions) -> Listing:
    """Read all that *client*'s server offers, within the limits. Raises what the SDK raises."""
    tools = DefinitionCollector(server, options, max_items=options.max_tools, nouns="tools")
    others = DefinitionCollector(
        server, options, max_items=options.max_resources, nouns="resources and prompts"
    )
    await asyncio.gather(
        _read_tools(client, tools, options), _read_others(client, others, server, options)
    )
    instructions = others.add_instructions(client.instructions or "")
    return Listing(
        tools=tools.definitions,
        things=others.definitions,
        instructions=instructions,
        diagnostics=(*tools.diagnostics, *others.diagnostics),
        digests=merge_pins(tools.digests, others.digests),
        suspicions={**tools.suspicions, **others.suspicions},
    )


def merge_pins(tools: Mapping[str, str], others: Mapping[str, str]) -> _Pins:
    """Return the pins of both. A key that both have is pinned to both."""
    shared = {key: _digest(tools[key], others[key]) for key in tools.keys() & others.keys()}
    return {**tools, **others, **shared}


async def _read_tools(
    client: Client, collector: DefinitionCollector, options: UpstreamOptions
) -> None:
    async with asyncio.timeout(options.list_timeout_s):
        await _read_pages(
            lambda cursor: client.list_tools(cursor=cursor), TOOLS, collector, options
        )


async def _read_others(
    client: Client, collector: DefinitionCollector, server: str, options: UpstreamOptions
) -> None:
    limit_s = options.list_timeout_s
    for method, fetch in _other_lists(client):
        if collector.is_full:
            return
        try:
            async with asyncio.timeout(limit_s):
                await _read_pages(fetch, method, collector, options)
        except TimeoutError:
            error = timeout_error(server, f"answer {method.method}", limit_s, "list_timeout_s")
            collector.add_note("listing_incomplete", error.detail)
            return
        except SDK_ERRORS as error:
            if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                failure = request_error(server, method.method, error, sent=True, status=0)
                collector.add_note("listing_incomplete", failure.detail)


_Fetch: TypeAlias = Callable[[str | None], Awaitable[_Page]]


def _other_lists(client: Client) -> Iterator[tuple[ListMethod, _Fetch]]:
    capabilities = client.server_capabilities
    if capabilities.resources is not None:
        yield RESOURCES, lambda cursor: client.list_resources(cursor=cursor)
        yield TEMPLATES, lambda cursor: client.list_resource_templates(cursor=cursor)
    if capabilities.prompts is not None:
        yield PROMPTS, lambda cursor: client.list_prompts(cursor=cursor)


async def _read_pages(
    fetch: _Fetch, method: ListMethod, collector: DefinitionCollector, options: UpstreamOptions
) -> None:
    cursor: str | None = None
    cursors: set[str] = set()
    for _ in range(options.max_pages):
        page = await fetch(cursor)
        _add_page(collector, method, page)
        cursor = page.next_cursor
        if cursor is None or collector.is_full:
            return
        if cursor in cursors:
            collector.truncate(f"the same page of {method.method} again and again")
            return
        cursors.add(cursor)
    collector.truncate(f"more than {options.max_pages} pages of {method.method}")


def _add_page(collector: DefinitionCollector, method: ListMethod, page: _Page) -> None:
    raw = (page.meta or {}).get(RAW)
    accepted = None
    if not isinstance(raw, Mapping):
        raw = page.model_dump(by_alias=True, mode="json", exclude_none=True)
    elif isinstance(page, types.ListToolsResult):
        accepted = frozenset(tool.name for tool in page.tools)
    items = raw.get(method.key)
    collector.add_page(method, items if isinstance(items, list) else [], accepted=accepted)


def _digest(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
