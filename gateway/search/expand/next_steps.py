"""Suggestions of the next tool after the tools just used, from the graph and past calls.

Edges of the graph count most, and next steps that the host declares come first. Similarity to the
task, similarity to the tool just used and a shared server also count. Without vectors, a tool is
suggested only if it has an edge or words in common with the task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest

import numpy as np

from gateway.embed.cache import Embed
from gateway.errors import Failed, InvalidRequestError
from gateway.index.candidates import CatalogVectors, VectorQuery, sample_of
from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot, resolve
from gateway.index.tool_graph import ToolGraph
from gateway.options import SearchOptions
from gateway.runtime.vectors import Distribution, Matrix, Vector, deviations, deviations_at, top
from gateway.search.expand.supplements import (
    Supplement,
    confidences,
    entities_of,
    is_declared,
    learned_path,
    learned_steps_after,
)
from gateway.search.learned import NO_SIGNALS, LearnedSteps, UsageSignals
from gateway.search.pipeline import Search
from gateway.search.query import Query
from gateway.search.rank import parameters
from gateway.search.results import to_match
from gateway.search.retrieve import score_clauses, score_lexical
from gateway.search.state import with_timeout, with_vectors
from gateway.types import Evidence, Filters, Match
from graphs.expansion import Neighbour, expand

CANDIDATES = 200
"""Maximum number of tools that one search for candidates returns."""


async def suggest_next_steps(  # noqa: PLR0913  (keyword-only, options of `Gateway.next_steps`)
    search: Search,
    snapshot: Snapshot,
    tools: Sequence[str],
    *,
    query: str,
    filters: Filters,
    limit: int,
    usage: UsageSignals = NO_SIGNALS,
) -> tuple[Match, ...]:
    """Suggest tools to use after *tools*, best first, without *tools* themselves.

    The arguments are those of `Gateway.next_steps`. The embedder of *search* embeds *query*.

    Raises:
        UnknownToolError: If one of *tools* is not in the catalog.
        InvalidRequestError: If *limit* is below 1, or *tools* is a string.
    """
    if isinstance(tools, str):
        raise InvalidRequestError(
            "tools must be a list of ids or names; for one tool pass a list with one item"
        )
    # The filters apply to the suggestions, but not to the tools that were used.
    empty = frozenset[str]()
    visible = replace(filters, tags=empty, servers=empty, without=empty)
    used = [snapshot.position(resolve(snapshot, tool, visible).id) for tool in tools]
    if limit < 1:
        raise InvalidRequestError(f"limit must be at least 1, got {limit}")
    if not used or snapshot.graph is None:
        return ()
    options = search.options
    task = await _read_task(snapshot, query, search.embed, options) if query else None

    def suggest(index: Snapshot) -> tuple[Match, ...]:
        mask, learned = index.mask(filters), usage.learned
        reasons = [] if task is None else _task_reasons(index, used, task, mask, options)
        scores = score_next_steps(index, used, reasons=reasons, mask=mask, learned=learned)
        best = scores.best(limit, learned, supported_only=True)
        return tuple(
            to_match(
                index.entities[step.position], score=step.score, evidence=Evidence(path=step.path)
            )
            for step in best
        )

    work = partial(suggest, snapshot)
    steps = await with_vectors(snapshot.vectors, work, options.query_timeout_s)
    return suggest(replace(snapshot, vectors=None)) if isinstance(steps, Failed) else steps


async def _read_task(
    snapshot: Snapshot, text: str, embed: Embed | None, options: SearchOptions
) -> Query:
    query = Query(text=text).split()
    if embed is None or snapshot.vectors is None:
        return query
    texts = query.texts_to_embed
    embedded = await with_timeout(embed(texts, snapshot.dimensions), options.query_timeout_s)
    if isinstance(embedded, Failed):
        return query
    return query.with_vectors(dict(zip(texts, embedded.vectors, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reason:
    """One reason to use a tool next. It contributes candidates and scores every candidate."""

    nearest: Positions
    """Positions of the tools that this reason contributes to the candidates."""
    score: Callable[[Positions], Vector]
    """Returns the weighted scores of the tools at given positions, in deviations."""


def _task_reasons(
    snapshot: Snapshot, used: Sequence[int], query: Query, mask: Mask, options: SearchOptions
) -> list[Reason]:
    """Return reasons from the task: its words and, with vectors, nearness and its next clauses."""
    index, lexical = snapshot.vectors, snapshot.lexical
    words = [score_lexical(lexical, query).scores, *score_clauses(lexical, query)]
    named = top(np.where(mask, words[0], np.float32(0)), CANDIDATES)
    by_words = named[words[0][named] > 0]
    if index is None or index.mean is None or not query.is_embedded:
        distribution = Distribution.of(words[0])
        return [Reason(nearest=by_words, score=lambda at: deviations(words[0][at], distribution))]
    masks = _masks_to_search(snapshot, used, mask)
    near = _nearness_reason(index, query.vectors, masks, parameters.TASK_WEIGHT)
    weight = parameters.TASK_WEIGHT * options.lexical_weight
    worded = Reason(
        nearest=by_words,
        score=lambda at: (
            weight * np.sum([deviations_at(scores, at, mask) for scores in words], axis=0)
        ),
    )
    following = [
        _nearness_reason(
            index, _single_vector_query(clause), masks, parameters.FOLLOWING_CLAUSE_WEIGHT
        )
        for clause in following_clauses(query.vectors.clauses, index, index.mean, used[-1])
    ]
    if not following:
        return [near, worded]
    served = Reason(
        nearest=np.concatenate([clause.nearest for clause in following]),
        score=lambda at: np.max([clause.score(at) for clause in following], axis=0),
    )
    return [near, worded, served]


def _nearness_reason(
    index: CatalogVectors, vectors: VectorQuery, masks: Sequence[Mask], weight: float
) -> Reason:
    """Return a reason that scores tools by nearness to *vectors*, times *weight*.

    The nearest tools in every mask are candidates. Deviations refer to the first mask.
    """
    results = [index.search(vectors, mask=eligible, count=CANDIDATES) for eligible in masks]
    nearest = results[0]
    return Reason(
        nearest=np.concatenate([candidates.pool for candidates in results]),
        score=lambda at: weight * nearest.deviations(nearest.strengths_at(at)),
    )


def _neighbour_reason(
    index: CatalogVectors, mean: Vector, last: int, masks: Sequence[Mask]
) -> Reason:
    """Return a reason that scores tools by similarity to the tool at the position *last*.

    The similarity is a cosine after subtraction of *mean*, the catalog's mean vector, so that
    features common to all tools do not count.
    """
    away = index.rows(np.asarray([last]))[0] - mean
    sample = sample_of(np.flatnonzero(masks[0]))

    def cosines(positions: Positions) -> Vector:
        along = _dot_products(index, away, positions) - float(away @ mean)
        squared = 1 - 2 * _dot_products(index, mean, positions) + float(mean @ mean)
        length = np.sqrt(np.maximum(squared, parameters.MIN_SQUARED_LENGTH))
        return np.asarray(along / length, dtype=np.float32)

    distribution = Distribution.of(cosines(sample))
    pools = [
        index.search(_single_vector_query(away), mask=eligible, count=CANDIDATES).pool
        for eligible in masks
    ]
    return Reason(
        nearest=np.concatenate(pools),
        score=lambda at: parameters.NEIGHBOUR_WEIGHT * deviations(cosines(at), distribution),
    )


def _masks_to_search(snapshot: Snapshot, used: Sequence[int], mask: Mask) -> list[Mask]:
    """Return *mask*, and its part on the servers of *used* if larger than `CANDIDATES`."""
    near = mask & _server_mask(snapshot, used)
    return [mask] if np.count_nonzero(near) <= CANDIDATES else [mask, near]


def _server_mask(snapshot: Snapshot, used: Sequence[int]) -> Mask:
    servers = {snapshot.entities[position].server for position in used}
    masks = [snapshot.eligibility.has("server", server) for server in servers]
    return np.asarray(np.any(masks, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextStepScores:
    """Scores of the next-step candidates, before learned edges are added."""

    graph: ToolGraph
    last: int
    positions: Positions
    """Positions of the candidates, ascending, shape (m,)."""
    scores: Vector
    """Score of each candidate, shape (m,)."""
    supported: Mask
    """True for a candidate with words of the task; always True with vectors; shape (m,)."""
    edges: Mapping[int, Neighbour]
    """Next steps from the graph, keyed by the position of the next tool."""

    def best(
        self, limit: int, learned: LearnedSteps, *, supported_only: bool = False
    ) -> tuple[Supplement, ...]:
        """Add learned edges to the scores, and return the *limit* best suggestions.

        A learned edge never raises a tool above a next step that the host declares. If
        *supported_only*, a tool without a path in the graph is included only if it is `supported`.
        """
        scores = dict(zip(self.positions.tolist(), self.scores.tolist(), strict=True))
        declared = {place for place, edge in self.edges.items() if is_declared(edge)}
        ceiling = min((scores[position] for position in declared), default=math.inf)
        below = math.nextafter(ceiling, -math.inf)
        for position, confidence in confidences(self.graph, learned, self.last).items():
            if position in scores and position not in declared:
                gain = parameters.LEARNED_WEIGHT * math.log1p(parameters.LEARNED_SCALE * confidence)
                scores[position] = min(scores[position] + gain, below)
        paths = {
            position: learned_path(edge)
            for position, edge in learned_steps_after(self.graph, learned, self.last)
        }
        paths |= {position: self.graph.steps(edge.path) for position, edge in self.edges.items()}
        if supported_only:
            supported = {*paths, *self.positions[self.supported].tolist()}
            scores = {
                position: score for position, score in scores.items() if position in supported
            }
        best = nsmallest(limit, scores, key=lambda position: (-scores[position], position))
        return tuple(
            Supplement(position=place, score=scores[place], path=paths.get(place, ()))
            for place in best
        )


def score_next_steps(
    snapshot: Snapshot,
    used: Sequence[int],
    *,
    reasons: Sequence[Reason] = (),
    mask: Mask,
    learned: LearnedSteps,
) -> NextStepScores:
    """Score the tools that may come after the tools at *used*. Those at *used* are excluded.

    The snapshot must have a graph, and *used* must not be empty. Learned edges add candidates, but
    do not change scores here.
    """
    index, graph = snapshot.vectors, snapshot.graph
    if graph is None:
        raise AssertionError
    if index is not None and index.mean is not None:
        masks = _masks_to_search(snapshot, used, mask)
        reasons = [*reasons, _neighbour_reason(index, index.mean, used[-1], masks)]
    edges, near = _edges_after(graph, used, mask), _server_mask(snapshot, used)
    pools = [reason.nearest for reason in reasons]
    pools += [np.flatnonzero(near & mask)[:CANDIDATES], np.array([*edges], dtype=np.intp)]
    pools.append(np.array([*confidences(graph, learned, used[-1])], dtype=np.intp))
    if index is None:
        # Without vectors, other tools differ only by name, so add the first ones.
        pools.append(np.flatnonzero(mask)[:CANDIDATES])
    positions = np.unique(np.concatenate(pools))
    positions = positions[mask[positions] & ~np.isin(positions, used)]
    scores = np.zeros(len(positions), dtype=np.float32)
    for reason in reasons:
        scores += reason.score(positions)
    supported = scores > 0 if index is None else np.ones(len(positions), dtype=np.bool_)
    scores += parameters.SERVER_WEIGHT * near[positions]
    _add_edges(scores, positions, edges)
    return NextStepScores(
        graph=graph,
        last=used[-1],
        positions=positions,
        scores=scores,
        supported=supported,
        edges={position: edge for position, edge in edges.items() if position in positions},
    )


def _add_edges(scores: Vector, positions: Positions, edges: Mapping[int, Neighbour]) -> None:
    """Add the weights of *edges* to *scores* in place. Declared next steps get the best scores."""
    is_declared_step = np.zeros(len(positions), dtype=np.bool_)
    for place in np.flatnonzero(np.isin(positions, [*edges])):
        edge = edges[int(positions[place])]
        scores[place] += parameters.EDGE_WEIGHT * edge.score
        is_declared_step[place] = is_declared(edge)
    if is_declared_step.any():
        best = float(scores.max(initial=-np.inf, where=~is_declared_step))
        gap = best - float(scores[is_declared_step].min())
        scores[is_declared_step] += max(gap + parameters.DECLARED_LEAD, 0.0)


def _edges_after(graph: ToolGraph, used: Sequence[int], mask: Mask) -> dict[int, Neighbour]:
    """Return the graph's next steps after the tools at *used*, keyed by the next tool's position.

    If a tool has a declared edge and a derived one, the declared edge counts.
    """
    edges: dict[int, Neighbour] = {}
    for declared in (True, False) if graph.has_declared else (False,):
        expansion = expand(
            graph.index,
            [graph.nodes[position] for position in used],
            role="next_step",
            # Exclude ineligible entities here, because they would use up the limit.
            excluded=graph.excluded(mask),
            declared_only=declared,
            limit=parameters.MAX_STEP_EDGES,
        )
        edges = dict(entities_of(graph, expansion)) | edges
    return edges


def following_clauses(clauses: Matrix, index: CatalogVectors, mean: Vector, used: int) -> Matrix:
    """Return the clause of a long request that a tool fulfilled, and the next two clauses.

    People usually write clauses in the order of execution. Empty if *clauses* has fewer than two
    rows, shape (c, d). *mean* is the mean vector of the catalog, and *used* the tool's position.
    """
    if len(clauses) < 2:
        return clauses[:0]
    row = index.rows(np.asarray([used]))[0]
    first = int(np.argmax(clauses @ (row - mean)))
    return clauses[first : first + parameters.FOLLOWING_CLAUSES]


def _dot_products(index: CatalogVectors, vector: Vector, positions: Positions) -> Vector:
    products: Vector = index.similarities(vector[None], positions)[0]
    return products


def _single_vector_query(vector: Vector) -> VectorQuery:
    return VectorQuery(texts=vector[None], clauses=vector[None][:0])
