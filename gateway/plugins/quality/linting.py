"""Linter for tool definitions: problems, and their measured effect on search.

The rules read a whole catalog, because some compare tools of different servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeAlias

from gateway.catalog.identity import similar_names
from gateway.index.indexer import Progress
from gateway.index.texts import humanized
from gateway.index.tool_words import arguments
from gateway.mcp.injection_scanner import is_stuffed
from gateway.plugins.quality.evaluation import evaluate
from gateway.plugins.quality.offline import ACTIONS, offline_requests
from gateway.plugins.quality.requests import EvalRequest, RequestSet, Source, freeze
from gateway.plugins.quality.suggestions import (
    Counts,
    Suggestion,
    WriteTexts,
    count_found,
    suggest,
    write_by_rules,
)
from gateway.plugins.quality.twins import find_twins
from gateway.plugins.quality.variants import Tunable
from gateway.runtime.text import json_tokens
from gateway.search.rank.copies import stems_of
from gateway.types import ANYONE, Caller, Entity

FINDINGS: Mapping[str, str] = {
    "no_description": "the tool has no description",
    "no_verb": "neither the name nor the description begins with a verb",
    "no_object": "neither the name nor the description says what the tool acts on",
    "duplicate": "a tool of another server has nearly the same description",
    "similar_name": "a tool of another server has nearly the same name",
    "undescribed_parameters": "these parameters have no description",
    "heavy_schema": "the schema has more than three times the average number of tokens",
    "stuffed": "the description is stuffed with key words",
}
"""Meanings of findings, keyed by code."""
_VERBS = """
    analyze apply ask assign book build calculate call close compare compute connect convert copy
    count detect download draw execute export extract fill format forward import install invoke join
    launch load lock log merge monitor move navigate parse pause pay play print process replace
    reply reset resolve run save schedule select start stop subscribe summarize tell test track
    train transfer translate use validate wait write
"""
"""English verbs besides `ACTIONS`. Others are recognized by the article after them."""
_VAGUE = "data item thing object resource value result info information tool function action entity"
"""Words that can name anything, so they do not count as the object of a tool."""
_FIRST_WORDS = 6
"""Number of first words of a description that may contain a verb."""
_ENGLISH = re.compile(r"\b(?:and|by|for|from|of|or|that|the|this|to|using|with)\b", re.IGNORECASE)
_VERB_START = re.compile(
    r"\s*[^\W\d_]+\s+(?:(?:back|down|in|off|on|out|up)\s+)?(?:an?|all|every|one|the|your)\b",
    re.IGNORECASE,
)
"""Sentence that starts with a verb: an article or quantifier follows the first word."""
_HEAVY_FACTOR, _MIN_HEAVY_TOKENS = 3, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem of a tool's definition."""

    tool: str
    code: str
    detail: str
    """Parameters, other tools or token counts with the problem, or empty."""
    found: int
    requests: int
    """Number of requests for the tool, of which `found` find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of a finding: recall of tools with it, and of other tools."""

    code: str
    source: Source
    """Source of the compared requests."""
    tools: int
    """Number of wanted tools with the finding."""
    with_it: float | None
    """Recall@5 of requests for tools with the finding, as a share of 1."""
    without: float | None
    """Recall@5 of requests for other tools; None without such requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Problems of tools, their effect on search, and suggested search texts."""

    tools: int
    """Number of checked tools."""
    findings: tuple[Finding, ...]
    """Findings, beginning with the tools that the fewest requests find."""
    effects: tuple[Effect, ...]
    suggestions: tuple[Suggestion, ...]
    """Search texts that let more requests find their tool, while no tool loses a request."""


async def lint(
    gateway: Tunable,
    requests: Iterable[EvalRequest] = (),
    *,
    caller: Caller = ANYONE,
    write: WriteTexts | None = write_by_rules,
    progress: Progress = lambda *_: None,
) -> LintReport:
    """Check every tool, measure how well it is found, and test search texts for missed tools.

    Args:
        gateway: `Gateway`, which does not change.
        requests: Requests of the host, in addition to two generated ones for each tool.
        caller: Caller of the searches.
        write: Function that returns search texts, keyed by tool id; None tests no texts.
        progress: Called with ``requests``, the number of finished requests and their total number.

    Raises:
        InvalidRequestError: If a requested tool is unknown, or several tools have its name.
    """
    snapshot = await gateway.snapshot(vectors=True)
    tools = snapshot.visible(caller.filters())
    frozen = freeze([*requests, *offline_requests(tools, typos=False)], snapshot, caller.filters())
    answerable = RequestSet(
        requests=tuple(request for request in frozen.requests if request.wanted)
    )
    report = await evaluate(gateway, answerable, caller=caller, progress=progress)
    counts = count_found(report.outcomes)
    missed = {tool for (tool, _), (found_count, count) in counts.items() if found_count < count}
    poor = [tool for tool in tools if tool.id in missed and not tool.hints.search_text]
    texts = await write(poor) if write else {}
    raw = find_faults(tools)
    return LintReport(
        tools=len(tools),
        findings=_findings(raw, counts),
        effects=tuple(_effects(raw, counts)),
        suggestions=await suggest(gateway, answerable, texts, caller=caller, progress=progress),
    )


_Problems: TypeAlias = Mapping[str, Mapping[str, str]]


def find_faults(tools: Sequence[Entity]) -> dict[str, dict[str, str]]:
    """Return the details of each tool's problems, keyed by tool id and finding code."""
    twins = find_twins(tools, (tool.id for tool in tools))
    groups = similar_names({tool.id: tool.name for tool in tools})
    similar = {key: {*group} - {key} for group in groups for key in group}
    weights = {tool.id: json_tokens(tool.definition.input_schema) for tool in tools}
    share = sum(weights.values()) / max(len(tools), 1)
    problems = {}
    for tool in tools:
        faults = dict(_tool_problems(tool))
        others = {"duplicate": twins.get(tool.id), "similar_name": similar.get(tool.id)}
        faults |= {code: ", ".join(sorted(ids)) for code, ids in others.items() if ids}
        if (weight := weights[tool.id]) > max(_HEAVY_FACTOR * share, _MIN_HEAVY_TOKENS):
            faults["heavy_schema"] = f"{weight} tokens, {share:.0f} on average"
        if faults:
            problems[tool.id] = {code: faults[code] for code in FINDINGS if code in faults}
    return problems


def _tool_problems(tool: Entity) -> Iterator[tuple[str, str]]:
    name, description = humanized(tool.name), tool.description
    if not description.strip():
        yield "no_description", ""
    # The known verbs are English, so other languages are not checked for a verb.
    is_english = not description.strip() or _ENGLISH.search(description)
    first = stems_of(f"{name} {' '.join(description.split()[:_FIRST_WORDS])}")
    if is_english and not _VERB_START.match(description) and first.isdisjoint(_verbs()):
        yield "no_verb", ""
    words = stems_of(f"{name} {tool.definition.title} {description}")
    if words <= _verbs() | stems_of(_VAGUE):
        yield "no_object", ""
    if nameless := [key for key, text in arguments(tool) if not text.strip()]:
        yield "undescribed_parameters", ", ".join(nameless)
    if is_stuffed(description.casefold()):
        yield "stuffed", ""


@cache
def _verbs() -> frozenset[str]:
    return stems_of(" ".join((_VERBS, *frozenset().union(*ACTIONS.values()))))


def _findings(raw: _Problems, counts: Counts) -> tuple[Finding, ...]:
    findings = []
    for tool, faults in raw.items():
        pairs = [pair for (key, _), pair in counts.items() if key == tool]
        found_count, count = map(sum, zip((0, 0), *pairs, strict=True))
        findings += [
            Finding(tool=tool, code=code, detail=detail, found=found_count, requests=count)
            for code, detail in faults.items()
        ]
    return tuple(sorted(findings, key=lambda each: (each.found / max(each.requests, 1), each.tool)))


def _effects(raw: _Problems, counts: Counts) -> Iterator[Effect]:
    for code, source in product(FINDINGS, dict.fromkeys(source for _, source in counts)):
        pairs = [
            (code in raw.get(tool, ()), pair)
            for (tool, request_source), pair in counts.items()
            if request_source == source
        ]
        having, others = ([pair for has, pair in pairs if has is side] for side in (True, False))
        if having:
            shares = {"with_it": _recall(having), "without": _recall(others)}
            yield Effect(code=code, source=source, tools=len(having), **shares)


def _recall(pairs: Sequence[tuple[int, int]]) -> float | None:
    found_count, count = map(sum, zip((0, 0), *pairs, strict=True))
    return found_count / count if count else None
