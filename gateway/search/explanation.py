"""Explanation of a result: evidence for each match, and entities removed by filters. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from gateway.index.eligibility import Mask, Positions, failed_filters
from gateway.runtime.vectors import Vector
from gateway.search.rank.fusion import interleave
from gateway.search.rank.policies import has_vectors
from gateway.search.results import Ranking
from gateway.search.state import SearchState
from gateway.types import EvidenceRanks, FilteredEntity, Match, PathStep

MAX_FILTERED = 5
"""Maximum number of entities removed by filters that an explanation lists."""


def evidence_ranks(
    state: SearchState, rankings: Sequence[Ranking], chosen: Sequence[tuple[int, int, float]]
) -> tuple[EvidenceRanks, ...]:
    """Return the ranks of each match by vectors, words, graph, past calls and their combination.

    *chosen* are the matches: index of the ranking, position and score.
    """
    usage = np.zeros(len(state.mask), dtype=np.float32)
    positions = state.snapshot.eligibility.by_id
    for key, multiplier in state.usage.multipliers.items():
        if key in positions:
            usage[positions[key]] = multiplier
    ranks = []
    for final, (number, position, _) in enumerate(chosen, 1):
        ranking = rankings[number]
        candidates, scores = ranking.candidates, {**ranking.scores, "usage": usage}
        place = None if candidates is None else _find_rank(candidates.pool, position)
        signals = {name: float(term[place - 1]) for name, term in ranking.terms.items() if place}
        if candidates is not None and not has_vectors(candidates, np.array([position], np.intp))[0]:
            place = None
        places = {
            name: _rank_by_score(values, position, state.mask) for name, values in scores.items()
        }
        ranks.append(
            EvidenceRanks(
                vector=place,
                lexical=places.get("lexical"),
                graph=places.get("graph"),
                usage=places["usage"],
                ranked=_find_rank(ranking.ranked.positions, position),
                final=final,
                signals=tuple(signals.items()),
            )
        )
    return tuple(ranks)


def _find_rank(positions: Positions, position: int) -> int | None:
    indices = np.flatnonzero(positions == position)
    return int(indices[0]) + 1 if indices.size else None


def _rank_by_score(scores: Vector, position: int, mask: Mask) -> int | None:
    """Return the rank by *scores* of the entity at *position* among the eligible entities.

    Ties are ordered by position. None if the entity's score is not above 0.
    """
    score = scores[position]
    if score <= 0:
        return None
    better = scores > score
    better[:position] |= scores[:position] == score
    return 1 + int(np.count_nonzero(better & mask))


def filtered_entities(
    state: SearchState, rankings: Sequence[Ranking]
) -> tuple[FilteredEntity, ...]:
    """Return at most `MAX_FILTERED` matches of *rankings* that do not pass the filters, best first.

    *state* has the filters. *rankings* are for the same queries and contain every entity that the
    reader of the explanation may see, except servers (unless the filters select servers).
    """
    entities, filters = state.snapshot.entities, state.request.filters
    best = interleave([ranking.ranked for ranking in rankings], limit=state.request.limit)
    return tuple(
        FilteredEntity(
            id=entities[position].id,
            kind=entities[position].kind,
            rank=rank,
            confidence=round(rankings[number].assess([position])[0][0], 6),
            filters=failed_filters(entities[position], filters) or ("policy",),
        )
        for rank, (number, position, _) in islice(
            ((rank, row) for rank, row in enumerate(best, 1) if not state.mask[row[1]]),
            MAX_FILTERED,
        )
    )


def reasons(match: Match) -> tuple[str, ...]:
    """Return the evidence for *match* as sentences."""
    evidence, sentences = match.evidence, []
    if evidence.exact_name:
        sentences.append("The request contains its exact name.")
    if evidence.vector is not None:
        sentences.append(f"Its meaning is similar to the request: cosine {evidence.vector:.2f}.")
    if evidence.lexical:
        words = ", ".join(evidence.words)
        sentences.append(
            f"It contains {evidence.lexical:.0%} of the request's words, by rarity: {words}."
        )
    if evidence.graph:
        sentences.append(f"Its graph node contains {evidence.graph:.0%} of the request's words.")
    return (*sentences, *map(_describe_step, evidence.path))


def _describe_step(step: PathStep) -> str:
    source = step.source or "a rule"
    origin = f"declared in {source}" if step.declared else f"source: {source}"
    return f"{step.subject} {step.predicate} {step.object} ({origin})."
