"""The tools that are likely to be used next, after given ones, and what past calls add to that.

Edges count first: stated and derived next steps, tools that take what was produced, and what calls
have shown. Those that the host declares come before all others. Beside edges counts nearness: to
the task, to the tool just used, and its server. Of a long request, the clause that the last tool
served and what follows it count most. Without vectors only what an edge leads to, or what holds
words of the task, is suggested.

`evaluate_usage` judges past tasks, each by all the others. For each call that followed another, all
tools are ranked as next steps three times: plainly, with the transitions of the other tasks, and
with the outcomes of their calls. The right one is the tool that was called next. There is no query,
since queries are never kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gateway.embed.cache import Embed
from gateway.errors import Failed, InvalidRequestError
from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot, resolve
from gateway.index.tool_graph import ToolGraph, node_of
from gateway.index.vectors import CatalogVectors, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Distribution, Matrix, Vector, deviations, top
from gateway.search.expand.supplements import (
    Supplement,
    entities_of,
    is_declared,
    learned_path,
    learned_steps_after,
)
from gateway.search.query import Query
from gateway.search.rank import parameters
from gateway.search.rank.fusion import lexical_deviations
from gateway.search.results import to_match
from gateway.search.retrieve import find_candidates, score_clauses, score_lexical
from gateway.search.state import with_timeout, with_vectors
from gateway.types import Evidence, Filters, Match
from gateway.usage.call_log import Task
from gateway.usage.evaluation import UsageEvaluation, measure_gain
from gateway.usage.history import NO_SIGNALS, UsageSignals
from gateway.usage.rerank import Outcomes, decay, multiplier, rerank
from gateway.usage.transitions import LearnedSteps, TransitionCounts
from graphs.expansion import Neighbour, expand

MAX_CALLS = 400
"""Calls that are judged, those of the newest tasks."""
MAX_RANK = 50
"""A tool further down counts as not found."""


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
    if not used or snapshot.graph is None:
        return ()
    task = await _read_task(snapshot, query, embed, options) if query else None
    suggest = partial(
        _suggest,
        used=used,
        task=task,
        filters=filters,
        limit=limit,
        options=options,
        learned=usage.learned,
    )
    found = await with_vectors(
        snapshot.vectors, partial(suggest, snapshot), options.query_timeout_s
    )
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


def _suggest(  # noqa: PLR0913  (keyword-only, those of `suggest_next_steps`)
    snapshot: Snapshot,
    *,
    used: Sequence[int],
    task: Query | None,
    filters: Filters,
    limit: int,
    options: SearchOptions,
    learned: LearnedSteps,
) -> tuple[Match, ...]:
    graph, mask = snapshot.graph, snapshot.mask(filters)
    if graph is None:
        return ()
    served = _score_task(snapshot, used[-1], task, mask, options) if task else None
    scores = score_next_steps(snapshot, graph, used, task=served, mask=mask)
    return tuple(
        to_match(
            snapshot.entities[step.position], score=step.score, evidence=Evidence(path=step.path)
        )
        for step in scores.best(limit, learned, supported_only=True)
    )


def _score_task(
    snapshot: Snapshot, last: int, query: Query, mask: Mask, options: SearchOptions
) -> Vector:
    """Score every entity for a task, as a search would, and for the clauses after *last*.

    Without vectors it is scored by words alone.

    Returns:
        Deviations, shape (n,).
    """
    words = [score_lexical(snapshot.lexical, query).scores]
    words += score_clauses(snapshot.lexical, query)
    index = snapshot.vectors
    if index is None or index.mean is None or not query.is_embedded:
        return _deviations(words[0])
    everything = np.arange(len(snapshot.entities))
    candidates = find_candidates(index, query.vectors, mask=mask, count=options.pool(1))
    scores = candidates.deviations(candidates.strengths_at(everything))
    scores += lexical_deviations(words, everything, mask, options.lexical_weight)
    following = following_clauses(query.vectors.clauses, index, index.mean, last)
    if len(following):
        served = [_deviations(_cosines(index, clause)) for clause in following]
        scores += parameters.FOLLOWING_CLAUSE_WEIGHT * np.max(served, axis=0)
    return scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextStepScores:
    """The scores of every tool, before what calls have shown."""

    graph: ToolGraph
    last: int
    """The tool just used."""
    scores: Vector
    """One for each entity, shape (n,); minus infinity where it may not be suggested."""
    supported: Mask
    """Which the vectors, or words of the task, speak for, shape (n,)."""
    edges: Mapping[int, Neighbour]
    """The graph's next steps, by position."""

    def best(
        self, limit: int, learned: LearnedSteps, *, supported_only: bool = False
    ) -> tuple[Supplement, ...]:
        """Return the best *limit* suggestions, with what calls have shown.

        A learned edge changes nothing of one that the host declared, and lifts no tool above it.
        """
        scores = self.scores.copy()
        declared = {at for at, edge in self.edges.items() if is_declared(edge)}
        ceiling = min((float(scores[position]) for position in declared), default=math.inf)
        below = np.nextafter(np.float32(ceiling), np.float32(-np.inf))
        for position, confidence in confidences(self.graph, learned, self.last).items():
            if position not in declared:
                gain = parameters.LEARNED_WEIGHT * math.log1p(parameters.LEARNED_SCALE * confidence)
                scores[position] = min(scores[position] + gain, below)
        paths = {
            position: learned_path(edge)
            for position, edge in learned_steps_after(self.graph, learned, self.last)
        }
        paths |= {position: self.graph.steps(edge.path) for position, edge in self.edges.items()}
        if supported_only:
            unsupported = ~self.supported
            unsupported[list(paths)] = False
            scores[unsupported] = -np.inf
        allowed = int(np.isfinite(scores).sum())
        return tuple(
            Supplement(position=at, score=float(scores[at]), path=paths.get(at, ()))
            for at in top(scores, min(limit, allowed)).tolist()
        )


def score_next_steps(
    snapshot: Snapshot, graph: ToolGraph, used: Sequence[int], *, task: Vector | None, mask: Mask
) -> NextStepScores:
    """Score what may come after the tools at *used*, never one of them.

    Args:
        snapshot: The index.
        graph: Its graph.
        used: Positions of the tools just used, the last one last; not empty.
        task: How well each entity serves the task, shape (n,), in deviations; None if the task is
            unknown.
        mask: What may be suggested.
    """
    scores = np.zeros(len(snapshot.entities), dtype=np.float32)
    if task is not None:
        scores += parameters.TASK_WEIGHT * task
    if snapshot.vectors is not None and snapshot.vectors.mean is not None:
        near = _cosines_with(snapshot.vectors, snapshot.vectors.mean, used[-1])
        scores += parameters.NEIGHBOUR_WEIGHT * _deviations(near)
    supported = mask if snapshot.vectors is not None else scores > 0
    for server in {snapshot.entities[position].server for position in used}:
        scores += parameters.SERVER_WEIGHT * snapshot.eligibility.has("server", server)
    allowed = mask.copy()
    allowed[list(used)] = False
    edges = _edges_after(graph, used, mask)
    for position, neighbour in edges.items():
        scores[position] += parameters.EDGE_WEIGHT * neighbour.score
    declared = [at for at, edge in edges.items() if is_declared(edge) and allowed[at]]
    if declared:
        others = allowed.copy()
        others[declared] = False
        gap = float(scores.max(initial=-np.inf, where=others)) - float(scores[declared].min())
        scores[declared] += max(gap + parameters.DECLARED_LEAD, 0.0)
    scores = np.where(allowed, scores, -np.inf).astype(np.float32)
    return NextStepScores(
        graph=graph, last=used[-1], scores=scores, supported=supported, edges=edges
    )


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


def _cosines_with(index: CatalogVectors, mean: Vector, position: int) -> Vector:
    """Return the cosine of each entity with the one at *position*, shape (n,).

    Both are measured from the catalog's mean: what all tools share makes no two of them neighbours.
    """
    away = index.rows(np.asarray([position]))[0] - mean
    along = _cosines(index, away) - float(away @ mean)
    shared = _cosines(index, mean)
    length = np.sqrt(np.maximum(1 - 2 * shared + float(mean @ mean), parameters.MIN_SQUARED_LENGTH))
    return np.asarray(along / length, dtype=np.float32)


def _cosines(index: CatalogVectors, vector: Vector) -> Vector:
    """Return the product of each row with *vector*, shape (n,)."""
    return index.score(VectorQuery(texts=vector[None], clauses=vector[None][:0]))[0]


def _deviations(scores: Vector) -> Vector:
    return deviations(scores, Distribution.of(scores))


def evaluate_usage(
    snapshot: Snapshot, tasks: Sequence[Task], outcomes: Mapping[str, Outcomes]
) -> UsageEvaluation:
    """Judge each task by what the others say.

    Args:
        snapshot: The catalog; tools that are not in it are passed over.
        tasks: Oldest first.
        outcomes: How the calls of each tool ended, those of the tasks too.
    """
    if snapshot.vectors is not None and snapshot.vectors.blocking:
        # Each call would scan the database twice.
        snapshot = replace(snapshot, vectors=None)
    learn: list[list[float]] = []
    reranked: list[list[float]] = []
    counts = TransitionCounts.of(
        [task.tools for task in tasks], [decay(task.age_s) for task in tasks]
    )
    left = MAX_CALLS
    for task in reversed(tasks):
        if left <= 0:
            break
        weight = decay(task.age_s)
        counts.remove(task.tools, weight)
        others = dict(outcomes)
        for tool in task.tools:
            counted = others.get(tool, Outcomes())
            others[tool] = replace(counted, succeeded=max(counted.succeeded - weight, 0.0))
        gains = list(_judge(snapshot, task, counts, others))
        counts.add(task.tools, weight)
        left -= len(gains)
        learn.append([gain for gain, _ in gains])
        reranked.append([gain for _, gain in gains])
    return UsageEvaluation(learn=measure_gain(learn), rerank=measure_gain(reranked))


def _judge(
    snapshot: Snapshot, task: Task, counts: TransitionCounts, others: Mapping[str, Outcomes]
) -> Iterator[tuple[float, float]]:
    """Yield for each call of *task* what transitions and what outcomes would have gained."""
    mask, by_id, graph = snapshot.mask(Filters()), snapshot.eligibility.by_id, snapshot.graph
    if graph is None:
        return
    positions = [by_id[tool] for tool in dict.fromkeys(task.tools) if tool in by_id]
    visible = [position for position in positions if mask[position]]
    for index in range(1, len(visible)):
        used, target = visible[:index], visible[index]
        scores = score_next_steps(snapshot, graph, used, task=None, mask=mask)
        plain = scores.best(MAX_RANK, LearnedSteps())
        base = _reciprocal_rank(plain, target)
        last = snapshot.entities[used[-1]].id
        learned = scores.best(MAX_RANK, counts.learned_steps(before=(last,)))
        ids = [snapshot.entities[step.position].id for step in plain]
        multipliers = {tool: multiplier(others[tool]) for tool in ids if tool in others}
        order = rerank(ids, [step.score for step in plain], multipliers)
        yield (
            _reciprocal_rank(learned, target) - base,
            _reciprocal_rank([plain[place] for place in order], target) - base,
        )


def _reciprocal_rank(steps: Sequence[Supplement], target: int) -> float:
    positions = [step.position for step in steps]
    return 1 / (1 + positions.index(target)) if target in positions else 0.0
