"""From the tools that a server offers, as JSON, to a listing that can be trusted in form.

* One bad tool costs one tool: it is left out with a diagnostic, the others live.
* Names stay as they are, for they go back to the server; every text is cleaned.
* Nothing here knows the MCP SDK.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from gateway.mcp.injection_scanner import suspicions
from gateway.mcp.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS
from gateway.options import UpstreamOptions
from gateway.runtime.json_schema import mapped
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, Hints, JsonObject, ToolDefinition
from gateway.types.listing import Listing

MAX_DEPTH = 64
"""How deep a definition's objects and lists may lie in each other; real ones lie below 20."""
_DEEP: JsonObject = {"type": "nested too deeply"}
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class Sieve:
    """Gathers one listing, page by page."""

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self._server = server
        self._options = options
        self._tools: dict[str, ToolDefinition] = {}
        self._notes: list[Diagnostic] = []
        self._digests: dict[str, str] = {}
        self._suspicions: dict[str, tuple[str, ...]] = {}
        self._cut = False
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether the listing was cut: no more pages are needed."""
        return self._cut

    def take(self, raw: Sequence[object], *, passed: frozenset[str] | None = None) -> None:
        """Sift one page; *passed* are the names that the protocol's own rules let through."""
        for tool in raw:
            reason = fault(tool) or self._misfit(_name(tool), passed)
            size = 0 if reason else _schema_bytes(_object(tool))
            reason = reason or self._outsized(size)
            if reason:
                self._quarantine(tool, reason)
                continue
            self._bytes += size + len(_text(_object(tool).get("description")))
            if len(self._tools) == self._options.max_tools:
                self.cut(f"more than {self._options.max_tools} tools")
            elif self._bytes > self._options.max_listing_bytes:
                self.cut(f"tools of more than {self._options.max_listing_bytes} bytes")
            if self._cut:
                return
            self._take(_name(tool), _object(tool))

    def cut(self, why: str) -> None:
        """Note that the server offers more than what is taken."""
        self._cut = True
        self._note("listing_truncated", f"offers {why}; the rest was left out")

    def listing(self) -> Listing:
        """Give what was gathered."""
        return Listing(
            tools=tuple(self._tools.values()),
            diagnostics=tuple(self._notes),
            digests=self._digests,
            suspicions=self._suspicions,
        )

    def _take(self, name: str, tool: JsonObject) -> None:
        self._tools[name] = self._definition(tool)
        self._digests[name] = digest(tool)
        reasons = suspicions(tool)
        if reasons:
            self._suspicions[name] = reasons

    def _misfit(self, name: str, passed: frozenset[str] | None) -> str:
        if passed is not None and name not in passed:
            return "its x-mcp-header marks are invalid"
        return "the server offers this name twice" if name in self._tools else ""

    def _outsized(self, size: int) -> str:
        limit = self._options.max_schema_bytes
        return f"its schemas are larger than {limit} bytes" if size > limit else ""

    def _quarantine(self, tool: object, reason: str) -> None:
        shown = clean(_name(tool), limit=MAX_NAME_CHARS)
        self._note("tool_quarantined", f"tool {shown!r}: {reason}")

    def _note(self, code: Code, detail: str) -> None:
        note = Diagnostic(stage="catalog", code=code, detail=f"{self._server!r}: {detail}")
        self._notes.append(note)

    def _definition(self, tool: JsonObject) -> ToolDefinition:
        limit = self._options.max_description_chars
        hints = tool.get("annotations")
        marks = hints if isinstance(hints, dict) else {}
        output = tool.get("outputSchema")
        return ToolDefinition(
            name=_name(tool),
            title=clean(
                _text(tool.get("title")) or _text(marks.get("title")), limit=MAX_TITLE_CHARS
            ),
            description=clean(_text(tool.get("description")), limit=limit),
            input_schema=cleaned(_object(tool.get("inputSchema")), limit=limit),
            output_schema=cleaned(output, limit=limit) if isinstance(output, dict) else None,
            hints=Hints(
                read_only=_flag(marks.get("readOnlyHint")),
                destructive=_flag(marks.get("destructiveHint")),
                idempotent=_flag(marks.get("idempotentHint")),
            ),
        )


def fault(tool: object) -> str:
    """Say why *tool* cannot be used; empty if it can."""
    if not isinstance(tool, dict):
        return "it is not an object"
    if tool.get("inputSchema") == _DEEP or _too_deep(tool):
        return f"it is nested more than {MAX_DEPTH} levels deep"
    return _name_fault(tool.get("name")) or _schema_fault(tool.get("inputSchema"))


def shallow(tool: object) -> object:
    """Give *tool*, or, if it is nested too deeply for any walk, what is left of it."""
    if not isinstance(tool, dict) or not _too_deep(tool):
        return tool
    return {"name": _name(tool), "inputSchema": _DEEP}


def digest(tool: JsonObject) -> str:
    """Give the SHA-256 (hex) of a definition as it came; the order of keys does not matter."""
    whole = {key: tool.get(key) for key in _PINNED}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def cleaned(schema: JsonObject, *, limit: int) -> JsonObject:
    """Give *schema* with every title and description cleaned and clipped."""

    def change(node: JsonObject) -> JsonObject:
        texts = {"title": MAX_TITLE_CHARS, "description": limit}
        return {
            key: clean(value, limit=texts[key])
            if key in texts and isinstance(value, str)
            else value
            for key, value in node.items()
        }

    return mapped(schema, change)


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _schema_bytes(tool: JsonObject) -> int:
    return sum(
        len(json.dumps(tool[key])) for key in ("inputSchema", "outputSchema") if tool.get(key)
    )


def _name_fault(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        return "it has no name"
    if len(name) > MAX_NAME_CHARS:
        return f"its name is longer than {MAX_NAME_CHARS} characters"
    return "" if name.isprintable() else "its name holds characters that nobody can see"


def _schema_fault(schema: object) -> str:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its input schema is not of type object"
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in properties.values()
    ):
        return "the properties of its input schema are not schemas"
    required = schema.get("required") or []
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "the required names of its input schema are not a list of names"
    return "" if isinstance(schema.get("$schema", ""), str) else "its $schema is not an address"


def _name(tool: object) -> str:
    return _text(tool.get("name")) if isinstance(tool, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
