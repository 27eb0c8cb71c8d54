"""Supplements: graph neighbours of the matches, as three bounded lists. Pure.

The *window* is the head of the ranking, bounded by rank and score. Only declared edges, and
reliable derived prerequisites of the first match, may lead out of it.

* Edges are followed only from the best match of each query. Edges of lower matches are seldom
  useful.
* Edges that the host declares are listed wherever they lead. So are prerequisites of the first
  match that reliable rules derive. All other edges must lead into the window.
* Only entities inside the window become proxies. If words or the graph ranked, this limit applies
  only to prerequisites, because a rank by words does not show how near a tool without them is.
* Declared edges enter a list before derived ones. Related tools are never derived, because tools
  with a common noun were right less often than further matches. Next steps are derived only for
  matches without a declared next step.
* Learned edges are added to the graph at each search and are not compiled, so that deleted calls
  have no effect at once. Declared edges take precedence, and forbidden ones are never suggested.
* The graph adds entities. It never reorders matches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from gateway.index.eligibility import Mask
from gateway.index.tool_graph import RELIABLE_RULES, STEP_PREDICATE, ToolGraph, node_of
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.learned import LearnedSteps, Transition
from gateway.search.rank import parameters
from gateway.search.rank.parameters import DERIVED_HOPS, PREREQUISITE_HOPS
from gateway.types import PathStep
from graphs.expansion import Expansion, Neighbour, expand
from graphs.facts.vocabulary import PREDICATES

Nearness = Callable[[Sequence[int]], Vector]
"""Returns the nearness of the entities at given positions to the query, on any scale; larger is
nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplement:
    """One graph neighbour of a match."""

    position: int
    score: float
    """Strength of the path, 0 to 1. For suggested next steps, in deviations."""
    path: tuple[PathStep, ...] = ()
    """Path from the match to the entity; empty for a next step suggested by similarity."""
    direct: bool = True
    """True if the entity may become a proxy."""


@dataclass(slots=True, kw_only=True)
class Supplements:
    """The three lists of supplements of one result, each best first."""

    prerequisites: list[Supplement] = field(default_factory=list)
    related: list[Supplement] = field(default_factory=list)
    next_steps: list[Supplement] = field(default_factory=list)
    visited: int = 0
    """Number of graph nodes visited."""


@dataclass(eq=False, repr=False)
class Gatherer:
    """Collects the graph neighbours of the matches."""

    graph: ToolGraph
    primaries: Sequence[int]
    """Positions of the matches, best first."""
    _: KW_ONLY
    seeds: Sequence[int]
    """Positions of the best match of each query. Edges are followed from them."""
    window: Collection[int]
    """Positions to which derived next steps are limited."""
    mask: Mask
    options: SearchOptions
    nearness: Nearness
    """Orders prerequisites with equal distance and strength."""
    is_semantic: bool = True
    """True if vectors chose the window. If False, declared related tools and next steps become
    proxies even outside the window."""

    def __post_init__(self) -> None:
        self.inside = frozenset(position for position in self.window if self.mask[position])
        self.excluded = self.graph.excluded(self.mask)
        """Tests if a node is ineligible. Paths avoid such nodes too, because callers see paths."""
        self.listed = set(self.primaries)
        """Positions of all matches and listed supplements. Only a match may be listed again."""
        self.added = Supplements()

    def gather(self, learned: LearnedSteps) -> Supplements:
        """Return the supplements of the matches.

        Learned next steps are listed after declared ones.
        """
        for declared in (True, False) if self.graph.has_declared else (False,):
            self.add_prerequisites(declared=declared)
            self.add_neighbours("next_step", declared=declared)
            if declared:
                self.add_neighbours("related", declared=True)
        if learned:
            self.add_learned_steps(learned)
        return self.added

    def add_prerequisites(self, *, declared: bool) -> None:
        """List declared or derived prerequisites of the best matches, by match, then by distance.

        A match that a better match needs is listed too, outside the limit. It thereby moves up
        where all lists are shown as one.
        """
        if self.options.prerequisites == "off":
            return
        above = {prerequisite.position for prerequisite in self.added.prerequisites}
        room = self.options.max_prerequisites - len(above.difference(self.primaries))
        for primary in self.seeds:
            above.add(primary)
            first = primary == self.seeds[0]
            far = first and self.options.prerequisites == "derived"
            hops = PREREQUISITE_HOPS if declared else DERIVED_HOPS if far else 1
            for position, neighbour in self._prerequisites_of(
                primary, declared=declared, hops=hops
            ):
                matched = position in self.primaries
                direct = matched or position in self.inside
                is_placed = position in above or (position in self.listed and not matched)
                if is_placed or not self._may_list(neighbour, direct=direct, far=far):
                    continue
                if not matched:
                    if room <= 0:
                        continue
                    room -= 1
                above.add(position)
                self.added.prerequisites.append(
                    self._make_supplement(position, neighbour, direct=direct)
                )
        self.listed |= above

    def _prerequisites_of(
        self, primary: int, *, declared: bool, hops: int
    ) -> Iterator[tuple[int, Neighbour]]:
        """Yield the prerequisites of the match at *primary*, at most *hops* edges away.

        They are ordered by number of edges, then by strength, then by nearness to the query.
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
        pairs = entities_of(self.graph, expansion)
        near = self.nearness([position for position, _ in pairs])
        rows = zip(pairs, near.tolist(), strict=True)
        ordered = sorted(
            rows, key=lambda row: (len(row[0][1].path), -round(row[0][1].score, 6), -row[1])
        )
        yield from (pair for pair, _ in ordered)

    def _may_list(self, neighbour: Neighbour, *, direct: bool, far: bool) -> bool:
        """Return whether *neighbour* may be listed as a prerequisite.

        * A match, or an entity inside the window: if each step is reliable, or if it is one edge
          from a document. Equal names of arguments and results are not reliable.
        * Declared and outside the window: unless the host limits prerequisites to the window.
        * Derived and outside the window: if each step is reliable, and only for the first match.
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
        """Add unlisted neighbours with this role to the role's list, until the list is full."""
        supplements, limit = self.added.related, self.options.max_related
        if role == "next_step":
            supplements, limit = self.added.next_steps, self.options.max_next_steps
        unlisted = self.inside - self.listed
        room = limit - len(supplements)
        if room <= 0 or not (declared or unlisted):
            return
        nodes, index = self.graph.nodes, self.graph.index
        seeds = [nodes[primary] for primary in self.seeds]
        if role == "next_step" and not declared:
            seeds = [seed for seed in seeds if not self.graph.has_declared_step(seed)]

        def is_outside(node: str) -> bool:
            return self.graph.entity(node) not in unlisted and not index.is_concept(node)

        expansion = expand(
            index,
            seeds,
            role=role,
            excluded=self.excluded if declared else is_outside,
            declared_only=declared,
            limit=len(nodes) if declared else room,
        )
        self.added.visited += expansion.visited
        free = (
            self._make_supplement(*pair, direct=not self.is_semantic or pair[0] in self.inside)
            for pair in entities_of(self.graph, expansion)
            if pair[0] not in self.listed
        )
        supplements += sorted(
            free, key=lambda supplement: (-supplement.score, not supplement.direct)
        )[:room]
        self.listed.update(supplement.position for supplement in supplements)

    def add_learned_steps(self, learned: LearnedSteps) -> None:
        """Add learned edges to the next steps: declared ones first, then the strongest."""
        steps = {next_step.position: next_step for next_step in self.added.next_steps}
        self.listed -= steps.keys()
        for primary in self.seeds:
            for position, edge in learned_steps_after(self.graph, learned, primary):
                if position in self.inside and position not in self.listed:
                    # Scale the confidence like the weight of an edge in the graph.
                    score = PREDICATES[STEP_PREDICATE].weight * edge.confidence
                    supplement = Supplement(position=position, score=score, path=learned_path(edge))
                    steps.setdefault(position, supplement)
        ordered = sorted(
            steps.values(),
            key=lambda next_step: (
                not all(step.declared for step in next_step.path),
                -next_step.score,
                next_step.position,
            ),
        )
        self.added.next_steps = ordered[: self.options.max_next_steps]
        self.listed.update(next_step.position for next_step in self.added.next_steps)

    def _make_supplement(
        self, position: int, neighbour: Neighbour, *, direct: bool = True
    ) -> Supplement:
        path = self.graph.steps(neighbour.path)
        return Supplement(position=position, score=neighbour.score, path=path, direct=direct)


def is_declared(neighbour: Neighbour) -> bool:
    """Return whether the host declares every step of the path to *neighbour*."""
    return all(step.declared for step in neighbour.path)


def entities_of(graph: ToolGraph, expansion: Expansion) -> list[tuple[int, Neighbour]]:
    """Return the neighbours in *expansion* that are entities, as (position, neighbour)."""
    pairs = ((graph.entity(neighbour.node), neighbour) for neighbour in expansion.neighbours)
    return [(position, neighbour) for position, neighbour in pairs if position is not None]


def learned_steps_after(
    graph: ToolGraph, learned: LearnedSteps, position: int
) -> Iterator[tuple[int, Transition]]:
    """Yield the learned edges of the entity at *position*, highest confidence first.

    Each item is the position of the edge's second tool, and the edge. Edges to removed tools and
    forbidden edges are left out.
    """
    node = graph.nodes[position]
    for edge in learned.edges.get(graph.entity_id(node), ()):
        target = node_of(edge.after)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            yield end, edge


def learned_path(edge: Transition) -> tuple[PathStep, ...]:
    """Return a learned edge as a path of one step, whose `source` contains the counts."""
    source = f"learned, {edge.count} of {edge.of}"
    step = PathStep(subject=edge.before, predicate=STEP_PREDICATE, object=edge.after, source=source)
    return (step,)


def confidences(graph: ToolGraph, learned: LearnedSteps, position: int) -> dict[int, float]:
    """Return the probability, 0 to 1, that each tool follows the entity at *position*.

    It is the confidence of the learned edge plus a share of the rest, proportional to how often
    the tool follows any tool. Keyed by the tool's position; empty without learned edges.
    """
    if not learned:
        return {}
    node = graph.nodes[position]
    open_share = parameters.POPULARITY_SHARE * learned.open.get(graph.entity_id(node), 1.0)
    shares: dict[int, float] = {}
    for tool, share in learned.often.items():
        target = node_of(tool)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            shares[end] = open_share * share
    for end, edge in learned_steps_after(graph, learned, position):
        shares[end] = shares.get(end, 0.0) + edge.confidence
    return shares
