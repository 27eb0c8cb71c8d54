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
    find_repairs,
    item_name,
    measure_size,
    parse_definition,
    repair,
)
from gateway.mcp.injection_scanner import scan_definition
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import as_object
from gateway.runtime.model_schema import convert
from gateway.runtime.naming import MAX_NAME_CHARS
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, JsonObject, ToolDefinition
from gateway.types.listing import Listing, pin_key

_METHODS_BY_KIND = {"tool": TOOLS, "resource": RESOURCES, "prompt": PROMPTS}
_UNPAUSED_CPU_S = 0.5
"""Processor time of a listing's checks before pauses begin, in seconds. Most need less."""
_MAX_NAMED = 5
"""Maximum number of tools that one diagnostic names."""
_STEP_S = 0.001
_PAUSE_FACTOR = 3
"""Length of the pause after a step of the checks, as a multiple of the step's processor time."""


class WorkShare:
    """Pauses between the steps of long work in a thread, so that other threads can run."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        """Processor time that the work has used so far, in seconds."""
        self._since = time.thread_time()

    def begin(self) -> None:
        """Start measuring the processor time of this thread. Each thread has its own clock."""
        self._since = time.thread_time()

    def pause(self) -> None:
        """Pause if the work took a millisecond since the last pause. Call this after every step."""
        step_s = time.thread_time() - self._since
        if step_s >= _STEP_S:
            self.spent_s += step_s
            if self.spent_s > _UNPAUSED_CPU_S:
                time.sleep(_PAUSE_FACTOR * step_s)
            self._since = time.thread_time()


class DefinitionCollector:
    """Collects the usable definitions of a listing: checked, cleaned, digested and scanned.

    Args:
        options: Limits on the size of the listing and its definitions.
        instructions: Instructions of the server. They need approval, even if empty.
    """

    def __init__(self, server: str, options: UpstreamOptions, instructions: str) -> None:
        self._server = server
        self.options = options
        self._instructions = clean(instructions, limit=options.max_description_chars)
        self._definitions: list[ToolDefinition] = []
        self._diagnostics: list[Diagnostic] = []
        self._digests: dict[str, str] = {}
        self._suspicions: dict[str, tuple[str, ...]] = {}
        self._simplified: list[str] = []
        self._share = WorkShare()
        digest = hashlib.sha256(instructions.encode("utf-8", "surrogatepass")).hexdigest()
        self._record_digest(pin_key("server", server), digest, {"description": instructions})
        self.begin("tools", options.max_tools)

    def begin(self, nouns: str, max_items: int) -> None:
        """Begin a group of definitions that has its own limits.

        *nouns* is its name in messages (such as "tools"). *max_items* is also the maximum number of
        diagnostics about unusable definitions.
        """
        self._nouns = nouns
        self._max_items = max_items
        self._count = self._faults = self._bytes = 0
        self.is_full = False
        """True if the current group has reached a limit, so that no more pages are needed."""

    def listing(self) -> Listing:
        """Return the added definitions, with instructions, diagnostics, digests and suspicions."""
        if self._simplified:
            named, more = self._simplified[:_MAX_NAMED], len(self._simplified) - _MAX_NAMED
            rest = f", and {more} more" if more > 0 else ""
            self.add_note("schema_simplified", f"tools {', '.join(named)}{rest}")
            self._simplified = []
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
        """Add the usable definitions of one page.

        *accepted* are the names of the tools that the SDK accepts; None if it did not check them.
        """
        self._share.begin()
        for item in page if isinstance(page, list) else ():
            self._add_item(item, method, accepted)
            if self._share.spent_s > self.options.max_listing_cpu_s and not self.is_full:
                self._mark_full(f"{self._nouns} that take longer to check than max_listing_cpu_s")
            if self.is_full:
                return

    def add_definition(self, definition: ToolDefinition, *, trusted: bool) -> None:
        """Add a definition of the host's own source, if it is usable.

        If the source is *trusted*, only the name is checked.
        """
        method = _METHODS_BY_KIND.get(definition.kind, ListMethod("", "", definition.kind, "name"))
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
            self._add_item(item, method, definition=definition)

    def _add_item(
        self,
        item: JsonObject,
        method: ListMethod,
        accepted: frozenset[str] | None = None,
        definition: ToolDefinition | None = None,
    ) -> None:
        repaired = repair(item, method)
        reason = find_fault(repaired, method)
        reason = reason or self._add(as_object(repaired), item, method, accepted, definition)
        if reason and self._faults == self._max_items:
            self._mark_full(f"more than {self._max_items} {self._nouns} that cannot be used")
        elif reason:
            self._faults += 1
            name = clean(item_name(item, method), limit=MAX_NAME_CHARS)
            self.add_note("tool_quarantined", f"{method.kind} {name!r}: {reason}")

    def truncate(self, why: str) -> None:
        """Add a diagnostic about a listing that was cut. *why* names the part beyond the limit."""
        self.add_note("listing_truncated", f"offers {why}; the rest was left out")

    def add_note(self, code: Code, detail: str) -> None:
        """Add a diagnostic that names the server."""
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
        """Add *item*, if the limits allow it. The digest covers it as *sent* by the server.

        Returns:
            Reason why the definition is unusable, or "".
        """
        options, name, size = self.options, item_name(item, method), measure_size(item, method)
        key = pin_key(method.kind, name)
        if accepted is not None and name not in accepted:
            return "its x-mcp-header marks are invalid"
        # A shared digest could hide a change of one of them.
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
            self._mark_full(f"more than {self._max_items} {self._nouns}")
        elif self._bytes > options.max_listing_bytes:
            self._mark_full(f"{self._nouns} of more than {options.max_listing_bytes} bytes")
        else:
            self._count += 1
            self._definitions.append(definition)
            self._note_changes(definition, sent)
            self._record_digest(key, digest_definition(sent, method), item)
        return ""

    def _note_changes(self, definition: ToolDefinition, sent: JsonObject) -> None:
        changes: dict[str, None] = {}
        if definition.kind == "tool":
            lost = convert(definition.input_schema).lost
            changes = dict.fromkeys([*find_repairs(sent), *lost])
        if changes:
            name = clean(definition.name, limit=MAX_NAME_CHARS)
            self._simplified.append(f"{name!r} ({clean(', '.join(changes), limit=MAX_NAME_CHARS)})")

    def _mark_full(self, why: str) -> None:
        self.is_full = True
        self.truncate(why)

    def _record_digest(self, key: str, digest: str, item: JsonObject) -> None:
        self._digests[key] = digest
        reasons = scan_definition(item, self._share.pause)
        if reasons:
            self._suspicions[key] = reasons


def check_listing(
    listing: Listing, server: str, options: UpstreamOptions, *, trusted: bool
) -> Listing:
    """Return the usable part of a listing of the host's own source.

    If *trusted*, only names are checked.
    """
    collector = DefinitionCollector(server, options, "" if trusted else listing.instructions)
    for is_tool in (True, False):
        for definition in listing.definitions:
            if (definition.kind == "tool") is is_tool:
                collector.add_definition(definition, trusted=trusted)
        collector.begin("resources and prompts", options.max_resources)
    checked = collector.listing()
    return replace(
        listing,
        definitions=checked.definitions,
        instructions=listing.instructions if trusted else checked.instructions,
        diagnostics=(*listing.diagnostics, *checked.diagnostics),
        suspicions={**listing.suspicions, **checked.suspicions},
    )
