"""Graph neighbours of the matches, as three bounded lists. Pure.

* Edges are walked from the best match of each query. Those of lower matches are seldom right.
* Edges that the host declared are listed wherever they lead, and so are the prerequisites that sure
  rules derive for the first match. All others must lead into the window, which rank and score bound
  at every catalog size.
* Only entities inside the window become direct proxies. Where no vectors ranked, this holds for
  prerequisites alone: words do not tell how near a tool without them is.
* What the host declares takes its place in a list before anything that rules derive does.
* What calls have shown is laid over the graph at each search: nothing is compiled, and what is
  forgotten is gone at once. What the host declared wins, and what it forbids is never suggested.
* Nothing here touches the matches: the graph adds, it never reorders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Literal

from gateway.index.eligibility import Mask
from gateway.index.tool_graph import RELIABLE_RULES, STEP_PREDICATE, ToolGraph, node_of
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.learned import LearnedSteps, Transition
from gateway.search.rank import parameters
from gateway.search.rank.parameters import DERIVED_HOPS, PREREQUISITE_HOPS, RELATED_COVERAGE
from gateway.types import PathStep
from graphs.expansion import Expansion, Neighbour, expand
from graphs.facts.vocabulary import PREDICATES

Nearness = Callable[[Sequence[int]], Vector]
"""Takes positions, gives how near each is to the request, shape (count,); only order counts."""


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
    """True if it may become a proxy."""


@dataclass(slots=True, kw_only=True)
class Supplements:
    """What the graph adds to a result, each list best first."""

    prerequisites: list[Supplement] = field(default_factory=list)
    related: list[Supplement] = field(default_factory=list)
    next_steps: list[Supplement] = field(default_factory=list)
    visited: int = 0
    """Graph nodes that were looked at."""


@dataclass(eq=False, repr=False)
class Gatherer:
    """Gathers the neighbours of the matches.

    Args:
        graph: The compiled graph.
        primaries: The matches' positions, best first.
        seeds: Positions of the best match of each query, from which edges are walked.
        window: Positions that derived related tools and next steps may come from.
        mask: Eligible entities at all, shape (n,).
        options: The budget of each list.
        nearness: Orders conditions that are equally far and equally sure.
        is_semantic: True if vectors chose the window. If not, related tools and next steps that
            the host declares are direct wherever they are.
    """

    graph: ToolGraph
    primaries: Sequence[int]
    _: KW_ONLY
    seeds: Sequence[int]
    window: Collection[int]
    mask: Mask
    options: SearchOptions
    nearness: Nearness
    is_semantic: bool = True

    def __post_init__(self) -> None:
        """Begin with nothing gathered."""
        self.inside = frozenset(position for position in self.window if self.mask[position])
        """The eligible positions of the window."""
        self.excluded = self.graph.excluded(self.mask)
        """What may not be found. No way leads through it either, since ways are shown."""
        self.listed = set(self.primaries)
        """The positions of all matches and of all that stands in a list. An entity stands in one
        list only; the exception are matches that other matches need."""
        self.added = Supplements()

    def gather(self, text_hits: Sequence[tuple[int, float]], learned: LearnedSteps) -> Supplements:
        """Return the neighbours.

        Args:
            text_hits: What the graph's own text search found, as positions and coverages, 0 to 1;
                those inside the window that hold enough of the words are related.
            learned: Next steps that calls have shown; they stand behind those that the host wrote.
        """
        for declared in (True, False) if self.graph.has_declared else (False,):
            self.add_prerequisites(declared=declared)
            self.add_neighbours("next_step", declared=declared)
            if learned and not declared:
                self.add_learned_steps(learned)
            self.add_neighbours("related", declared=declared)
        self.add_text_hits(text_hits)
        return self.added

    def add_prerequisites(self, *, declared: bool) -> None:
        """List what the matches need: by match, the nearest first, all under one budget.

        A match that a better match needs is listed too, outside the budget: where all lists are
        shown as one, it moves up.

        Args:
            declared: Whether those that the host declares are listed, or those with a derived edge.
        """
        if self.options.prerequisites == "off":
            return
        above = {each.position for each in self.added.prerequisites}
        room = self.options.max_prerequisites - len(above.difference(self.primaries))
        for primary in self.seeds:
            above.add(primary)
            first = primary == self.seeds[0]
            far = first and self.options.prerequisites == "derived"
            hops = PREREQUISITE_HOPS if declared else DERIVED_HOPS if far else 1
            for position, neighbour in self._needed(primary, declared=declared, hops=hops):
                matched = position in self.primaries
                direct = matched or position in self.inside
                is_placed = position in above or (position in self.listed and not matched)
                if is_placed or not self._admits(neighbour, direct=direct, far=far):
                    continue
                if not matched:
                    if room <= 0:
                        continue
                    room -= 1
                above.add(position)
                self.added.prerequisites.append(self._of(position, neighbour, direct=direct))
        self.listed |= above

    def _needed(
        self, primary: int, *, declared: bool, hops: int
    ) -> Iterator[tuple[int, Neighbour]]:
        """Yield what *primary* needs by distance, then strength, then nearness to the request.

        There may be more conditions than the budget has room for.
        """
        node = self.graph.nodes[primary]
        if not self.graph.has_prerequisites(node, declared=declared):
            return
        expansion = expand(
            self.graph.index,
            [node],
            role="prerequisite",
            excluded=self.excluded,
            declared_only=declared,
            hops=hops,
            limit=len(self.graph.nodes),
        )
        self.added.visited += expansion.visited
        found = entities_of(self.graph, expansion)
        near = self.nearness([position for position, _ in found])
        rows = zip(found, near.tolist(), strict=True)
        ordered = sorted(
            rows, key=lambda row: (len(row[0][1].path), -round(row[0][1].score, 6), -row[1])
        )
        yield from (pair for pair, _ in ordered)

    def _admits(self, neighbour: Neighbour, *, direct: bool, far: bool) -> bool:
        """Whether a prerequisite may be listed, if there is room.

        * A match, or inside the window: if each step is sure, or a single edge states it. Equal
          names of data derive next steps, no prerequisites.
        * Declared, outside the window: unless the host wants nothing from there.
        * Derived, outside the window: if each step is sure, for the first match alone.
        """
        if is_declared(neighbour) and not direct:
            return self.options.prerequisites != "window"
        if direct and [step.predicate for step in neighbour.path] == ["requires"]:
            return True
        return (direct or far) and all(
            step.declared or (step.predicate == "requires" and step.origin in RELIABLE_RULES)
            for step in neighbour.path
        )

    def add_neighbours(self, role: Literal["related", "next_step"], *, declared: bool) -> None:
        """List the neighbours that stand in no list yet, while there is room."""
        found, limit = self.added.related, self.options.max_related
        if role == "next_step":
            found, limit = self.added.next_steps, self.options.max_next_steps
        left = self.inside - self.listed
        room = limit - len(found)
        if room <= 0 or not (declared or left):
            return
        nodes, index = self.graph.nodes, self.graph.index

        def is_outside(node: str) -> bool:
            return self.graph.entity(node) not in left and not index.is_concept(node)

        expansion = expand(
            index,
            [nodes[primary] for primary in self.seeds],
            role=role,
            excluded=self.excluded if declared else is_outside,
            declared_only=declared,
            limit=len(nodes) if declared else room,
        )
        self.added.visited += expansion.visited
        free = (
            self._of(*pair, direct=not self.is_semantic or pair[0] in self.inside)
            for pair in entities_of(self.graph, expansion)
            if pair[0] not in self.listed
        )
        found += sorted(free, key=lambda each: (-each.score, not each.direct))[:room]
        self.listed.update(each.position for each in found)

    def add_text_hits(self, hits: Sequence[tuple[int, float]]) -> None:
        """List as related what holds nearly as much of the query's words as the best of *hits*."""
        floor = RELATED_COVERAGE * max((coverage for _, coverage in hits), default=0.0)
        room = self.options.max_related - len(self.added.related)
        near = (hit for hit in hits if hit[1] >= floor and hit[0] in self.inside - self.listed)
        for position, coverage in islice(dict(near).items(), max(room, 0)):
            self.listed.add(position)
            self.added.related.append(Supplement(position=position, score=coverage))

    def add_learned_steps(self, learned: LearnedSteps) -> None:
        """Put what calls have shown among the next steps: the host's first, then the strongest."""
        steps = {each.position: each for each in self.added.next_steps}
        self.listed -= steps.keys()
        for primary in self.seeds:
            for position, edge in learned_steps_after(self.graph, learned, primary):
                if position in self.inside and position not in self.listed:
                    # On the scale of the graph's edges.
                    score = PREDICATES[STEP_PREDICATE].weight * edge.confidence
                    shown = Supplement(position=position, score=score, path=learned_path(edge))
                    steps.setdefault(position, shown)
        ordered = sorted(
            steps.values(),
            key=lambda each: (
                not all(step.declared for step in each.path),
                -each.score,
                each.position,
            ),
        )
        self.added.next_steps = ordered[: self.options.max_next_steps]
        self.listed.update(each.position for each in self.added.next_steps)

    def _of(self, position: int, neighbour: Neighbour, *, direct: bool = True) -> Supplement:
        path = self.graph.steps(neighbour.path)
        return Supplement(position=position, score=neighbour.score, path=path, direct=direct)


def is_declared(neighbour: Neighbour) -> bool:
    """Return whether the host states every step of the way to *neighbour*."""
    return all(step.declared for step in neighbour.path)


def entities_of(graph: ToolGraph, expansion: Expansion) -> list[tuple[int, Neighbour]]:
    """Return the neighbours that are entities, with their positions."""
    pairs = ((graph.entity(neighbour.node), neighbour) for neighbour in expansion.neighbours)
    return [(position, neighbour) for position, neighbour in pairs if position is not None]


def learned_steps_after(
    graph: ToolGraph, learned: LearnedSteps, position: int
) -> Iterator[tuple[int, Transition]]:
    """Yield what followed the entity at *position* in past tasks, the surest first.

    Each edge comes with the position of its end. Tools that are gone, and what a document of the
    host forbids, are left out.
    """
    node = graph.nodes[position]
    for edge in learned.edges.get(graph.entity_id(node), ()):
        target = node_of(edge.after)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            yield end, edge


def learned_path(edge: Transition) -> tuple[PathStep, ...]:
    """Return a learned edge as a path of one step; its counts are the source."""
    source = f"learned, {edge.count} of {edge.of}"
    step = PathStep(subject=edge.before, predicate=STEP_PREDICATE, object=edge.after, source=source)
    return (step,)


def confidences(graph: ToolGraph, learned: LearnedSteps, position: int) -> dict[int, float]:
    """Return how likely each tool is to follow the entity at *position*, 0 to 1, by position.

    The learned edges say it. The share that they leave open is distributed by how many other tools
    each tool has followed.
    """
    if not learned:
        return {}
    node = graph.nodes[position]
    left = parameters.POPULARITY_SHARE * learned.open.get(graph.entity_id(node), 1.0)
    shares: dict[int, float] = {}
    for tool, share in learned.often.items():
        target = node_of(tool)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            shares[end] = left * share
    for end, edge in learned_steps_after(graph, learned, position):
        shares[end] = shares.get(end, 0.0) + edge.confidence
    return shares
