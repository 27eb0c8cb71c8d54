"""Twins: tools of different servers with nearly the same description.

A search that finds a twin of the wanted tool counts as correct. Reports list such pairs, because
the tools are the same or their descriptions are incomplete.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from gateway.index.texts import humanized
from gateway.plugins.quality.requests import EvalRequest
from gateway.runtime.text import digest
from gateway.search.rank.copies import are_alike, stems_of
from gateway.search.rank.parameters import COPY_SHARE
from gateway.types import Entity

Twins = Mapping[str, frozenset[str]]
"""Ids of each tool's twins, keyed by tool id, for tools with twins."""


def find_twins(tools: Sequence[Entity], wanted: Iterable[str]) -> Twins:
    """Return the twins, on other servers, of the tools *wanted*."""
    by_id = {tool.id: tool for tool in tools}
    like = _Descriptions(tools)
    twins_by_id = {}
    for key in sorted({*wanted} & by_id.keys()):
        tool = by_id[key]
        twins = (other.id for other in like.candidates(tool) if _are_twins(tool, other))
        if ids := frozenset(twins):
            twins_by_id[key] = ids
    return twins_by_id


def _are_twins(tool: Entity, other: Entity) -> bool:
    if tool.server == other.server:
        return False
    is_same = (tool.name, tool.description) == (other.name, other.description)
    return is_same or are_alike(tool, other)


class _Descriptions:
    """Index of tools by the rare words of their descriptions.

    Two sets that share the fraction s of their union share one of the rarest (1 - s) n + 1 words of
    each, where n is its size (prefix filter; Bayardo, Ma, Srikant 2007).
    """

    def __init__(self, tools: Sequence[Entity]) -> None:
        self._counts = Counter(stem for tool in tools for stem in stems_of(tool.description))
        self._tools: defaultdict[str, list[Entity]] = defaultdict(list)
        for tool in tools:
            for stem in self._rarest(tool):
                self._tools[stem].append(tool)

    def candidates(self, tool: Entity) -> Iterable[Entity]:
        """Return the possible twins of *tool*."""
        tools = (other for stem in self._rarest(tool) for other in self._tools[stem])
        return {other.id: other for other in tools}.values()

    def _rarest(self, tool: Entity) -> list[str]:
        """Return the rarest words of a description for the prefix filter; [""] without words."""
        stems = sorted(stems_of(tool.description), key=lambda stem: (self._counts[stem], stem))
        return stems[: len(stems) - ceil(COPY_SHARE * len(stems)) + 1] or [""]


def with_twins(request: EvalRequest, twins: Twins) -> tuple[frozenset[str], ...]:
    """Return the ids that count as found for each wanted tool: its alternatives and their twins."""
    return tuple(
        frozenset(group).union(*(twins.get(key, frozenset()) for key in group))
        for group in request.wanted
    )


def hold_out(
    requests: Iterable[EvalRequest], tools: Sequence[Entity], *, count: int
) -> tuple[EvalRequest, ...]:
    """Repeat up to *count* requests, chosen by digest, while the tools that serve them are ignored.

    Also ignored are their twins, and tools with the same name on other servers. A tool with another
    name may still serve a request, so check requests with accepted matches.
    """
    single = [request for request in requests if len(request.wanted) == 1 and not request.ordered]
    drawn = sorted(single, key=lambda request: digest(request.text))[:count]
    twins = find_twins(tools, (key for request in drawn for key in request.wanted[0]))
    names = {tool.id: humanized(tool.name) for tool in tools}
    repeated = []
    for request in drawn:
        (group,) = with_twins(request, twins)
        called = {names[key] for key in group if key in names}
        without = group | {key for key, name in names.items() if name in called}
        repeated.append(replace(request, wanted=(), without=without, source="held_out"))
    return tuple(repeated)
