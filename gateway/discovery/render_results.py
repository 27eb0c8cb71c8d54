"""Search results as the model reads them: compact, under a token budget, readable again. Pure.

What is written here is the conversation's only memory of what was found: `names_of` reads it back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from gateway.options import DiscoveryOptions
from gateway.runtime.text import estimate_tokens, one_line, plain
from gateway.types import Evidence, Match, SearchResult

ABOUT = 160
_ABOUT_CHARS = (ABOUT, 90, 40, 0)
"""How many characters a tool's line may have; the first of these that fits the budget is taken."""
_BEFORE = "told before"
_NAMED = 12
"""How many words or servers are named if nothing matches."""
_MAX_READ_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    match: Match
    direct: bool
    shown: bool = False
    """True if the model has the definition already."""

    @property
    def aside(self) -> bool:
        """Whether its name is enough: the graph adds it without a reason, and it is no proxy."""
        return self.kind == "related" and not (self.direct or self.match.evidence.path)


Count = Callable[[str], int]
"""Counts the tokens of a text."""


class Parameters:
    """The parameters of a tool as results tell them, counted once by each vocabulary."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        self.text = _dump(schema)
        self._tokens: dict[Count, int] = {}

    def tokens(self, count: Count) -> int:
        """Count its text."""
        known = self._tokens.get(count)
        if known is None:
            known = self._tokens[count] = count(self.text)
        return known


Schemas = Callable[[str], Parameters | None]
"""Gives the parameters of a tool by its exposed name."""


def compact(
    result: SearchResult,
    options: DiscoveryOptions,
    *,
    hidden: Collection[str] = (),
    shown: Collection[str] = (),
    count: Count = estimate_tokens,
    schemas: Schemas | None = None,
) -> str:
    """Write *result* for the model, as JSON.

    Matches come first, then prerequisites, related and next steps. What the graph adds without a
    reason is only a name under ``also``, once there is no proxy left for it. What does not fit the
    budget is left out from the end, but never the best match.

    Args:
        result: What was found.
        options: The budget, and how many of it may become proxies.
        hidden: Names of the host's tools, which mean something else in this conversation.
        shown: Names of found tools whose definitions the model has, among its tools or in an
            earlier result: they are not told again.
        count: How tokens are counted.
        schemas: Gives the parameters to tell, if found tools do not become tools. They have a
            budget of their own; those of the last tools are left out first.
    """
    entries = _entries(result, options, hidden, shown)
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
    told = [_Entry(each.kind, each.match, direct=True, shown=each.shown) for each in entries]
    body = _body(told, ABOUT, result)
    rows = [_dump(row) for row in body["tools"]]
    around = _dump({key: value for key, value in body.items() if key != "tools"})
    budget = options.schema_token_budget
    left = budget - count(_joined(rows, around))
    for place, (row, entry) in enumerate(zip(body["tools"], told, strict=True)):
        if entry.shown:
            rows[place] = _dump({**row, "parameters": _BEFORE})
            left -= count(_BEFORE)
            continue
        schema = None if entry.match.suspicious else schemas(row["name"])
        cost = schema.tokens(count) if schema is not None else 0
        if schema is None or cost > left:
            # A tool without room still has its required arguments; a wrong call shows the schema.
            continue
        if row.pop("needs", None) is not None:
            rows[place] = _dump(row)
        # Not dumped again with the rest: schemas are most of the text.
        rows[place] = f'{rows[place][:-1]},"parameters":{schema.text}}}'
        left -= cost
    text = _joined(rows, around)
    while left < 0 and len(rows) > 1 and count(text) > budget:
        rows.pop()
        text = _joined(rows, around)
    return text


def _joined(rows: Sequence[str], around: str) -> str:
    """Write the result with these *rows*, and what stands *around* them."""
    rest = f",{around[1:]}" if around != "{}" else "}"
    return f'{{"tools":[{",".join(rows)}]{rest}'


def direct_names(
    result: SearchResult, options: DiscoveryOptions, *, hidden: Collection[str] = ()
) -> tuple[str, ...]:
    """Give the names of *result* that may become tools of their own, best first."""
    entries = _entries(result, options, hidden)
    return tuple(dict.fromkeys(entry.match.name for entry in entries if entry.direct))


def _entries(
    result: SearchResult,
    options: DiscoveryOptions,
    hidden: Collection[str],
    shown: Collection[str] = (),
) -> list[_Entry]:
    entries = [_Entry("match", match, direct=not match.suspicious) for match in result.matches]
    proxies = options.prerequisite_proxies
    matched = {match.id for match in result.matches}
    entries += [
        _Entry(
            "prerequisite",
            match,
            match.direct or (proxies and _declared(match) and not match.suspicious),
        )
        for match in result.prerequisites
        if match.id not in matched
    ]
    entries += [_Entry("related", match, match.direct) for match in result.related]
    entries += [_Entry("next_step", match, match.direct) for match in result.next_steps]
    # A tool beyond the cap of proxies is still named and can be called by its name.
    left = options.proxies_per_search
    for place, entry in enumerate(entries):
        if entry.direct and (left <= 0 or entry.match.name in hidden):
            entries[place] = _Entry(entry.kind, entry.match, direct=False)
        elif entry.match.name in shown:
            entries[place] = _Entry(entry.kind, entry.match, direct=entry.direct, shown=True)
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
    also: NotRequired[list[str]]
    note: NotRequired[str]


def _body(entries: Sequence[_Entry], about: int, result: SearchResult) -> _Body:
    body: _Body = {"tools": [_row(entry, about) for entry in entries if not entry.aside]}
    if also := [entry.match.name for entry in entries if entry.aside]:
        body["also"] = also
    if any(note.code == "low_confidence_results" for note in result.diagnostics):
        body["note"] = "None of these is a likely match: check before calling, or search again."
    return body


def _row(entry: _Entry, about: int) -> dict[str, Any]:
    match = entry.match
    if match.suspicious:
        return _withheld(entry)
    line = one_line(match.description, limit=about) if about else ""
    row: dict[str, Any] = {"name": match.name}
    if line and not entry.shown:
        row["about"] = line
    if match.required and not entry.shown:
        row["needs"] = list(match.required)
    if entry.kind != "match":
        row["kind"] = entry.kind
    if why := _why(entry, f"{match.name} {line}"):
        row["why"] = why
    if not entry.direct:
        row["direct"] = False
    return row


def _withheld(entry: _Entry) -> dict[str, Any]:
    """Tell what a call of a suspicious tool needs, and nothing that could be an instruction."""
    needs = plain(entry.match.required)
    kind = {"kind": entry.kind} if entry.kind != "match" else {}
    needed = {"needs": needs} if needs else {}
    return {"name": entry.match.name, **needed, **kind, "suspicious": True, "direct": False}


def _why(entry: _Entry, seen: str) -> str:
    """Give the reason of a match, unless its row shows it already by the words that are *seen*."""
    evidence: Evidence = entry.match.evidence
    if evidence.path:
        step = evidence.path[0]
        return f"{step.predicate} of {step.subject.rsplit('/', 1)[-1]}"
    if evidence.exact_name:
        return "named"
    if entry.kind != "match":
        return ""
    folded = seen.casefold()
    hidden = [word for word in evidence.words if not _stands(word.casefold(), folded)]
    return f"words: {', '.join(hidden[:4])}" if hidden else ""


def _stands(word: str, text: str) -> bool:
    """Whether *word* stands in *text* by itself."""
    # By hand: this runs for every row, and a pattern would cost more.
    place = text.find(word)
    while place >= 0:
        before, after = text[place - 1 : place], text[place + len(word) :][:1]
        if not (before.isalnum() or after.isalnum()):
            return True
        place = text.find(word, place + 1)
    return False


_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _dump(body: object) -> str:
    return _ENCODED.encode(body)


def names_of(content: str) -> tuple[str, ...]:
    """Give the directly callable names in a result that `compact` wrote; () for other text."""
    return tuple(row["name"] for row in _rows(content) if row.get("direct") is not False)


def described(content: str) -> tuple[str, ...]:
    """Give the names of the tools whose parameters such a result tells; () for other text."""
    return tuple(row["name"] for row in _rows(content) if isinstance(row.get("parameters"), dict))


def _rows(content: str) -> list[dict[str, Any]]:
    if len(content) > _MAX_READ_CHARS:
        return []
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return []
    rows = body.get("tools") if isinstance(body, dict) else None
    listed = rows if isinstance(rows, list) else []
    return [row for row in listed if isinstance(row, dict) and isinstance(row.get("name"), str)]
