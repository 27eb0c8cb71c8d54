"""The tools that are likely to be used next, after given ones, and what past calls add to that.

Edges count first: stated and derived next steps, tools that take what was produced, and what calls
have shown. Those that the host declares come before all others. Beside edges counts nearness: to
the task, to the tool just used, and its server. Of a long request, the clause that the last tool
served and what follows it count most. Without vectors only what an edge leads to, or what holds
words of the task, is suggested.

Only candidates are scored: the `CANDIDATES` tools nearest to the task, to its next clauses and to
the tool just used, the tools of its server, and whatever an edge leads to.
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
"""Tools that each reason brings in."""


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
    """Suggest what may come after *tools*, best first, never one of them.

    Args:
        search: Its embedder embeds the task, which without one is read by its words alone.
        snapshot: The index.
        tools: Those just used, the last one last, each as `Gateway.invoke` takes it.
        query: The task; blank if it is unknown.
        filters: What may be suggested.
        limit: Suggestions at most.
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
    found = await with_vectors(snapshot.vectors, work, options.query_timeout_s)
    return suggest(replace(snapshot, vectors=None)) if isinstance(found, Failed) else found


async def _read_task(
    snapshot: Snapshot, text: str, embed: Embed | None, options: SearchOptions
) -> Query:
    """Return the task as a query, with its vectors if the catalog has some and they come."""
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
    """One reason to use a tool next: it chooses candidates, and scores those of all reasons."""

    nearest: Positions
    """The eligible entities for which it speaks most, at most a few hundred."""
    score: Callable[[Positions], Vector]
    """Returns what it adds to the entities at positions, in deviations."""


def _task_reasons(
    snapshot: Snapshot, used: Sequence[int], query: Query, mask: Mask, options: SearchOptions
) -> list[Reason]:
    """Return what a task says of tools, as a search would, and what its next clauses say.

    Without vectors its words alone speak.
    """
    index, lexical = snapshot.vectors, snapshot.lexical
    words = [score_lexical(lexical, query).scores, *score_clauses(lexical, query)]
    named = top(np.where(mask, words[0], np.float32(0)), CANDIDATES)
    by_words = named[words[0][named] > 0]
    if index is None or index.mean is None or not query.is_embedded:
        distribution = Distribution.of(words[0])
        return [Reason(nearest=by_words, score=lambda at: deviations(words[0][at], distribution))]
    masks = _masks(snapshot, used, mask)
    near = _nearness(index, query.vectors, masks, parameters.TASK_WEIGHT)
    weight = parameters.TASK_WEIGHT * options.lexical_weight
    worded = Reason(
        nearest=by_words,
        score=lambda at: weight * np.sum([deviations_at(each, at, mask) for each in words], axis=0),
    )
    following = [
        _nearness(index, _alone(clause), masks, parameters.FOLLOWING_CLAUSE_WEIGHT)
        for clause in following_clauses(query.vectors.clauses, index, index.mean, used[-1])
    ]
    if not following:
        return [near, worded]
    served = Reason(
        nearest=np.concatenate([clause.nearest for clause in following]),
        score=lambda at: np.max([clause.score(at) for clause in following], axis=0),
    )
    return [near, worded, served]


def _nearness(
    index: CatalogVectors, vectors: VectorQuery, masks: Sequence[Mask], weight: float
) -> Reason:
    """Return the nearness to the vectors of one query, times *weight*, among the first mask."""
    found = [index.search(vectors, mask=eligible, count=CANDIDATES) for eligible in masks]
    every = found[0]
    return Reason(
        nearest=np.concatenate([candidates.pool for candidates in found]),
        score=lambda at: weight * every.deviations(every.strengths_at(at)),
    )


def _neighbours(index: CatalogVectors, mean: Vector, last: int, masks: Sequence[Mask]) -> Reason:
    """Return the cosine with the tool at *last*, both measured from the catalog's mean.

    What all tools share makes no two of them neighbours.
    """
    away = index.rows(np.asarray([last]))[0] - mean
    sample = sample_of(np.flatnonzero(masks[0]))

    def cosines(positions: Positions) -> Vector:
        along = _products(index, away, positions) - float(away @ mean)
        squared = 1 - 2 * _products(index, mean, positions) + float(mean @ mean)
        length = np.sqrt(np.maximum(squared, parameters.MIN_SQUARED_LENGTH))
        return np.asarray(along / length, dtype=np.float32)

    distribution = Distribution.of(cosines(sample))
    found = [index.search(_alone(away), mask=each, count=CANDIDATES).pool for each in masks]
    return Reason(
        nearest=np.concatenate(found),
        score=lambda at: parameters.NEIGHBOUR_WEIGHT * deviations(cosines(at), distribution),
    )


def _masks(snapshot: Snapshot, used: Sequence[int], mask: Mask) -> list[Mask]:
    """Return *mask*, and that of the servers of *used* if not all of their tools are candidates."""
    near = mask & _of_servers(snapshot, used)
    return [mask] if np.count_nonzero(near) <= CANDIDATES else [mask, near]


def _of_servers(snapshot: Snapshot, used: Sequence[int]) -> Mask:
    """Return which entities are of a server that one of *used* is of, shape (n,)."""
    servers = {snapshot.entities[position].server for position in used}
    masks = [snapshot.eligibility.has("server", server) for server in servers]
    return np.asarray(np.any(masks, axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextStepScores:
    """The scores of the candidates, before what calls have shown."""

    graph: ToolGraph
    last: int
    """The tool just used."""
    positions: Positions
    """Those of the candidates, ascending, shape (m,); each may be suggested."""
    scores: Vector
    """Shape (m,)."""
    supported: Mask
    """Which of them the vectors, or words of the task, speak for, shape (m,)."""
    edges: Mapping[int, Neighbour]
    """The graph's next steps, by position."""

    def best(
        self, limit: int, learned: LearnedSteps, *, supported_only: bool = False
    ) -> tuple[Supplement, ...]:
        """Return the best *limit* suggestions, with what calls have shown.

        A learned edge changes nothing of one that the host declared, and lifts no tool above it.
        """
        scores = dict(zip(self.positions.tolist(), self.scores.tolist(), strict=True))
        declared = {at for at, edge in self.edges.items() if is_declared(edge)}
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
            Supplement(position=at, score=scores[at], path=paths.get(at, ())) for at in best
        )


def score_next_steps(
    snapshot: Snapshot,
    used: Sequence[int],
    *,
    reasons: Sequence[Reason] = (),
    mask: Mask,
    learned: LearnedSteps,
) -> NextStepScores:
    """Score what may come after the tools at *used*, never one of them.

    Args:
        snapshot: The index, which has a graph.
        used: Positions of the tools just used, the last one last; not empty.
        reasons: What the task says; none if it is unknown.
        mask: What may be suggested.
        learned: What calls have shown; it makes candidates, and moves no score yet.
    """
    index, graph = snapshot.vectors, snapshot.graph
    if graph is None:
        raise AssertionError
    if index is not None and index.mean is not None:
        masks = _masks(snapshot, used, mask)
        reasons = [*reasons, _neighbours(index, index.mean, used[-1], masks)]
    edges, near = _edges_after(graph, used, mask), _of_servers(snapshot, used)
    pools = [reason.nearest for reason in reasons]
    pools += [np.flatnonzero(near & mask)[:CANDIDATES], np.array([*edges], dtype=np.intp)]
    pools.append(np.array([*confidences(graph, learned, used[-1])], dtype=np.intp))
    if index is None:
        # Nothing tells the others apart but their names.
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
        edges={at: edge for at, edge in edges.items() if at in positions},
    )


def _add_edges(scores: Vector, positions: Positions, edges: Mapping[int, Neighbour]) -> None:
    """Add to *scores* what the graph says, so that declared next steps come before all others."""
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
    """Return the next steps of the graph, by position; what the host declares is read first."""
    edges: dict[int, Neighbour] = {}
    for declared in (True, False) if graph.has_declared else (False,):
        expansion = expand(
            graph.index,
            [graph.nodes[position] for position in used],
            role="next_step",
            # What may not be suggested must not take the place of something that may.
            excluded=graph.excluded(mask),
            declared_only=declared,
            limit=parameters.MAX_STEP_EDGES,
        )
        edges = dict(entities_of(graph, expansion)) | edges
    return edges


def following_clauses(clauses: Matrix, index: CatalogVectors, mean: Vector, used: int) -> Matrix:
    """Return the clause of a request that a tool serves, and the next two.

    People write the clauses of a request in the order in which they are to be done.

    Args:
        clauses: Unit vectors, in their order, shape (c, d).
        index: The rows of the catalog.
        mean: Their mean.
        used: The tool's position.

    Returns:
        At most three of *clauses*; none if there are fewer than two.
    """
    if len(clauses) < 2:
        return clauses[:0]
    row = index.rows(np.asarray([used]))[0]
    first = int(np.argmax(clauses @ (row - mean)))
    return clauses[first : first + parameters.FOLLOWING_CLAUSES]


def _products(index: CatalogVectors, vector: Vector, positions: Positions) -> Vector:
    """Return the product of the row at each position with *vector*, shape (m,)."""
    products: Vector = index.similarities(vector[None], positions)[0]
    return products


def _alone(vector: Vector) -> VectorQuery:
    return VectorQuery(texts=vector[None], clauses=vector[None][:0])
