"""What is wrong with the definitions of tools, and what it costs: are such tools found less often?

The rules are small and read a whole catalog, since half of them compare tools of several servers.
What a finding is worth is measured: the tools that have it are asked for, and so are the others.
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
    "no_description": "nothing is said of it",
    "no_verb": "neither name nor description begins with what it does",
    "no_object": "nothing says what it acts on",
    "duplicate": "a tool of another server says nearly the same",
    "similar_name": "the name of a tool of another server hardly differs",
    "undescribed_parameters": "these parameters have no description",
    "heavy_schema": "its schema has more than three times its share of the tokens",
    "stuffed": "its description heaps up key words",
}
"""What is looked for, and what it means."""
_VERBS = """
    analyze apply ask assign book build calculate call close compare compute connect convert copy
    count detect download draw execute export extract fill format forward import install invoke join
    launch load lock log merge monitor move navigate parse pause pay play print process replace
    reply reset resolve run save schedule select start stop subscribe summarize tell test track
    train transfer translate use validate wait write
"""
"""Beside those of `ACTIONS`; of other verbs the article behind them tells."""
_VAGUE = "data item thing object resource value result info information tool function action entity"
"""Words that name anything, and so no object."""
_FIRST_WORDS = 6
"""Where the verb of a description stands, if there is one."""
_ENGLISH = re.compile(r"\b(?:and|by|for|from|of|or|that|the|this|to|using|with)\b", re.IGNORECASE)
_BEGINS = re.compile(
    r"\s*[^\W\d_]+\s+(?:(?:back|down|in|off|on|out|up)\s+)?(?:an?|all|every|one|the|your)\b",
    re.IGNORECASE,
)
"""A word before such a one, where a sentence begins, is a verb."""
_HEAVY, _MIN_HEAVY_TOKENS = 3, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with one tool."""

    tool: str
    """Its id."""
    code: str
    detail: str
    """Which parameters, which other tools, how many tokens; empty if the code says all."""
    found: int
    requests: int
    """How many of the tool's requests find it, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How the tools with a finding are found, and how those without it."""

    code: str
    source: Source
    """Of the requests."""
    tools: int
    """How many have the finding and are asked for."""
    with_it: float | None
    """Recall@5 of requests for these; a share of 1."""
    without: float | None
    """Of requests for the other tools; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """What is wrong, what it costs and what would help."""

    tools: int
    """How many were looked at."""
    findings: tuple[Finding, ...]
    """Those of tools that are found least first."""
    effects: tuple[Effect, ...]
    """In the order of `FINDINGS`."""
    suggestions: tuple[Suggestion, ...]
    """Search texts by which more requests find their tool, and none loses its own."""


async def lint(
    gateway: Tunable,
    requests: Iterable[EvalRequest] = (),
    *,
    caller: Caller = ANYONE,
    write: WriteTexts | None = write_by_rules,
    progress: Progress = lambda *_: None,
) -> LintReport:
    """Look at each tool, ask for it, and try a search text where requests miss it.

    Args:
        gateway: A `Gateway`. Nothing of it changes.
        requests: Of your own, beside two for each tool that rules make; their tools are ids or
            names.
        caller: What may be seen; the requests are its own.
        write: Writes search texts for tools, by id; blank ones are not tried. None tries none.
        progress: Called with ``requests``, how many are asked and how many there are.

    Raises:
        InvalidRequestError: A tool is unknown, or several have its name.
    """
    snapshot = await gateway.snapshot(vectors=True)
    tools = snapshot.visible(caller.filters())
    frozen = freeze([*requests, *offline_requests(tools, typos=False)], snapshot, caller.filters())
    wanted = RequestSet(requests=tuple(each for each in frozen.requests if each.wanted))
    report = await evaluate(gateway, wanted, caller=caller, progress=progress)
    counts = count_found(report.outcomes)
    missed = {tool for (tool, _), (found, count) in counts.items() if found < count}
    poor = [tool for tool in tools if tool.id in missed and not tool.hints.search_text]
    texts = await write(poor) if write else {}
    raw = find_faults(tools)
    return LintReport(
        tools=len(tools),
        findings=_findings(raw, counts),
        effects=tuple(_effects(raw, counts)),
        suggestions=await suggest(gateway, wanted, texts, caller=caller, progress=progress),
    )


_Faults: TypeAlias = Mapping[str, Mapping[str, str]]


def find_faults(tools: Sequence[Entity]) -> dict[str, dict[str, str]]:
    """Return what is wrong with each of *tools*, by id, with its detail; those at fault alone."""
    twins = find_twins(tools, (tool.id for tool in tools))
    groups = similar_names({tool.id: tool.name for tool in tools})
    similar = {key: {*group} - {key} for group in groups for key in group}
    weights = {tool.id: json_tokens(tool.definition.input_schema) for tool in tools}
    share = sum(weights.values()) / max(len(tools), 1)
    found = {}
    for tool in tools:
        faults = dict(_own_faults(tool))
        others = {"duplicate": twins.get(tool.id), "similar_name": similar.get(tool.id)}
        faults |= {code: ", ".join(sorted(ids)) for code, ids in others.items() if ids}
        if (weight := weights[tool.id]) > max(_HEAVY * share, _MIN_HEAVY_TOKENS):
            faults["heavy_schema"] = f"{weight} tokens, {share:.0f} on average"
        if faults:
            found[tool.id] = {code: faults[code] for code in FINDINGS if code in faults}
    return found


def _own_faults(tool: Entity) -> Iterator[tuple[str, str]]:
    name, description = humanized(tool.name), tool.description
    if not description.strip():
        yield "no_description", ""
    # Of other languages no verb is known.
    is_english = not description.strip() or _ENGLISH.search(description)
    first = stems_of(f"{name} {' '.join(description.split()[:_FIRST_WORDS])}")
    if is_english and not _BEGINS.match(description) and first.isdisjoint(_verbs()):
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


def _findings(raw: _Faults, counts: Counts) -> tuple[Finding, ...]:
    listed = []
    for tool, faults in raw.items():
        pairs = [pair for (key, _), pair in counts.items() if key == tool]
        found, count = map(sum, zip((0, 0), *pairs, strict=True))
        listed += [
            Finding(tool=tool, code=code, detail=detail, found=found, requests=count)
            for code, detail in faults.items()
        ]
    return tuple(sorted(listed, key=lambda each: (each.found / max(each.requests, 1), each.tool)))


def _effects(raw: _Faults, counts: Counts) -> Iterator[Effect]:
    for code, source in product(FINDINGS, dict.fromkeys(source for _, source in counts)):
        pairs = [
            (code in raw.get(tool, ()), pair) for (tool, of), pair in counts.items() if of == source
        ]
        having, others = ([pair for has, pair in pairs if has is side] for side in (True, False))
        if having:
            shares = {"with_it": _recall(having), "without": _recall(others)}
            yield Effect(code=code, source=source, tools=len(having), **shares)


def _recall(pairs: Sequence[tuple[int, int]]) -> float | None:
    found, count = map(sum, zip((0, 0), *pairs, strict=True))
    return found / count if count else None
