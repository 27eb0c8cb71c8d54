"""Search results and advice as text for the model, within a token budget.

The text is the conversation's only record of the found tools. `direct_names_in` parses it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.discovery.meta_tools import ROUTES
from gateway.discovery.parameters import shorten
from gateway.errors import GatewayError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.index.tool_graph import DERIVED
from gateway.options import DiscoveryOptions
from gateway.runtime.json_schema import as_object, as_objects
from gateway.runtime.text import estimate_tokens, one_line, plain
from gateway.types import Caller, JsonObject, Match, PathStep, SearchResult

MAX_LINE_CHARS = 160
_LINE_CHARS = (MAX_LINE_CHARS, 90, 40, 0)
"""Possible maximum lengths of a description, in characters. The first that fits the budget is
used."""
_SIGNATURE_KEYWORDS = frozenset({"type", "properties", "required", "title", "description"})
"""Schema keywords that `_signature` can represent."""
_PREPARING = "Search is still preparing and finds little: search again in a moment."
_WORDS_ALONE = "Search is still preparing: if none of these fits, search again in a moment."
_SHOWN_BEFORE = "told before"
_MAX_NAMES = 12
"""Maximum number of words or servers that the note of an empty result names."""
_MAX_READ_CHARS = 100_000
Schemas = Callable[[str], Mapping[str, object] | None]
"""Returns the JSON Schema of the parameters of the tool with this exposed name, if shown."""


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    match: Match
    is_direct: bool
    """True if the tool becomes a proxy. Always True if schemas are shown."""
    is_known: bool = False
    """True if the model has seen the tool's definition already."""

    @property
    def is_unexplained(self) -> bool:
        """True if the graph added the tool as related, without a path that explains it."""
        return self.kind == "related" and not self.match.evidence.path

    @property
    def needs_only_name(self) -> bool:
        """True if only the tool's name is shown: it is unexplained and not a proxy."""
        return self.is_unexplained and not self.is_direct


def render(
    result: SearchResult,
    options: DiscoveryOptions,
    *,
    hidden: Collection[str] = (),
    shown: Collection[str] = (),
    schemas: Schemas | None = None,
) -> str:
    """Return *result* as JSON for the model, with tools in the order of `by_kind`.

    Related tools without a path that do not become proxies are only named under ``also``. To fit
    the budget, descriptions are shortened first; then entries are omitted from the end, but never
    the best match.

    Args:
        result: Result of a search.
        options: The budget, and the maximum number of proxies per search.
        hidden: Names of the host's tools, which do not become proxies. Ignored with *schemas*.
        shown: Names of tools that the model knows; they are not described again.
        schemas: Returns the parameters to show within their own budget, if found tools do not
            become proxies.
    """
    entries = _entries(result, options, hidden, shown)
    if not entries:
        return _dump({"tools": [], "note": _no_match_note(result)})
    if schemas is not None:
        entries = [replace(entry, is_direct=True) for entry in entries]
        return _render_with_schemas(entries, result, options.schema_token_budget, schemas)
    text = ""
    for line_chars in _LINE_CHARS:
        text = _dump(_body(entries, line_chars, result))
        if estimate_tokens(text) <= options.result_token_budget:
            return text
    while len(entries) > 1 and estimate_tokens(text) > options.result_token_budget:
        entries.pop()
        text = _dump(_body(entries, 0, result))
    return text


def _render_with_schemas(
    entries: Sequence[_Entry], result: SearchResult, budget: int, schemas: Schemas
) -> str:
    body = _body(entries, MAX_LINE_CHARS, result)
    rows: list[dict[str, Any]] = body["tools"]
    remaining = budget - estimate_tokens(_dump(body))
    for row, entry in zip(rows, entries, strict=True):
        parameters: object = _SHOWN_BEFORE
        if not entry.is_known:
            has_schema = not (entry.match.suspicious or entry.is_unexplained)
            schema = schemas(row["name"]) if has_schema else None
            parameters = _signature(schema if row is not rows[0] else _fit(schema, remaining))
        cost = estimate_tokens(_dump(parameters))
        # The row still lists the required arguments, and the answer to a wrong call shows the
        # schema.
        if parameters is not None and (entry.is_known or cost <= remaining):
            row["parameters"] = parameters
            remaining -= cost
        elif parameters is not None and row is rows[0]:
            # The best match must not be the only one without parameters.
            break
    text = _dump(body)
    while remaining < 0 and len(rows) > 1 and estimate_tokens(text) > budget:
        rows.pop()
        text = _dump(body)
    return text


def _fit(schema: Mapping[str, Any] | None, budget: int) -> Mapping[str, Any] | None:
    """Return *schema*, shortened to *budget* estimated tokens if possible."""
    for chars in (4 * budget, budget):
        if schema and estimate_tokens(_dump(_signature(schema))) > budget:
            schema = shorten({**schema}, chars)
    return schema


def _signature(schema: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return a compact form of the parameters in *schema*, keyed by name; None if *schema* is None.

    A parameter of a plain type becomes a text such as ``"integer: Hours to wait."``. A schema with
    other keywords is returned unchanged.
    """
    says = {key for key, value in (schema or {}).items() if not isinstance(value, bool)}
    properties = (schema or {}).get("properties")
    if not (isinstance(properties, Mapping) and says <= _SIGNATURE_KEYWORDS):
        return schema
    return {name: _parameter(property_schema) for name, property_schema in properties.items()}


def _parameter(schema: object) -> object:
    if not isinstance(schema, Mapping) or not schema.keys() <= {"type", "description", "title"}:
        return schema
    kind, description = schema.get("type"), schema.get("description")
    if not isinstance(kind, str):
        return schema
    return f"{kind}: {description}" if description else kind


def direct_names(
    result: SearchResult, options: DiscoveryOptions, *, hidden: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the tools in *result* that become proxies, best first.

    *hidden* are names of the host's tools, which proxies cannot have.
    """
    entries = _entries(result, options, hidden)
    return tuple(dict.fromkeys(entry.match.name for entry in entries if entry.is_direct))


def _entries(
    result: SearchResult,
    options: DiscoveryOptions,
    hidden: Collection[str],
    shown: Collection[str] = (),
) -> list[_Entry]:
    entries = [
        _Entry(kind, match, _may_be_direct(kind, match, options)) for kind, match in by_kind(result)
    ]
    # Beyond the limit, a tool is still named and can be called by its name.
    room = options.proxies_per_search
    for index, entry in enumerate(entries):
        if entry.is_direct and (room <= 0 or entry.match.name in hidden):
            entries[index] = replace(entry, is_direct=False)
        elif entry.match.name in shown:
            entries[index] = replace(entry, is_known=True)
        room -= entries[index].is_direct
    return entries


def by_kind(result: SearchResult) -> Iterator[tuple[str, Match]]:
    """Yield the tools of *result* in the order in which they are shown, each after its kind.

    Matches come first, then tools with a path of declared edges only, then tools with another path,
    then the rest; within each group prerequisites, related tools, next steps.
    """
    matched = {match.id for match in result.matches}
    lists = {
        "prerequisite": [match for match in result.prerequisites if match.id not in matched],
        "related": result.related,
        "next_step": result.next_steps,
    }
    added = [(kind, match) for kind, matches in lists.items() for match in matches]
    yield from (("match", match) for match in result.matches)
    yield from sorted(added, key=lambda row: _support(row[1].evidence.path))


def _support(path: Sequence[PathStep]) -> int:
    return 2 if not path else 0 if all(step.declared for step in path) else 1


def _may_be_direct(kind: str, match: Match, options: DiscoveryOptions) -> bool:
    if kind == "match":
        return not match.suspicious
    if kind == "prerequisite" and options.prerequisite_proxies and not match.suspicious:
        return match.direct or all(step.declared for step in match.evidence.path)
    return match.direct


def _no_match_note(result: SearchResult) -> str:
    if result.mode == "empty":
        return "The catalog is empty."
    if _is_preparing(result):
        return _PREPARING
    note = "No tool matches. Say the task in other words, or name the object it acts on."
    if result.unmatched:
        note += f" No tool knows: {', '.join(result.unmatched[:_MAX_NAMES])}."
    if result.nearest:
        note += f" Nearest, though unlikely: {result.nearest.name}."
    if result.servers:
        note += f" Servers: {', '.join(result.servers[:_MAX_NAMES])}."
    return note


def _body(entries: Sequence[_Entry], line_chars: int, result: SearchResult) -> dict[str, Any]:
    rows = [_row(entry, line_chars) for entry in entries if not entry.needs_only_name]
    body: dict[str, Any] = {"tools": rows}
    if also := [entry.match.name for entry in entries if entry.needs_only_name]:
        body["also"] = also
    if _is_preparing(result):
        body["note"] = _WORDS_ALONE
    elif any(diagnostic.code == "low_confidence_results" for diagnostic in result.diagnostics):
        body["note"] = "None of these is a likely match: check before calling, or search again."
    return body


def _is_preparing(result: SearchResult) -> bool:
    codes = {note.code for note in result.diagnostics}
    return "model_preparing" in codes or codes >= {"index_building", "graph_fallback"}


def _row(entry: _Entry, line_chars: int) -> dict[str, Any]:
    match = entry.match
    kind = {"kind": entry.kind} if entry.kind != "match" else {}
    if match.suspicious:
        # Show only the facts that a call needs, and no text that could be an instruction.
        required = plain(match.required)
        needs = {"needs": required} if required else {}
        return {"name": match.name, **needs, **kind, "suspicious": True, "direct": False}
    line = one_line(match.description, limit=line_chars) if line_chars else ""
    row: dict[str, Any] = {"name": match.name}
    if line and not entry.is_known:
        row["about"] = line
    if match.required and not entry.is_known:
        row["needs"] = list(match.required)
    row |= kind
    if why := _reason(entry, f"{match.name} {line}"):
        row["why"] = why
    if not entry.is_direct:
        row["direct"] = False
    return row


def _reason(entry: _Entry, visible: str) -> str:
    """Return why the tool was found, without words in *visible*, the tool's row."""
    evidence = entry.match.evidence
    if evidence.path:
        step = evidence.path[0]
        return f"{step.predicate} of {step.subject.rsplit('/', 1)[-1]}"
    if evidence.exact_name:
        return "named"
    if entry.kind != "match":
        return ""
    visible_words = set(re.findall(r"[^\W_]+", visible.casefold()))
    missing = [word for word in evidence.words if word.casefold() not in visible_words]
    return f"words: {', '.join(missing[:4])}" if missing else ""


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def direct_names_in(content: str) -> tuple[str, ...]:
    """Return the names of the proxies in *content*, a text of `render`; () for other text."""
    return tuple(row["name"] for row in _rows(content) if row.get("direct") is not False)


def described_names_in(content: str) -> tuple[str, ...]:
    """Return the names of tools with parameters in *content*, a text of `render`, if any."""
    return tuple(row["name"] for row in _rows(content) if isinstance(row.get("parameters"), dict))


def _rows(content: str) -> list[dict[str, Any]]:
    if len(content) > _MAX_READ_CHARS:
        return []
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return []
    rows = as_objects(as_object(body).get("tools"))
    return [row for row in rows if isinstance(row.get("name"), str)]


_TOOLS_A_GROUP = 3
_MAX_SUGGESTIONS = 32
"""Maximum number of suggestions among which tools with an incoming edge are looked for."""


async def route_tools(gateway: Gateway, arguments: JsonObject, caller: Caller) -> str:
    """Search, and return the matches as JSON, grouped by server or category, best group first.

    Raises:
        InvalidRequestError: If the query is missing, or the grouping is unknown.
    """
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidRequestError("'query' is a text")
    by = arguments.get("by", "server")
    if by not in ROUTES:
        raise InvalidRequestError(f"'by' is one of: {', '.join(ROUTES)}")
    options = gateway.options.search
    limit, wait = options.max_limit, options.models_wait
    result = await gateway.search(query, limit=limit, caller=caller, wait=wait)
    snapshot = await gateway.snapshot()
    by_id, entities = snapshot.eligibility.by_id, snapshot.entities
    groups: dict[str, list[str]] = {}
    for match in result.matches:
        names = [match.server]
        if by == "category":
            position = by_id.get(match.id)
            names = [] if position is None else [*entities[position].hints.categories]
        for name in names:
            groups.setdefault(name, []).append(match.name)
    rows = [
        {str(by): group, "found": len(names), "best": names[:_TOOLS_A_GROUP]}
        for group, names in groups.items()
    ]
    return json.dumps(
        {ROUTES[str(by)]: rows[: options.limit]}, ensure_ascii=False, separators=(",", ":")
    )


async def next_tools(gateway: Gateway, arguments: JsonObject, caller: Caller) -> str:
    """Return the tools that follow the given tools in the graph, as JSON.

    Raises:
        InvalidRequestError: If no tools are given.
        UnknownToolError: If a given tool is not in the catalog.
    """
    requested = arguments.get("tools")
    tools = [requested] if isinstance(requested, str) and requested else requested
    if not isinstance(tools, list) or not tools or not all(isinstance(item, str) for item in tools):
        raise InvalidRequestError("'tools' is a list of names")
    names = await _following(gateway, tools, caller, limit=gateway.options.search.limit)
    return json.dumps({"tools": [{"name": name, "direct": False} for name in names]})


async def next_steps_hint(gateway: Gateway, call_name: str, tool: str, caller: Caller) -> str:
    """Return one line with the tools that declared or learned edges put after *tool*. Return "" if
    there are none, or the options turn the line off.

    *call_name* is the name of the call tool; "" if the model must search for the tools first.
    """
    limit = gateway.options.discovery.next_steps
    if not limit:
        return ""
    try:
        names = await _following(gateway, [tool], caller, limit=limit, derived=False)
    except GatewayError:
        # The tool was removed after its call.
        return ""
    by = f", by {call_name}" if call_name else ""
    return f"\n[next steps{by}: {', '.join(names)}]" if names else ""


async def _following(
    gateway: Gateway, tools: list[str], caller: Caller, *, limit: int, derived: bool = True
) -> list[str]:
    suggestions = await gateway.next_steps(tools, limit=_MAX_SUGGESTIONS, caller=caller)
    # Suggestions without an edge are only similar, which is not a reason to call them next.
    paths = ((match.name, match.evidence.path) for match in suggestions)
    return [
        name
        for name, path in paths
        if path and (derived or not any(step.source.startswith(DERIVED) for step in path))
    ][:limit]
