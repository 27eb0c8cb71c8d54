"""Which tools are likely to be used next, after given ones. Pure.

Edges count first: stated and derived next steps, tools that take what was produced, and what calls
have shown. Beside them counts what is near: to the query, to the tools just used, and of the same
server. Of a long request, the part that the last tool served and what follows it count most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.runtime.vectors import Matrix, Vector, deviations, top
from gateway.search.shownsteps import confidences, path_of, shown_after
from gateway.search.usage.sequences import Followed, Learned
from gateway.types import PathStep
from graphs.expansion import expand_at
from graphs.neighbour import Neighbour

EDGE_WEIGHT = 3.0
TASK_WEIGHT = 1.0
NEAR_WEIGHT = 0.6
SERVER_WEIGHT = 2.0
"""What each kind of evidence counts, in standard deviations of the catalog, so that they add up.
Chosen over two public sets, where the outcome is flat around these."""
AFTER_WEIGHT = 0.5
"""What serving the following part of a long request counts beside serving the whole of it."""
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
    """One for each entity, shape (n,); minus infinity where it may not be suggested."""
    edges: dict[int, Neighbour] = field(default_factory=dict)
    """The graph's next steps, by position."""

    def ranked(self, limit: int, learned: Learned) -> tuple[NextStep, ...]:
        """Give the best *limit* suggestions, with what calls have shown.

        An edge that calls have shown changes nothing of one that the host wrote, and lifts no tool
        above one that the host wrote.
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
    """Give the part of a request that a tool serves, and the two after it.

    People tell the parts of a request in the order in which they are to be done.

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
    """Say how well each entity serves one of *clauses*, at best, in deviations, shape (n,)."""
    nothing = clauses[:0]
    scores = [
        deviations(index.score(VectorQuery(texts=clause[None], clauses=nothing))[0])
        for clause in clauses
    ]
    return np.asarray(np.max(scores, axis=0), dtype=np.float32)


def _near(index: VectorIndex, common: Vector | None, position: int) -> Vector:
    """Give the cosine of each entity with the one at *position*, shape (n,).

    Both are measured from the catalog's mean: what all tools share makes no two of them neighbours.
    """
    row, mean = _row_and_mean(index, common, position)
    away = row - mean
    nothing = row[None][:0]
    along = index.score(VectorQuery(texts=away[None], clauses=nothing))[0] - float(away @ mean)
    shared = index.score(VectorQuery(texts=mean[None], clauses=nothing))[0]
    length = np.sqrt(np.maximum(1 - 2 * shared + float(mean @ mean), 1e-6))
    return np.asarray(along / length, dtype=np.float32)


def _row_and_mean(
    index: VectorIndex, common: Vector | None, position: int
) -> tuple[Vector, Vector]:
    """Give an entity's row, and the catalog's mean or zeros if there is none."""
    row = index.rows(np.asarray([position]))[0]
    return row, np.zeros_like(row) if common is None else common


def _edges(snapshot: Snapshot, used: Sequence[int], mask: Mask) -> dict[int, Neighbour]:
    graph = snapshot.graph
    if graph is None:
        return {}
    found = expand_at(
        graph.index,
        graph.at(used),
        role="next_step",
        # What may not be suggested must not take the place of something that may.
        barred=graph.barred(mask),
        limit=_EDGES,
    )
    return {
        spot: each for each in found.neighbours if (spot := graph.entity(each.node)) is not None
    }
