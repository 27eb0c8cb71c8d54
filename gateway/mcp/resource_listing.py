"""Resources and prompts as a server offers them, in JSON -> definitions of a form to be trusted.

* A bad thing is left out alone, as a bad tool is: see `gateway.mcp.listing_validation`.
* Names and URIs stay as they are, since they go back to the server; every text is cleaned.
* A definition is pinned as a tool's is, by all that a model or a person reads of it. What tells the
  state of its contents (``size``, ``lastModified``) is no part of that.
* The input schema of a prompt or a template says what it must be filled with.
* Nothing here knows the SDK.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.mcp.injection_scanner import suspicions
from gateway.mcp.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS, MAX_URI_CHARS, thing_key
from gateway.options import UpstreamOptions
from gateway.runtime.text import clean
from gateway.types import Code, Diagnostic, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing

_VARIABLE = re.compile(r"[A-Za-z0-9_.]+")
_DETAILS: Mapping[str, type] = {
    "mimeType": str,
    "size": int,
    "annotations": dict,
    "icons": list,
    "_meta": dict,
}
_PINNED = ("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One kind of list that a server may offer."""

    method: str
    key: str
    """The key under which a page holds its things."""
    kind: Kind
    named: str
    """The key of what goes back to the server: a name or a URI."""
    longest: int
    """How many characters that may have."""


RESOURCES = Offer(
    method="resources/list", key="resources", kind="resource", named="uri", longest=MAX_URI_CHARS
)
TEMPLATES = Offer(
    method="resources/templates/list",
    key="resourceTemplates",
    kind="resource",
    named="uriTemplate",
    longest=MAX_URI_CHARS,
)
PROMPTS = Offer(
    method="prompts/list", key="prompts", kind="prompt", named="name", longest=MAX_NAME_CHARS
)
OFFERS = (RESOURCES, TEMPLATES, PROMPTS)


def digest(thing: JsonObject) -> str:
    """Give the SHA-256 (hex) of a definition as it came; the order of keys does not matter."""
    whole = {key: thing.get(key) for key in _PINNED}
    told = thing.get("annotations")
    marks = told.items() if isinstance(told, dict) else ()
    whole["annotations"] = {key: value for key, value in marks if key != "lastModified"}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


class Gathered:
    """Gathers the things of one server, list by list, page by page."""

    def __init__(self, server: str, options: UpstreamOptions) -> None:
        self._server = server
        self._options = options
        self._things: dict[tuple[Kind, str], ToolDefinition] = {}
        self._bytes = 0
        self.notes: list[Diagnostic] = []
        self.digests: dict[str, str] = {}
        self.suspicions: dict[str, tuple[str, ...]] = {}
        self.instructions = ""
        """What the server says of itself; empty if nothing."""
        self.full = False
        """Whether the server offers more than is taken."""

    @property
    def things(self) -> tuple[ToolDefinition, ...]:
        """What was gathered, in the server's order."""
        return tuple(self._things.values())

    def take(self, offer: Offer, raw: Sequence[object]) -> None:
        """Sift one page."""
        for thing in raw:
            told = thing if isinstance(thing, dict) else {}
            name = _text(told.get(offer.named))
            size = len(json.dumps(told, default=str))
            reason = _fault(thing, name, offer) or self._misfit(offer.kind, name, size)
            if reason:
                shown = clean(name, limit=MAX_NAME_CHARS)
                self.note("tool_quarantined", f"{offer.kind} {shown!r}: {reason}")
                continue
            self._bytes += size
            if len(self._things) == self._options.max_things:
                self.cut(f"more than {self._options.max_things} resources and prompts")
            elif self._bytes > self._options.max_listing_bytes:
                self.cut(f"resources of more than {self._options.max_listing_bytes} bytes")
            if self.full:
                return
            self._things[offer.kind, name] = self._definition(offer, name, told)
            self.digests[thing_key(offer.kind, name)] = digest(told)
            reasons = suspicions(told)
            if reasons:
                self.suspicions[thing_key(offer.kind, name)] = reasons

    def heard(self, instructions: str) -> None:
        """Take what the server says of itself. If it says nothing, that is pinned too."""
        key = thing_key("server", self._server)
        self.instructions = clean(instructions, limit=self._options.max_description_chars)
        self.digests[key] = _digest_of(instructions)
        reasons = suspicions({"description": instructions})
        if reasons:
            self.suspicions[key] = reasons

    def cut(self, why: str) -> None:
        """Note that the server offers more than what is taken."""
        self.full = True
        self.note("listing_truncated", f"offers {why}; the rest was left out")

    def beside(self, tools: Listing) -> Listing:
        """Give *tools* with what was gathered beside them.

        A tool may have the name under which a thing is pinned: then the pin is of both.
        """
        both = tools.digests.keys() & self.digests.keys()
        shared = {name: _digest_of(tools.digests[name], self.digests[name]) for name in both}
        return replace(
            tools,
            things=self.things,
            instructions=self.instructions,
            diagnostics=(*tools.diagnostics, *self.notes),
            digests={**tools.digests, **self.digests, **shared},
            suspicions={**tools.suspicions, **self.suspicions},
        )

    def note(self, code: Code, detail: str) -> None:
        """Leave a diagnostic that names the server."""
        note = Diagnostic(stage="catalog", code=code, detail=f"{self._server!r}: {detail}")
        self.notes.append(note)

    def _misfit(self, kind: Kind, name: str, size: int) -> str:
        if size > self._options.max_schema_bytes:
            return f"it is larger than {self._options.max_schema_bytes} bytes"
        return "the server offers it twice" if (kind, name) in self._things else ""

    def _definition(self, offer: Offer, name: str, told: JsonObject) -> ToolDefinition:
        limit = self._options.max_description_chars
        title = _text(told.get("title")) or (_text(told.get("name")) if offer != PROMPTS else "")
        schema = _template(name) if offer == TEMPLATES else _arguments(told, limit)
        return ToolDefinition(
            kind=offer.kind,
            name=name,
            title=clean(title, limit=MAX_TITLE_CHARS),
            description=clean(_text(told.get("description")), limit=limit),
            input_schema=schema if offer != RESOURCES else {},
            details=dict(_details(offer, told)),
        )


def _digest_of(*told: str) -> str:
    return hashlib.sha256("".join(told).encode("utf-8", "surrogatepass")).hexdigest()


def _details(offer: Offer, told: JsonObject) -> Iterator[tuple[str, object]]:
    if offer == TEMPLATES:
        yield "template", True
    for key, kind in _DETAILS.items():
        value = told.get(key)
        if isinstance(value, kind):
            yield key, clean(value, limit=MAX_NAME_CHARS) if isinstance(value, str) else value


def _fault(thing: object, name: str, offer: Offer) -> str:
    if not isinstance(thing, dict):
        return "it is not an object"
    if not name.strip():
        return f"it has no {offer.named}"
    if len(name) > offer.longest:
        return f"its {offer.named} is longer than {offer.longest} characters"
    return "" if name.isprintable() else f"its {offer.named} holds characters that nobody can see"


def _template(uri: str) -> JsonObject:
    """Give the variables of a URI template (RFC 6570) as a schema."""
    inside = (part.partition("}")[0] for part in uri.split("{")[1:])
    names = (_VARIABLE.match(name.lstrip("+#./;?&")) for each in inside for name in each.split(","))
    properties = {found.group(): {"type": "string"} for found in names if found}
    return {"type": "object", "properties": properties}


def _arguments(told: JsonObject, limit: int) -> JsonObject:
    """Give the arguments of a prompt as a schema."""
    given = told.get("arguments")
    named = [
        each
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and _text(each.get("name")).isprintable() and each.get("name")
    ]
    properties = {
        _text(each["name"]): {
            "type": "string",
            **{
                key: clean(_text(each[key]), limit=most)
                for key, most in (("title", MAX_TITLE_CHARS), ("description", limit))
                if _text(each.get(key))
            },
        }
        for each in named
    }
    required = [_text(each["name"]) for each in named if each.get("required") is True]
    return {"type": "object", "properties": properties, "required": required}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
