"""Search results as the model reads them: compact, under a token budget, readable again. Pure.

What is written here is the conversation's only memory of what was found: `names_of` reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from gateway.config import DiscoveryOptions
from gateway.text import estimate_tokens, one_line
from gateway.types import Evidence, Match, SearchResult

_ABOUT_CHARS = (160, 90, 40, 0)
"""How long a tool's line may be: the first that fits the budget."""
_NAMED = 12
"""How many words or servers are named where nothing matches."""
_MAX_READ_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    match: Match
    direct: bool


Count = Callable[[str], int]
"""Counts the tokens of a text."""
Schemas = Callable[[str], Mapping[str, object] | None]
"""Gives the parameters of a tool by its exposed name."""


def compact(
    result: SearchResult,
    options: DiscoveryOptions,
    *,
    hidden: Collection[str] = (),
    count: Count = estimate_tokens,
    schemas: Schemas | None = None,
) -> str:
    """Write *result* for the model, as JSON.

    Matches first, then prerequisites, related and next steps. What does not fit the budget is
    left out from the end, the best match never.

    Args:
        result: What was found.
        options: The budget, and how many of it may become proxies.
        hidden: Names that mean something else in this conversation: tools of the host.
        count: How tokens are counted.
        schemas: Where found tools do not become tools, their parameters are told here; those of
            the last ones are left out first, under a budget of their own.
    """
    entries = _entries(result, options, hidden)
    if not entries:
        return _dump({"tools": [], "note": _nothing(result)})
    if schemas is not None:
        return _with_schemas(entries, result, options, schemas, count)
    lengths = iter(_ABOUT_CHARS)
    about = next(lengths)
    text = _dump(_body(entries, about, result))
    while count(text) > options.result_token_budget and (about or len(entries) > 1):
        if about:
            about = next(lengths)
        else:
            entries.pop()
        text = _dump(_body(entries, about, result))
    return text


def _with_schemas(
    entries: list[_Entry],
    result: SearchResult,
    options: DiscoveryOptions,
    schemas: Schemas,
    count: Count,
) -> str:
    body = _body([_Entry(each.kind, each.match, direct=True) for each in entries], 160, result)
    rows = body["tools"]
    budget = options.schema_token_budget
    left = budget - count(_dump(body))
    for row in rows:
        told = schemas(row["name"])
        cost = count(_dump(told)) if told is not None else 0
        if told is None or cost > left:
            # What has no room keeps its required arguments; a wrong call is told the schema.
            continue
        row["parameters"] = told
        row.pop("needs", None)
        left -= cost
    text = _dump(body)
    while left < 0 and len(rows) > 1 and count(text) > budget:
        rows.pop()
        text = _dump(body)
    return text


def direct_names(
    result: SearchResult, options: DiscoveryOptions, *, hidden: Collection[str] = ()
) -> tuple[str, ...]:
    """Give the names of *result* that may become tools of their own, best first."""
    entries = _entries(result, options, hidden)
    return tuple(dict.fromkeys(entry.match.name for entry in entries if entry.direct))


def _entries(
    result: SearchResult, options: DiscoveryOptions, hidden: Collection[str]
) -> list[_Entry]:
    entries = [_Entry("match", match, direct=True) for match in result.matches]
    proxies = options.prerequisite_proxies
    matched = {match.id for match in result.matches}
    entries += [
        _Entry("prerequisite", match, match.direct or (proxies and _declared(match)))
        for match in result.prerequisites
        if match.id not in matched
    ]
    entries += [_Entry("related", match, match.direct) for match in result.related]
    entries += [_Entry("next_step", match, match.direct) for match in result.next_steps]
    # Beyond the cap of proxies, a tool is still named and can be called by name.
    left = options.proxies_per_search
    for place, entry in enumerate(entries):
        if entry.direct and (left <= 0 or entry.match.name in hidden):
            entries[place] = _Entry(entry.kind, entry.match, direct=False)
        left -= entries[place].direct
    return entries


def _declared(match: Match) -> bool:
    return all(step.declared for step in match.evidence.path)


def _nothing(result: SearchResult) -> str:
    if result.mode == "empty":
        return "The catalog is empty."
    said = "No tool matches. Say the task in other words, or name the object it acts on."
    if result.unmatched:
        said += f" No tool knows: {', '.join(result.unmatched[:_NAMED])}."
    if result.nearest:
        said += f" Nearest, though unlikely: {result.nearest.name}."
    if result.servers:
        said += f" Servers: {', '.join(result.servers[:_NAMED])}."
    return said


class _Body(TypedDict):
    tools: list[dict[str, Any]]
    note: NotRequired[str]


def _body(entries: Iterable[_Entry], about: int, result: SearchResult) -> _Body:
    body: _Body = {"tools": [_row(entry, about) for entry in entries]}
    if any(note.code == "low_confidence_results" for note in result.diagnostics):
        body["note"] = "None of these is a likely match: check before calling, or search again."
    return body


def _row(entry: _Entry, about: int) -> dict[str, Any]:
    match = entry.match
    row: dict[str, Any] = {"name": match.name}
    if about and match.description:
        row["about"] = one_line(match.description, limit=about)
    if match.required:
        row["needs"] = list(match.required)
    if entry.kind != "match":
        row["kind"] = entry.kind
    if why := _why(entry):
        row["why"] = why
    if not entry.direct:
        row["direct"] = False
    return row


def _why(entry: _Entry) -> str:
    evidence: Evidence = entry.match.evidence
    if evidence.path:
        step = evidence.path[0]
        return f"{step.predicate} of {step.subject.rsplit('/', 1)[-1]}"
    if evidence.exact_name:
        return "named"
    if evidence.words and entry.kind == "match":
        return f"words: {', '.join(evidence.words[:4])}"
    return ""


def _dump(body: object) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def names_of(content: str) -> tuple[str, ...]:
    """Read the directly callable names out of a result that `compact` wrote; () for other text."""
    if len(content) > _MAX_READ_CHARS:
        return ()
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return ()
    rows = body.get("tools") if isinstance(body, dict) else None
    if not isinstance(rows, list):
        return ()
    return tuple(
        row["name"]
        for row in rows
        if isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and row.get("direct") is not False
    )
