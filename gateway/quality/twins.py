"""Tools that nobody could tell apart by what is said of them, and requests that none serves. Pure.

A twin that is found in a tool's place is asked about, and counts as found: either the two are one,
or a description has to say what the difference is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gateway.index.texts import humanized
from gateway.quality.requests import EvalRequest
from gateway.runtime.text import digest
from gateway.search.rank.copies import are_alike
from gateway.types import Entity

Twins = Mapping[str, frozenset[str]]
"""The ids of the twins of each tool that has some, by its id; none is its own."""


def find_twins(tools: Sequence[Entity], wanted: Iterable[str]) -> Twins:
    """Return the twins of the tools *wanted*, by id, among *tools* of other servers."""
    by_id = {tool.id: tool for tool in tools}
    found = {}
    for key in sorted({*wanted} & by_id.keys()):
        twins = (other.id for other in tools if _are_twins(by_id[key], other))
        if ids := frozenset(twins):
            found[key] = ids
    return found


def _are_twins(tool: Entity, other: Entity) -> bool:
    if tool.server == other.server:
        return False
    is_same = (tool.name, tool.description) == (other.name, other.description)
    return is_same or are_alike(tool, other)


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
