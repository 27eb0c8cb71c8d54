"""What now? Tools that are likely to be used after given ones. Pure.

Edges speak first: stated and derived next steps, takers of what was produced, and what calls have
shown. Beside them stand the meanings: tools near the query, near the tools just used, and of the
same server. Of a long request, the part that the last tool served and what follows it count most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from gateway.search.dense.scan import Question, VectorIndex
from gateway.search.eligible import Mask
from gateway.search.index.snapshot import Snapshot
from gateway.search.shownsteps import confidences, path_of, shown_after
from gateway.search.usage.sequences import Followed, Learned
from gateway.types import PathStep
from gateway.values import dataclass
from gateway.vectors import Matrix, Vector, deviations, top
from graphs.expansion import expand
from graphs.neighbour import Neighbour

EDGE_WEIGHT = 3.0
TASK_WEIGHT = 1.0
NEAR_WEIGHT = 0.6
SERVER_WEIGHT = 2.0
"""In standard deviations of the catalog, so that the kinds of evidence add up. Chosen over two
public sets, where the outcome is flat around them."""
AFTER_WEIGHT = 0.5
"""What a deviation of serving what follows in a long request counts, beside the whole task."""
LEARNED_WEIGHT = 2.0
LEARNED_SCALE = 100.0
"""What follows with confidence c gains ``2 log(1 + 100 c)`` deviations. Chosen over the even half
of two public sets, where the outcome is flat around them; the odd half was looked at afterwards."""
_AFTER = 3
_EDGES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One suggestion."""

    position: int
    score: float
    path: tuple[PathStep, ...] = ()
    """The edges that led here, if any did."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighed:
    """What is known of every tool, before what calls have shown."""

    snapshot: Snapshot
    last: int
    """The tool just used."""
    scores: Vector
    """One an entity, shape (n,); minus infinity for who may not be suggested."""
    edges: dict[int, Neighbour] = field(default_factory=dict)
    """The graph's, by position."""

    def ranked(self, limit: int, learned: Learned) -> tuple[NextStep, ...]:
        """Give the best *limit*, with what calls have shown.

        A shown edge confirms one that the host wrote, and changes nothing of it; no tool passes one
        that the host wrote because of it.
        """
        shown = self._shown(learned)
        scores = self._with(learned) if learned else self.scores
        allowed = int(np.isfinite(scores).sum())
        return tuple(
            NextStep(position=spot, score=float(scores[spot]), path=self._path(spot, shown))
            for spot in top(scores, min(limit, allowed)).tolist()
        )

    def _shown(self, learned: Learned) -> dict[int, Followed]:
        graph = self.snapshot.graph
        return {} if graph is None else dict(shown_after(graph, learned, self.last))

    def _with(self, learned: Learned) -> Vector:
        graph = self.snapshot.graph
        scores = self.scores.copy()
        if graph is None:
            return scores
        written = sorted(float(scores[spot]) for spot in self.edges if self._written(spot))
        for spot, confidence in confidences(graph, learned, self.last).items():
            if self._written(spot):
                continue
            before = scores[spot]
            after = before + LEARNED_WEIGHT * math.log1p(LEARNED_SCALE * confidence)
            above = next((score for score in written if score > before), math.inf)
            scores[spot] = min(after, np.nextafter(np.float32(above), np.float32(-np.inf)))
        return scores

    def _written(self, spot: int) -> bool:
        edge = self.edges.get(spot)
        return edge is not None and all(step.declared for step in edge.path)

    def _path(self, spot: int, shown: dict[int, Followed]) -> tuple[PathStep, ...]:
        graph, edge = self.snapshot.graph, self.edges.get(spot)
        if graph is not None and edge is not None:
            return graph.steps(edge.path)
        return path_of(shown[spot]) if spot in shown else ()


def weigh(snapshot: Snapshot, used: Sequence[int], *, task: Vector | None, mask: Mask) -> Weighed:
    """Weigh what may come after the tools at *used*, never one of them.

    Args:
        snapshot: The index.
        used: Positions of the tools just used, the last one last; not empty.
        task: How well each entity serves the task, shape (n,), in standard deviations; None if
            the task is unknown.
        mask: Who may be suggested.
    """
    scores = np.zeros(len(snapshot.entities), dtype=np.float32)
    if task is not None:
        scores += TASK_WEIGHT * task
    if snapshot.vectors is not None:
        scores += NEAR_WEIGHT * deviations(_near(snapshot.vectors, snapshot.common, used[-1]))
    for server in {snapshot.entities[spot].server for spot in used}:
        scores += SERVER_WEIGHT * snapshot.eligibility.has("server", server)
    edges = _edges(snapshot, used, mask)
    for spot, neighbour in edges.items():
        scores[spot] += EDGE_WEIGHT * neighbour.score
    allowed = mask.copy()
    allowed[list(used)] = False
    ranked = np.where(allowed, scores, -np.inf).astype(np.float32)
    return Weighed(snapshot=snapshot, last=used[-1], scores=ranked, edges=edges)


def following_clauses(
    clauses: Matrix, index: VectorIndex, common: Vector | None, used: int
) -> Matrix:
    """Give the part of a request that a tool serves, and the two behind it.

    Requests are told in the order in which they are worked off.

    Args:
        clauses: Unit vectors of the parts, in their order, shape (c, d).
        index: The rows of the catalog.
        common: Their mean; None without any.
        used: The tool's position.

    Returns:
        At most three of *clauses*; none if there are fewer than two.
    """
    if len(clauses) < 2:
        return clauses[:0]
    row, mean = _row_and_mean(index, common, used)
    first = int(np.argmax(clauses @ (row - mean)))
    return clauses[first : first + _AFTER]


def served(clauses: Matrix, index: VectorIndex) -> Vector:
    """Say how well each entity serves the best of *clauses*, in deviations, shape (n,)."""
    nothing = clauses[:0]
    scores = [
        deviations(index.score(Question(texts=clause[None], clauses=nothing))[0])
        for clause in clauses
    ]
    return np.asarray(np.max(scores, axis=0), dtype=np.float32)


def _near(index: VectorIndex, common: Vector | None, position: int) -> Vector:
    """Give every entity's cosine to one of them, seen from the catalog's mean, shape (n,).

    What all tools of a catalog share makes none of them a neighbour.
    """
    row, mean = _row_and_mean(index, common, position)
    away = row - mean
    nothing = row[None][:0]
    along = index.score(Question(texts=away[None], clauses=nothing))[0] - float(away @ mean)
    shared = index.score(Question(texts=mean[None], clauses=nothing))[0]
    length = np.sqrt(np.maximum(1 - 2 * shared + float(mean @ mean), 1e-6))
    return np.asarray(along / length, dtype=np.float32)


def _row_and_mean(
    index: VectorIndex, common: Vector | None, position: int
) -> tuple[Vector, Vector]:
    """Give an entity's row and the catalog's mean, or zeros for it."""
    row = index.rows(np.asarray([position]))[0]
    return row, np.zeros_like(row) if common is None else common


def _edges(snapshot: Snapshot, used: Sequence[int], mask: Mask) -> dict[int, Neighbour]:
    graph = snapshot.graph
    if graph is None:
        return {}
    found = expand(
        graph.index,
        [graph.node(spot) for spot in used],
        role="next_step",
        # Who may not be suggested must not take the place of one who may.
        barred=graph.barred(mask),
        limit=_EDGES,
    )
    return {
        spot: each for each in found.neighbours if (spot := graph.entity(each.node)) is not None
    }
