"""The tools that are likely to be used next, after given ones.

Edges count first: stated and derived next steps, tools that take what was produced, and what calls
have shown. Beside them counts nearness: to the task, to the tool just used, and its server. Of a
long request, the clause that the last tool served and what follows it count most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gateway.embed.cache import Embed
from gateway.errors import Failed, InvalidRequestError
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot, resolve
from gateway.index.vectors import VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Matrix, Vector, deviations, top
from gateway.search.expand.learned_steps import confidences, learned_steps_after, path_of
from gateway.search.query import Query
from gateway.search.rank.fusion import lexical_deviations
from gateway.search.rank.parameters import (
    EDGE_WEIGHT,
    FOLLOWING_CLAUSE_WEIGHT,
    FOLLOWING_CLAUSES,
    LEARNED_SCALE,
    LEARNED_WEIGHT,
    MAX_STEP_EDGES,
    MIN_SQUARED_LENGTH,
    NEIGHBOUR_WEIGHT,
    SERVER_WEIGHT,
    TASK_WEIGHT,
)
from gateway.search.results import to_match
from gateway.search.retrieve import find_candidates, score_lexical
from gateway.search.state import with_timeout
from gateway.types import Evidence, Filters, Match, PathStep
from gateway.usage.history import NO_SIGNALS, UsageSignals
from gateway.usage.transitions import LearnedSteps, Transition
from graphs.expansion import Neighbour, expand


async def suggest_next_steps(  # noqa: PLR0913  (keyword-only, options of `Gateway.next_steps`)
    snapshot: Snapshot,
    tools: Sequence[str],
    *,
    query: str,
    embed: Embed | None,
    filters: Filters,
    limit: int,
    options: SearchOptions,
    usage: UsageSignals = NO_SIGNALS,
) -> tuple[Match, ...]:
    """Suggest what may come after *tools*, best first, never one of them.

    Args:
        snapshot: The index.
        tools: Those just used, the last one last, each as `Gateway.invoke` takes it.
        query: The task; blank if it is unknown.
        embed: Embeds the task; without it the task is read by its words alone.
        filters: What may be suggested.
        limit: Suggestions at most.
        options: Those of searches.
        usage: What calls have shown.

    Raises:
        UnknownToolError: If one of *tools* is not in the catalog.
        InvalidRequestError: If *limit* is below 1, or *tools* is one text.
    """
    if isinstance(tools, str):
        raise InvalidRequestError("tools is a list of ids or names; for one give a list of one")
    # A tool that was used is known, even if tools like it may not be suggested.
    none = frozenset[str]()
    visible = replace(filters, tags=none, servers=none, without=none)
    used = [snapshot.position(resolve(snapshot, tool, visible).id) for tool in tools]
    if limit < 1:
        raise InvalidRequestError(f"limit must be at least 1, got {limit}")
    if not used:
        return ()
    mask = snapshot.mask(filters)
    task = await _score_task(snapshot, used[-1], query, embed, mask, options) if query else None
    steps = score_next_steps(snapshot, used, task=task, mask=mask).best(limit, usage.learned)
    entities = snapshot.entities
    return tuple(
        to_match(entities[step.position], score=step.score, evidence=Evidence(path=step.path))
        for step in steps
    )


async def _score_task(
    snapshot: Snapshot,
    last: int,
    text: str,
    embed: Embed | None,
    mask: Mask,
    options: SearchOptions,
) -> Vector:
    """Score every entity for a task, as a search would, and for the clauses after *last*.

    Without vectors it is scored by words alone.

    Returns:
        Deviations, shape (n,).
    """
    query = Query(text=text).split()
    lexical = score_lexical(snapshot.lexical, query)
    if embed is None or snapshot.vectors is None:
        return deviations(lexical.scores)
    texts = query.texts_to_embed
    work = embed(texts, snapshot.dimensions)
    embedded = await with_timeout(work, options.query_timeout_s)
    if isinstance(embedded, Failed):
        return deviations(lexical.scores)
    query = query.with_vectors(dict(zip(texts, embedded.vectors, strict=True)))
    everything = np.arange(len(snapshot.entities))
    candidates = find_candidates(snapshot.vectors, query.vectors, mask=mask, count=options.pool(1))
    scores = candidates.deviations(candidates.strengths_at(everything))
    scores += lexical_deviations(lexical, everything, mask, options.lexical_weight)
    clauses = query.vectors.clauses
    following = following_clauses(clauses, snapshot.vectors, snapshot.mean_vector, last)
    if len(following):
        scores += FOLLOWING_CLAUSE_WEIGHT * _score_clauses(following, snapshot.vectors)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One suggestion."""

    position: int
    score: float
    path: tuple[PathStep, ...] = ()
    """The edges that led here, if any did."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextStepScores:
    """The scores of every tool, before what calls have shown."""

    snapshot: Snapshot
    last: int
    """The tool just used."""
    scores: Vector
    """One for each entity, shape (n,); minus infinity where it may not be suggested."""
    edges: dict[int, Neighbour] = field(default_factory=dict)
    """The graph's next steps, by position."""

    def best(self, limit: int, learned: LearnedSteps) -> tuple[NextStep, ...]:
        """Return the best *limit* suggestions, with what calls have shown.

        A learned edge changes nothing of one that the host declared, and lifts no tool above one
        that the host declared.
        """
        steps = self._learned_steps(learned)
        scores = self._with_learned(learned) if learned else self.scores
        allowed = int(np.isfinite(scores).sum())
        return tuple(
            NextStep(position=at, score=float(scores[at]), path=self._path(at, steps))
            for at in top(scores, min(limit, allowed)).tolist()
        )

    def _learned_steps(self, learned: LearnedSteps) -> dict[int, Transition]:
        graph = self.snapshot.graph
        return {} if graph is None else dict(learned_steps_after(graph, learned, self.last))

    def _with_learned(self, learned: LearnedSteps) -> Vector:
        graph = self.snapshot.graph
        scores = self.scores.copy()
        if graph is None:
            return scores
        declared = sorted(float(scores[at]) for at in self.edges if self._is_declared(at))
        for position, confidence in confidences(graph, learned, self.last).items():
            if self._is_declared(position):
                continue
            before = scores[position]
            after = before + LEARNED_WEIGHT * math.log1p(LEARNED_SCALE * confidence)
            above = next((score for score in declared if score > before), math.inf)
            scores[position] = min(after, np.nextafter(np.float32(above), np.float32(-np.inf)))
        return scores

    def _is_declared(self, position: int) -> bool:
        edge = self.edges.get(position)
        return edge is not None and all(step.declared for step in edge.path)

    def _path(self, position: int, learned: dict[int, Transition]) -> tuple[PathStep, ...]:
        graph, edge = self.snapshot.graph, self.edges.get(position)
        if graph is not None and edge is not None:
            return graph.steps(edge.path)
        return path_of(learned[position]) if position in learned else ()


def score_next_steps(
    snapshot: Snapshot, used: Sequence[int], *, task: Vector | None, mask: Mask
) -> NextStepScores:
    """Score what may come after the tools at *used*, never one of them.

    Args:
        snapshot: The index.
        used: Positions of the tools just used, the last one last; not empty.
        task: How well each entity serves the task, shape (n,), in deviations; None if the task is
            unknown.
        mask: What may be suggested.
    """
    scores = np.zeros(len(snapshot.entities), dtype=np.float32)
    if task is not None:
        scores += TASK_WEIGHT * task
    if snapshot.vectors is not None:
        near = _cosines_with(snapshot.vectors, snapshot.mean_vector, used[-1])
        scores += NEIGHBOUR_WEIGHT * deviations(near)
    for server in {snapshot.entities[position].server for position in used}:
        scores += SERVER_WEIGHT * snapshot.eligibility.has("server", server)
    edges = _edges(snapshot, used, mask)
    for position, neighbour in edges.items():
        scores[position] += EDGE_WEIGHT * neighbour.score
    allowed = mask.copy()
    allowed[list(used)] = False
    scores = np.where(allowed, scores, -np.inf).astype(np.float32)
    return NextStepScores(snapshot=snapshot, last=used[-1], scores=scores, edges=edges)


def following_clauses(
    clauses: Matrix, index: VectorIndex, mean: Vector | None, used: int
) -> Matrix:
    """Return the clause of a request that a tool serves, and the next two.

    People write the clauses of a request in the order in which they are to be done.

    Args:
        clauses: Unit vectors, in their order, shape (c, d).
        index: The rows of the catalog.
        mean: Their mean; None without any.
        used: The tool's position.

    Returns:
        At most three of *clauses*; none if there are fewer than two.
    """
    if len(clauses) < 2:
        return clauses[:0]
    row, mean = _row_and_mean(index, mean, used)
    first = int(np.argmax(clauses @ (row - mean)))
    return clauses[first : first + FOLLOWING_CLAUSES]


def _score_clauses(clauses: Matrix, index: VectorIndex) -> Vector:
    """Return how well each entity serves one of *clauses*, at best, in deviations, shape (n,)."""
    none = clauses[:0]
    scores = [
        deviations(index.score(VectorQuery(texts=clause[None], clauses=none))[0])
        for clause in clauses
    ]
    return np.asarray(np.max(scores, axis=0), dtype=np.float32)


def _cosines_with(index: VectorIndex, mean: Vector | None, position: int) -> Vector:
    """Return the cosine of each entity with the one at *position*, shape (n,).

    Both are measured from the catalog's mean: what all tools share makes no two of them neighbours.
    """
    row, mean = _row_and_mean(index, mean, position)
    away = row - mean
    none = row[None][:0]
    along = index.score(VectorQuery(texts=away[None], clauses=none))[0] - float(away @ mean)
    shared = index.score(VectorQuery(texts=mean[None], clauses=none))[0]
    length = np.sqrt(np.maximum(1 - 2 * shared + float(mean @ mean), MIN_SQUARED_LENGTH))
    return np.asarray(along / length, dtype=np.float32)


def _row_and_mean(index: VectorIndex, mean: Vector | None, position: int) -> tuple[Vector, Vector]:
    """Return an entity's row, and the catalog's mean or zeros if there is none."""
    row = index.rows(np.asarray([position]))[0]
    return row, np.zeros_like(row) if mean is None else mean


def _edges(snapshot: Snapshot, used: Sequence[int], mask: Mask) -> dict[int, Neighbour]:
    graph = snapshot.graph
    if graph is None:
        return {}
    expansion = expand(
        graph.index,
        [graph.nodes[position] for position in used],
        role="next_step",
        # What may not be suggested must not take the place of something that may.
        excluded=graph.excluded(mask),
        limit=MAX_STEP_EDGES,
    )
    return {
        position: neighbour
        for neighbour in expansion.neighbours
        if (position := graph.entity(neighbour.node)) is not None
    }
