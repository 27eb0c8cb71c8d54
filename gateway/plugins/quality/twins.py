"""Twins: tools of different servers with nearly the same description. Pure functions.

If a search finds a twin in place of the wanted tool, the wanted tool counts as found. Reports list
such pairs, because either both are the same tool, or the descriptions lack the difference.
`hold_out` makes requests that no tool serves.
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
"""Ids of the twins of each tool, keyed by tool id. Tools without twins are left out."""


def find_twins(tools: Sequence[Entity], wanted: Iterable[str]) -> Twins:
    """Return the twins of the tools with the ids *wanted*, keyed by tool id. Twins are on other
    servers.
    """
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

    If two sets share the fraction s of their union, they share one of the rarest (1 - s) n + 1
    words of each, where n is its size (prefix filter; Bayardo, Ma, Srikant 2007).
    """

    def __init__(self, tools: Sequence[Entity]) -> None:
        self._counts = Counter(stem for tool in tools for stem in stems_of(tool.description))
        self._tools: defaultdict[str, list[Entity]] = defaultdict(list)
        for tool in tools:
            for stem in self._rarest(tool):
                self._tools[stem].append(tool)

    def candidates(self, tool: Entity) -> Iterable[Entity]:
        """Return the possible twins of *tool*, without duplicates."""
        tools = (other for stem in self._rarest(tool) for other in self._tools[stem])
        return {other.id: other for other in tools}.values()

    def _rarest(self, tool: Entity) -> list[str]:
        """Return the rarest words of the tool's description, as many as the prefix filter needs.
        Return an empty word if the description has no words.
        """
        stems = sorted(stems_of(tool.description), key=lambda stem: (self._counts[stem], stem))
        return stems[: len(stems) - ceil(COPY_SHARE * len(stems)) + 1] or [""]


def with_twins(request: EvalRequest, twins: Twins) -> tuple[frozenset[str], ...]:
    """Return a group of tool ids for each wanted tool of *request*: its alternatives and all their
    twins.
    """
    return tuple(
        frozenset(group).union(*(twins.get(key, frozenset()) for key in group))
        for group in request.wanted
    )


def hold_out(
    requests: Iterable[EvalRequest], tools: Sequence[Entity], *, count: int
) -> tuple[EvalRequest, ...]:
    """Repeat up to *count* requests while the tools that serve them are ignored.

    Each search ignores the wanted tool, its twins, and tools with the same name on other servers. A
    tool with another name may still serve the request, so check requests whose matches are
    accepted. The requests are selected by the digest of their texts, which gives the same selection
    in every process.
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
