"""Tools that nobody could tell apart by what is said of them, and requests that none serves. Pure.

A twin that is found in a tool's place is asked about, and counts as found: either the two are one,
or a description has to say what the difference is.
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
"""The ids of the twins of each tool that has some, by its id; none is its own."""


def find_twins(tools: Sequence[Entity], wanted: Iterable[str]) -> Twins:
    """Return the twins of the tools *wanted*, by id, among *tools* of other servers."""
    by_id = {tool.id: tool for tool in tools}
    like = _Descriptions(tools)
    found = {}
    for key in sorted({*wanted} & by_id.keys()):
        tool = by_id[key]
        twins = (other.id for other in like.candidates(tool) if _are_twins(tool, other))
        if ids := frozenset(twins):
            found[key] = ids
    return found


def _are_twins(tool: Entity, other: Entity) -> bool:
    if tool.server == other.server:
        return False
    is_same = (tool.name, tool.description) == (other.name, other.description)
    return is_same or are_alike(tool, other)


class _Descriptions:
    """Tools by the rare words of their descriptions.

    If two sets share s of their union, they share one of the rarest (1 - s) n + 1 words of each,
    where n is its size (prefix filter; Bayardo, Ma, Srikant 2007).
    """

    def __init__(self, tools: Sequence[Entity]) -> None:
        self._counts = Counter(stem for tool in tools for stem in stems_of(tool.description))
        self._tools: defaultdict[str, list[Entity]] = defaultdict(list)
        for tool in tools:
            for stem in self._rarest(tool):
                self._tools[stem].append(tool)

    def candidates(self, tool: Entity) -> Iterable[Entity]:
        """Return the tools that may be twins of *tool*, each once."""
        found = (other for stem in self._rarest(tool) for other in self._tools[stem])
        return {other.id: other for other in found}.values()

    def _rarest(self, tool: Entity) -> list[str]:
        """Return enough of the rare words; what has none has the empty one."""
        stems = sorted(stems_of(tool.description), key=lambda stem: (self._counts[stem], stem))
        return stems[: len(stems) - ceil(COPY_SHARE * len(stems)) + 1] or [""]


def with_twins(request: EvalRequest, twins: Twins) -> tuple[frozenset[str], ...]:
    """Return what serves *request*: for each tool wanted, its alternatives and all their twins."""
    return tuple(
        frozenset(group).union(*(twins.get(key, frozenset()) for key in group))
        for group in request.wanted
    )


def hold_out(
    requests: Iterable[EvalRequest], tools: Sequence[Entity], *, count: int
) -> tuple[EvalRequest, ...]:
    """Return up to *count* requests that no tool serves: the search must do without those that do.

    What is held out is the tool that is wanted, its twins, and tools of its name on other servers.
    Another tool may serve the request after all, as one of another name: judge what is accepted.
    The requests are drawn by the digest of their texts: the same ones in every process.
    """
    single = [request for request in requests if len(request.wanted) == 1 and not request.ordered]
    drawn = sorted(single, key=lambda request: digest(request.text))[:count]
    twins = find_twins(tools, (key for request in drawn for key in request.wanted[0]))
    names = {tool.id: humanized(tool.name) for tool in tools}
    held = []
    for request in drawn:
        (group,) = with_twins(request, twins)
        called = {names[key] for key in group if key in names}
        without = group | {key for key, name in names.items() if name in called}
        held.append(replace(request, wanted=(), without=without, source="held_out"))
    return tuple(held)
