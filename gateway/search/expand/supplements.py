"""Graph neighbours of the matches, as three bounded lists. Pure.

* Related tools and next steps come from the window alone, which rank and score bound at every
  catalog size.
* A prerequisite that the host declared is listed wherever it stands. So are a few that sure rules
  derive for the first match. All others must stand inside the window, and only what stands there
  becomes a direct proxy.
* Nothing here touches the matches: the graph adds, it never reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gateway.index.eligibility import Mask
from gateway.index.tool_graph import RELIABLE_RULES, ToolGraph
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.expand.learned_steps import learned_steps_after, path_of, strength
from gateway.types import PathStep
from gateway.usage.transitions import LearnedSteps
from graphs.expansion import ExcludeNode, Expansion, Neighbour, Role, expand

Nearness = Callable[[Sequence[int]], Vector]
"""Takes positions, gives how near each is to the request, shape (count,); only order counts."""
PREREQUISITE_HOPS = 8
"""How many edges a chain of declared prerequisites may have."""
GUESSED_HOPS = 2
"""How many edges a chain with derived ones may have for the first match; for others it is one."""
MAX_GUESSED = 4
"""How many derived prerequisites are listed from outside the window."""
_NONE = LearnedSteps()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplement:
    """One neighbour of the matches."""

    position: int
    """Of the entity, in the snapshot."""
    score: float
    """Strength of the way that led here, 0 to 1; without a way, what the graph's text search says.
    """
    path: tuple[PathStep, ...] = ()
    """The way; empty if the graph's text search found it."""
    direct: bool = True
    """Whether it stands inside the window, or is a match itself."""

    @property
    def written(self) -> bool:
        """Whether the host wrote the whole way."""
        return all(step.declared for step in self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplements:
    """What the graph adds to a result, each list best first."""

    prerequisites: tuple[Supplement, ...] = ()
    related: tuple[Supplement, ...] = ()
    next_steps: tuple[Supplement, ...] = ()
    visited: int = 0
    """Graph nodes that were looked at."""
    expansions: int = 0
    """How often the graph was asked for neighbours."""


@dataclass(slots=True)
class _Gathered:
    """The neighbours so far.

    An entity stands in one list only. The exception are matches that other matches need.
    """

    listed: set[int]
    """The positions of all matches and of all that stands in a list."""
    nearness: Nearness | None = None
    excluded: ExcludeNode | None = None
    """Who may not be found. No way leads through them either, since ways are shown."""
    visited: int = 0
    expansions: int = 0
    lists: dict[Role, list[Supplement]] = field(
        default_factory=lambda: {"prerequisite": [], "related": [], "next_step": []}
    )

    def count(self, found: Expansion) -> None:
        """Add what one expansion cost."""
        self.visited += found.visited
        self.expansions += 1

    def nearest(self, graph: ToolGraph, found: Sequence[Neighbour]) -> Sequence[Neighbour]:
        """Order *found* by distance, then strength, then nearness to the request.

        There may be more conditions than the budget has room for. Of those that are equally far and
        equally sure, the ones that serve the request are to be kept.
        """
        if self.nearness is None or len(found) <= 1:
            return found
        near = self.nearness([graph.entity(each.node) or 0 for each in found]).tolist()
        keys = [
            (len(each.path), -round(each.score, 6), -nearness)
            for each, nearness in zip(found, near, strict=True)
        ]
        return [found[at] for at in sorted(range(len(found)), key=keys.__getitem__)]


def supplement(  # noqa: PLR0913  (keyword-only, one a part of the search)
    graph: ToolGraph,
    primaries: Sequence[int],
    *,
    text_hits: Iterable[tuple[int, float]],
    window: Collection[int],
    mask: Mask,
    options: SearchOptions,
    nearness: Nearness | None = None,
    learned: LearnedSteps = _NONE,
) -> Supplements:
    """Gather the neighbours of *primaries*.

    Args:
        graph: The compiled graph.
        primaries: The matches' positions, best first.
        text_hits: What the graph's own text search found, as positions and coverages, 0 to 1;
            those inside the window are related.
        window: Positions that related and next steps may come from.
        mask: Eligible entities at all, shape (n,).
        options: The budget of each list.
        nearness: Orders conditions that are equally far and equally sure; None leaves them in the
            order of their names.
        learned: Next steps that calls have shown; they stand behind those that the host wrote.
    """
    excluded = graph.excluded(mask)
    inside = frozenset(window if excluded is None else (spot for spot in window if mask[spot]))
    gathered = _Gathered(listed=set(primaries), nearness=nearness, excluded=excluded)
    _prerequisites(graph, primaries, inside, options, gathered)
    _neighbours_in_window(graph, primaries, "next_step", inside, options.max_next_steps, gathered)
    if learned:
        _shown(graph, primaries, learned, inside, options.max_next_steps, gathered)
    _neighbours_in_window(graph, primaries, "related", inside, options.max_related, gathered)
    related = gathered.lists["related"]
    for position, coverage in text_hits:
        if len(related) >= options.max_related:
            break
        if position in inside and position not in gathered.listed:
            gathered.listed.add(position)
            related.append(Supplement(position=position, score=coverage))
    return Supplements(
        prerequisites=tuple(gathered.lists["prerequisite"]),
        related=tuple(related),
        next_steps=tuple(gathered.lists["next_step"]),
        visited=gathered.visited,
        expansions=gathered.expansions,
    )


def _prerequisites(
    graph: ToolGraph,
    primaries: Sequence[int],
    inside: frozenset[int],
    options: SearchOptions,
    gathered: _Gathered,
) -> None:
    """List what the matches need: by match, the nearest first, all under one budget.

    A match that a better match needs is listed too, outside the budget: where all lists are shown
    as one, it moves up.
    """
    if options.prerequisites == "off":
        return
    supplements: list[Supplement] = []
    room, guesses = options.max_prerequisites, MAX_GUESSED
    above: set[int] = set()
    for primary in primaries:
        above.add(primary)
        far = primary == primaries[0] and options.prerequisites == "derived"
        for neighbour in _needed(graph, primary, gathered, hops=GUESSED_HOPS if far else 1):
            position = graph.entity(neighbour.node)
            if position is None or position in above:
                continue
            matched = position in gathered.listed
            direct = matched or position in inside
            guess = not direct and not _declared(neighbour)
            guessable = far and guesses > 0
            admitted = _admitted(neighbour, options, direct=direct, guessable=guessable)
            if not admitted or (room <= 0 and not matched):
                continue
            if not matched:
                room -= 1
            if guess:
                guesses -= 1
            above.add(position)
            supplements.append(_of(graph, neighbour, position, direct=direct))
    gathered.listed |= above
    gathered.lists["prerequisite"] = supplements


def _admitted(
    neighbour: Neighbour, options: SearchOptions, *, direct: bool, guessable: bool
) -> bool:
    """Whether a prerequisite may be listed, if there is room.

    * A match, or inside the window: if each step is sure, or a single edge states it.
    * Declared, outside the window: unless the host wants nothing from there.
    * Derived, outside the window: if each step is sure, as long as guesses may be made.
    """
    if direct:
        return _sure(neighbour) or _stated(neighbour)
    if _declared(neighbour):
        return options.prerequisites != "window"
    return guessable and _sure(neighbour)


def _needed(
    graph: ToolGraph, primary: int, gathered: _Gathered, *, hops: int
) -> Iterator[Neighbour]:
    """Yield what *primary* needs: declared prerequisites and theirs, then derived ones."""
    node = graph.nodes[primary]
    for declared, length in ((True, PREREQUISITE_HOPS), (False, hops)):
        if not graph.has_prerequisites(node, declared=declared):
            continue
        found = expand(
            graph.index,
            [node],
            role="prerequisite",
            excluded=gathered.excluded,
            declared_only=declared,
            hops=length,
            limit=len(graph.nodes),
        )
        gathered.count(found)
        yield from gathered.nearest(graph, found.neighbours)


def _declared(neighbour: Neighbour) -> bool:
    """Whether the host wrote each step of the way."""
    return all(step.declared for step in neighbour.path)


def _stated(neighbour: Neighbour) -> bool:
    """Whether the way is one edge that says ``requires``.

    Equal names of data derive next steps, no prerequisites: such an edge stands for itself.
    """
    return [step.predicate for step in neighbour.path] == ["requires"]


def _sure(neighbour: Neighbour) -> bool:
    """Whether the host or a sure rule says each step of the way."""
    return all(
        step.declared or (step.predicate == "requires" and step.origin in RELIABLE_RULES)
        for step in neighbour.path
    )


def _neighbours_in_window(
    graph: ToolGraph,
    primaries: Sequence[int],
    role: Role,
    inside: frozenset[int],
    limit: int,
    gathered: _Gathered,
) -> None:
    """Make the list of *role*: the neighbours inside the window that stand in no list yet."""
    left = list(inside - gathered.listed)
    if not left:
        return
    found = expand(
        graph.index,
        [graph.nodes[primary] for primary in primaries],
        role=role,
        within=[graph.nodes[position] for position in left],
        excluded=gathered.excluded,
        limit=limit,
    )
    gathered.count(found)
    supplements = [
        _of(graph, neighbour, position)
        for neighbour in found.neighbours
        if (position := graph.entity(neighbour.node)) is not None
    ]
    gathered.listed.update(each.position for each in supplements)
    gathered.lists[role] = supplements


def _shown(
    graph: ToolGraph,
    primaries: Sequence[int],
    learned: LearnedSteps,
    inside: frozenset[int],
    limit: int,
    gathered: _Gathered,
) -> None:
    """Put what calls have shown among the next steps: the host's own first, then the strongest."""
    steps = {each.position: each for each in gathered.lists["next_step"]}
    other_lists = gathered.listed - steps.keys()
    for primary in primaries:
        for spot, edge in learned_steps_after(graph, learned, primary):
            if spot in inside and spot not in other_lists:
                found = Supplement(position=spot, score=strength(edge), path=path_of(edge))
                steps.setdefault(spot, found)
    order = sorted(steps.values(), key=lambda each: (not each.written, -each.score, each.position))
    gathered.lists["next_step"] = order[: max(limit, 0)]
    gathered.listed = other_lists | {each.position for each in gathered.lists["next_step"]}


def _of(
    graph: ToolGraph, neighbour: Neighbour, position: int, *, direct: bool = True
) -> Supplement:
    path = graph.steps(neighbour.path)
    return Supplement(position=position, score=neighbour.score, path=path, direct=direct)
