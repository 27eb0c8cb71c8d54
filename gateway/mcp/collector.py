"""Collects what a source lists, within the limits: checked, cleaned, pinned and scanned.

What a source of the host's own lists passes through here as what an MCP server lists does.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace

from gateway.mcp.definitions import (
    PROMPTS,
    RESOURCES,
    TOOLS,
    ListMethod,
    clean_definition,
    digest_definition,
    find_fault,
    find_inner_fault,
    find_name_fault,
    item_name,
    measure_size,
    parse_definition,
    read_php,
)
from gateway.mcp.injection_scanner import scan_definition
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import as_object
from gateway.runtime.naming import MAX_NAME_CHARS
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, JsonObject, ToolDefinition
from gateway.types.listing import Listing, pin_key

_OF_KIND = {"tool": TOOLS, "resource": RESOURCES, "prompt": PROMPTS}
_FREE_S = 0.5
"""Processor time for which no share is kept: most work ends before."""
_STEP_S = 0.001
_PAUSE_SHARE = 3
"""How many times as long as a step the pause after it takes."""


class WorkShare:
    """The share of the processor that the work of one thread takes, in small steps.

    Python runs one thread at a time: without pauses each step of the loop would wait for one of
    the work.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        """Processor time of the work so far."""
        self._since = time.thread_time()

    def begin(self) -> None:
        """Begin work, maybe on another thread than before."""
        self._since = time.thread_time()

    def pause(self) -> None:
        """Pause, if the last pause was long enough ago. To be called often."""
        step_s = time.thread_time() - self._since
        if step_s >= _STEP_S:
            self.spent_s += step_s
            if self.spent_s > _FREE_S:
                time.sleep(_PAUSE_SHARE * step_s)
            self._since = time.thread_time()


class DefinitionCollector:
    """Collects definitions page by page, until a limit is reached.

    Args:
        server: Stands in each diagnostic.
        options: The limits of size.
        instructions: What the server says of itself. They are pinned, silence too.
    """

    def __init__(self, server: str, options: UpstreamOptions, instructions: str) -> None:
        self._server = server
        self.options = options
        self._instructions = clean(instructions, limit=options.max_description_chars)
        self._definitions: list[ToolDefinition] = []
        self._diagnostics: list[Diagnostic] = []
        self._digests: dict[str, str] = {}
        self._suspicions: dict[str, tuple[str, ...]] = {}
        self._share = WorkShare()
        digest = hashlib.sha256(instructions.encode("utf-8", "surrogatepass")).hexdigest()
        self._pin(pin_key("server", server), digest, {"description": instructions})
        self.begin("tools", options.max_tools)

    def begin(self, nouns: str, max_items: int) -> None:
        """Begin another group of definitions, with limits of its own.

        Args:
            nouns: What they are called in messages.
            max_items: How many are taken, and how many faults are noted.
        """
        self._nouns = nouns
        self._max_items = max_items
        self._count = self._faults = self._bytes = 0
        self.is_full = False
        """Whether the server offers more than is taken: no more pages are needed."""

    def listing(self) -> Listing:
        """Return all that was taken, in the server's order."""
        return Listing(
            definitions=tuple(self._definitions),
            instructions=self._instructions,
            diagnostics=tuple(self._diagnostics),
            digests=self._digests,
            suspicions=self._suspicions,
        )

    def add_page(
        self, method: ListMethod, page: object, accepted: frozenset[str] | None = None
    ) -> None:
        """Take the usable definitions of one page.

        Args:
            method: The list it is a page of.
            page: As the server sent it.
            accepted: The names that the SDK's own rules let through; None if it judged none.
        """
        self._share.begin()
        for item in page if isinstance(page, list) else ():
            self._take(item, method, accepted)
            if self._share.spent_s > self.options.max_listing_cpu_s and not self.is_full:
                self._fill(f"{self._nouns} that take longer to check than max_listing_cpu_s")
            if self.is_full:
                return

    def add_definition(self, definition: ToolDefinition, *, trusted: bool) -> None:
        """Take what a source of the host's own lists, if it is usable; of a trusted one the name.

        A schema without a type is one of type object.
        """
        method = _OF_KIND.get(definition.kind, ListMethod("", "", definition.kind, "name"))
        item = {
            method.id_key: definition.name,
            "title": definition.title,
            "description": definition.description,
            "inputSchema": {"type": "object", **definition.input_schema},
            "outputSchema": definition.output_schema,
        }
        if trusted and not find_name_fault(item, method):
            self._definitions.append(definition)
        elif not self.is_full:
            self._take(item, method, definition=definition)

    def _take(
        self,
        item: JsonObject,
        method: ListMethod,
        accepted: frozenset[str] | None = None,
        definition: ToolDefinition | None = None,
    ) -> None:
        mended = read_php(item, method)
        reason = find_fault(mended, method)
        reason = reason or self._add(as_object(mended), item, method, accepted, definition)
        if reason and self._faults == self._max_items:
            self._fill(f"more than {self._max_items} {self._nouns} that cannot be used")
        elif reason:
            self._faults += 1
            name = clean(item_name(item, method), limit=MAX_NAME_CHARS)
            self.add_note("tool_quarantined", f"{method.kind} {name!r}: {reason}")

    def truncate(self, why: str) -> None:
        """Note that the server offers more than what is taken."""
        self.add_note("listing_truncated", f"offers {why}; the rest was left out")

    def add_note(self, code: Code, detail: str) -> None:
        """Leave a diagnostic that names the server."""
        note = Diagnostic(stage="catalog", code=code, detail=f"{self._server!r}: {detail}")
        self._diagnostics.append(note)

    def _add(
        self,
        item: JsonObject,
        sent: JsonObject,
        method: ListMethod,
        accepted: frozenset[str] | None,
        definition: ToolDefinition | None,
    ) -> str:
        """Take the definition *item* if there is room; return why it cannot be used, or nothing.

        It is pinned as the server has *sent* it.
        """
        options, name, size = self.options, item_name(item, method), measure_size(item, method)
        key = pin_key(method.kind, name)
        if accepted is not None and name not in accepted:
            return "its x-mcp-header marks are invalid"
        # A tool may be called as the pin of a prompt: neither may hide a change of the other.
        if key in self._digests:
            return "the server offers it twice"
        if size > options.max_schema_bytes:
            part = "its schemas are" if method is TOOLS else "it is"
            return f"{part} larger than {options.max_schema_bytes} bytes"
        if method is TOOLS and (reason := find_inner_fault(item)):
            return reason
        max_chars = options.max_description_chars
        if definition is None:
            definition = parse_definition(item, method, max_chars=max_chars)
        else:
            definition = clean_definition(definition, max_chars)
        self._bytes += size + (len(definition.description) if method is TOOLS else 0)
        if self._count == self._max_items:
            self._fill(f"more than {self._max_items} {self._nouns}")
        elif self._bytes > options.max_listing_bytes:
            self._fill(f"{self._nouns} of more than {options.max_listing_bytes} bytes")
        else:
            self._count += 1
            self._definitions.append(definition)
            self._pin(key, digest_definition(sent, method), item)
        return ""

    def _fill(self, why: str) -> None:
        self.is_full = True
        self.truncate(why)

    def _pin(self, key: str, digest: str, item: JsonObject) -> None:
        self._digests[key] = digest
        reasons = scan_definition(item, self._share.pause)
        if reasons:
            self._suspicions[key] = reasons


def check_listing(
    listing: Listing, server: str, options: UpstreamOptions, *, trusted: bool
) -> Listing:
    """Return what a source of the host's own lists, as far as it can be used.

    Args:
        listing: As it came.
        server: Stands in each diagnostic.
        options: The limits of size.
        trusted: Whether the names alone are looked at.
    """
    collector = DefinitionCollector(server, options, "" if trusted else listing.instructions)
    for is_tool in (True, False):
        for definition in listing.definitions:
            if (definition.kind == "tool") is is_tool:
                collector.add_definition(definition, trusted=trusted)
        collector.begin("resources and prompts", options.max_resources)
    found = collector.listing()
    return replace(
        listing,
        definitions=found.definitions,
        instructions=listing.instructions if trusted else found.instructions,
        diagnostics=(*listing.diagnostics, *found.diagnostics),
        suspicions={**listing.suspicions, **found.suspicions},
    )
