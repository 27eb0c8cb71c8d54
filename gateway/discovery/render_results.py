"""Search results as the model reads them: compact, under a token budget, readable again. Pure.

What is written here is the conversation's only memory of what was found; `direct_names_in` reads it
back.

Advice for the model: where to look for tools, and which come next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.discovery.meta_tools import ROUTES
from gateway.errors import GatewayError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions
from gateway.runtime.json_schema import as_object, as_objects
from gateway.runtime.text import estimate_tokens, one_line, plain
from gateway.types import Caller, JsonObject, Match, PathStep, SearchResult

MAX_LINE_CHARS = 160
_LINE_CHARS = (MAX_LINE_CHARS, 90, 40, 0)
"""Characters of a tool's description; the first of these that fits the budget is taken."""
_OF_SIGNATURES = frozenset({"type", "properties", "required", "title", "description"})
"""Keywords of a schema of which a row holds all that a call needs."""
_PREPARING = "Search is still preparing and finds little: search again in a moment."
_WORDS_ALONE = "Search is still preparing: if none of these fits, search again in a moment."
_SHOWN_BEFORE = "told before"
_MAX_NAMES = 12
"""How many words or servers are named if nothing matches."""
_MAX_READ_CHARS = 100_000
Schemas = Callable[[str], Mapping[str, object] | None]
"""Returns the parameters of a tool by its exposed name; None if they are not shown."""


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    match: Match
    is_direct: bool
    """Whether it becomes a tool of its own."""
    is_shown: bool = False
    """Whether the model has the definition already."""

    @property
    def is_unexplained(self) -> bool:
        """Whether the graph adds it without a reason."""
        return self.kind == "related" and not self.match.evidence.path

    @property
    def needs_only_name(self) -> bool:
        """Whether it is unexplained, and no proxy."""
        return self.is_unexplained and not self.is_direct


def render(
    result: SearchResult,
    options: DiscoveryOptions,
    *,
    hidden: Collection[str] = (),
    shown: Collection[str] = (),
    schemas: Schemas | None = None,
) -> str:
    """Write *result* for the model, as JSON.

    What comes in which order says `by_kind`. What the graph adds without a
    reason is only a name under ``also``, once there is no proxy left for it. What does not fit the
    budget is left out from the end, but never the best match.

    Args:
        result: A search's result.
        options: The budget, and how many tools may become proxies.
        hidden: Names of the host's tools, which mean something else in this conversation.
        shown: Names of tools whose definitions the model has, among its tools or in an earlier
            result: they are not described again.
        schemas: The parameters to write, if found tools do not become tools. They have a budget of
            their own; those of the last tools are left out first. What the graph adds without a
            reason has none.
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
    left = budget - estimate_tokens(_dump(body))
    for row, entry in zip(rows, entries, strict=True):
        parameters: object = _SHOWN_BEFORE
        if not entry.is_shown:
            has_schema = not (entry.match.suspicious or entry.is_unexplained)
            parameters = _signature(schemas(row["name"])) if has_schema else None
        cost = estimate_tokens(_dump(parameters))
        # A tool without room still has its required arguments; a wrong call shows the schema.
        if parameters is not None and (entry.is_shown or cost <= left):
            row["parameters"] = parameters
            left -= cost
    text = _dump(body)
    while left < 0 and len(rows) > 1 and estimate_tokens(text) > budget:
        rows.pop()
        text = _dump(body)
    return text


def _signature(schema: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return the parameters of *schema* by name; which of them are required, the row says.

    One of a plain type is a text such as ``"integer: Hours to wait."``. A schema that says more
    than its properties, and whether there may be others, is returned whole.
    """
    says = {key for key, value in (schema or {}).items() if not isinstance(value, bool)}
    properties = (schema or {}).get("properties")
    if not (isinstance(properties, Mapping) and says <= _OF_SIGNATURES):
        return schema
    return {name: _parameter(each) for name, each in properties.items()}


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
    """Return the names of *result* that may become tools of their own, best first."""
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
    # A tool beyond the cap of proxies is still named and can be called by its name.
    room = options.proxies_per_search
    for index, entry in enumerate(entries):
        if entry.is_direct and (room <= 0 or entry.match.name in hidden):
            entries[index] = replace(entry, is_direct=False)
        elif entry.match.name in shown:
            entries[index] = replace(entry, is_shown=True)
        room -= entries[index].is_direct
    return entries


def by_kind(result: SearchResult) -> Iterator[tuple[str, Match]]:
    """Yield what *result* holds, with its kind, in the order in which it is shown.

    After the matches comes what the host declares, then what is derived, then what only words
    support; of each, prerequisites, related and next steps.
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
        # What a call of it needs, and nothing that could be an instruction.
        required = plain(match.required)
        needs = {"needs": required} if required else {}
        return {"name": match.name, **needs, **kind, "suspicious": True, "direct": False}
    line = one_line(match.description, limit=line_chars) if line_chars else ""
    row: dict[str, Any] = {"name": match.name}
    if line and not entry.is_shown:
        row["about"] = line
    if match.required and not entry.is_shown:
        row["needs"] = list(match.required)
    row |= kind
    if why := _reason(entry, f"{match.name} {line}"):
        row["why"] = why
    if not entry.is_direct:
        row["direct"] = False
    return row


def _reason(entry: _Entry, visible: str) -> str:
    """Return why it was found, unless the words of its row, *visible*, show that already."""
    evidence = entry.match.evidence
    if evidence.path:
        step = evidence.path[0]
        return f"{step.predicate} of {step.subject.rsplit('/', 1)[-1]}"
    if evidence.exact_name:
        return "named"
    if entry.kind != "match":
        return ""
    shown = set(re.findall(r"[^\W_]+", visible.casefold()))
    missing = [word for word in evidence.words if word.casefold() not in shown]
    return f"words: {', '.join(missing[:4])}" if missing else ""


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def direct_names_in(content: str) -> tuple[str, ...]:
    """Return the directly callable names in a result that `render` wrote; () for other text."""
    return tuple(row["name"] for row in _rows(content) if row.get("direct") is not False)


def described_names_in(content: str) -> tuple[str, ...]:
    """Return the names of the tools whose parameters such a result holds; () for other text."""
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
"""How many suggestions are examined for those that an edge leads to."""


async def route_tools(gateway: Gateway, arguments: JsonObject, caller: Caller) -> str:
    """Group the result of a search by server or by category, that of the best match first.

    Raises:
        InvalidRequestError: If there is no query, or it is grouped by something else.
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
    """Name the tools that follow some others in the graph.

    Raises:
        InvalidRequestError: If no tools are named.
        UnknownToolError: If one of them is not in the catalog.
    """
    given = arguments.get("tools")
    tools = [given] if isinstance(given, str) and given else given
    if not isinstance(tools, list) or not tools or not all(isinstance(item, str) for item in tools):
        raise InvalidRequestError("'tools' is a list of names")
    names = await _following(gateway, tools, caller, limit=gateway.options.search.limit)
    return json.dumps({"tools": [{"name": name, "direct": False} for name in names]})


async def next_steps_hint(gateway: Gateway, call_name: str, tool: str, caller: Caller) -> str:
    """Return the tools that follow *tool* in one line; "" if that is off or there is none.

    Args:
        gateway: The catalog.
        call_name: The tool that calls them; "" if they must be searched for.
        tool: The tool that was just used.
        caller: The party that used it.
    """
    limit = gateway.options.discovery.next_steps
    if not limit:
        return ""
    try:
        names = await _following(gateway, [tool], caller, limit=limit)
    except GatewayError:
        # The tool was removed since it answered: its answer goes out without advice.
        return ""
    by = f", by {call_name}" if call_name else ""
    return f"\n[next steps{by}: {', '.join(names)}]" if names else ""


async def _following(
    gateway: Gateway, tools: list[str], caller: Caller, *, limit: int
) -> list[str]:
    suggestions = await gateway.next_steps(tools, limit=_MAX_SUGGESTIONS, caller=caller)
    # What is only near, with no edge that leads there, is no advice.
    return [match.name for match in suggestions if match.evidence.path][:limit]
