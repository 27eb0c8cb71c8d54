"""Positions and evidence -> the values that a caller sees. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from gateway.index.snapshot import Snapshot
from gateway.search.expand.supplements import Supplements
from gateway.search.rank import display
from gateway.search.ranking import EntityScores, Ranking
from gateway.search.state import SearchState
from gateway.search.visibility import unmatched_terms
from gateway.types import (
    Counts,
    Diagnostic,
    Entity,
    Evidence,
    Match,
    RankingMode,
    SearchRequest,
    SearchResult,
)

_NO_EVIDENCE = Evidence()
MAX_SERVERS = 50
"""How many servers a result names where nothing was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLists:
    """The lists of a result."""

    matches: tuple[Match, ...]
    prerequisites: tuple[Match, ...]
    related: tuple[Match, ...]
    next_steps: tuple[Match, ...]
    suspicions: tuple[Diagnostic, ...]
    """What the catalog holds against the entities in these lists, each once."""


def browse(state: SearchState) -> SearchResult:
    """Return the first eligible entities by name: there is no query, and nothing is ranked."""
    request, entities = state.request, state.snapshot.entities
    limit = min(request.limit, request.display_limit or request.limit)
    positions = np.flatnonzero(state.mask)[:limit].tolist()
    state.diagnostics += _suspicions(state.snapshot, positions)
    return state.result(
        "browse", tuple(to_match(entities[position], score=0.0) for position in positions)
    )


def build_lists(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int]],
    added: Supplements,
    *,
    limit: int,
) -> ResultLists:
    """Write matches and supplements, with their confidence and evidence.

    Args:
        snapshot: The index.
        rankings: One for each query.
        chosen: The matches, best first: the number of the ranking and the position.
        added: The graph's supplements. Of several rankings the one that is surest of a supplement
            says how likely it is.
        limit: How many matches were wanted.
    """
    extra = (*added.prerequisites, *added.related, *added.next_steps)
    positions = [position for _, position in chosen] + [each.position for each in extra]
    assessed = [ranking.assess(positions) for ranking in rankings]
    # A match stands among the first *limit* of the ranking that found it.
    scores = [_head_scores(ranking, limit) for ranking in rankings]
    entities = snapshot.entities
    matches = [
        to_match(
            entities[position],
            score=scores[owner][position],
            confidence=assessed[owner].confidences[index],
            evidence=rankings[owner].evidence(assessed[owner], index),
        )
        for index, (owner, position) in enumerate(chosen)
    ]
    for index, each in enumerate(extra, start=len(chosen)):
        owner = _most_confident(assessed, index)
        matches.append(
            to_match(
                entities[each.position],
                score=each.score,
                confidence=assessed[owner].confidences[index],
                evidence=rankings[owner].evidence(assessed[owner], index, each.path),
                direct=each.direct,
            )
        )
    rest = iter(matches)
    return ResultLists(
        matches=tuple(islice(rest, len(chosen))),
        prerequisites=tuple(islice(rest, len(added.prerequisites))),
        related=tuple(islice(rest, len(added.related))),
        next_steps=tuple(rest),
        suspicions=_suspicions(snapshot, positions),
    )


def diversify(snapshot: Snapshot, ranking: Ranking, limit: int) -> Ranking:
    """Return *ranking* with ranks left by each kind to the others; see `cap_per_kind`."""
    ranked = ranking.ranked
    kinds = snapshot.eligibility.kinds(ranked.positions)
    return replace(
        ranking, ranked=ranked.at(display.cap_per_kind(kinds, ranked.scores.tolist(), limit=limit))
    )


def select(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int]],
    request: SearchRequest,
) -> tuple[list[tuple[int, int]], tuple[float, ...]]:
    """Choose which of *chosen* are displayed, as many as `SearchRequest.display_limit` says.

    Returns:
        The choice, and the display score of each, 0 to 1.
    """
    scores = [_head_scores(ranking, request.limit) for ranking in rankings]
    shown = display.select(
        snapshot.eligibility.kinds(np.array([at for _, at in chosen], dtype=np.intp)),
        [scores[owner][position] for owner, position in chosen],
        limit=request.display_limit,
        policy=request.ranking,
    )
    return [chosen[each.place] for each in shown], tuple(each.display for each in shown)


def build_result(  # noqa: PLR0913  (keyword-only, one a part of the result)
    state: SearchState,
    rankings: Sequence[Ranking],
    lists: ResultLists,
    added: Supplements,
    *,
    mode: RankingMode,
    window: int,
    display_scores: tuple[float, ...] = (),
) -> SearchResult:
    """Put a result together: its lists, diagnostics, counts and times.

    Args:
        state: The search.
        rankings: One for each query.
        lists: The matches and supplements.
        added: The supplements, for what they cost.
        mode: What ranked.
        window: How many entities supplements could come from.
        display_scores: Of the matches; empty without `SearchRequest.display_limit`.
    """
    return SearchResult(
        matches=lists.matches,
        prerequisites=lists.prerequisites,
        related=lists.related,
        next_steps=lists.next_steps,
        mode=mode,
        diagnostics=tuple(state.diagnostics),
        counts=Counts(
            eligible=state.eligible,
            candidates=max(len(ranking.ranked.positions) for ranking in rankings),
            window=window,
            graph_nodes=added.visited,
            embedded_texts=state.texts,
            tokens=state.tokens,
        ),
        normalized=tuple(ranking.query.normalized for ranking in rankings),
        stages=state.seconds,
        display_scores=display_scores,
    )


def without_matches(
    result: SearchResult, state: SearchState, rankings: Sequence[Ranking]
) -> SearchResult:
    """Take all lists out of *result*, and add what might help.

    That is the nearest match, the words that no entity holds, and the servers there are.
    """
    snapshot = state.snapshot
    readings = [ranking.lexical.best for ranking in rankings]
    servers = snapshot.eligibility.servers(state.mask)
    return replace(
        result,
        matches=(),
        prerequisites=(),
        related=(),
        next_steps=(),
        display_scores=(),
        nearest=result.matches[0] if result.matches else None,
        unmatched=unmatched_terms(snapshot.lexical, readings, state.mask),
        servers=tuple(sorted(servers))[:MAX_SERVERS],
    )


def _head_scores(ranking: Ranking, count: int) -> dict[int, float]:
    """Return the scores of the first *count* of a ranking, by position."""
    ranked = ranking.ranked
    positions, scores = ranked.positions[:count].tolist(), ranked.scores[:count].tolist()
    return dict(zip(positions, scores, strict=True))


def _suspicions(snapshot: Snapshot, positions: Iterable[int]) -> tuple[Diagnostic, ...]:
    definitions = (snapshot.entities[position].definition for position in positions)
    return tuple(dict.fromkeys(note for each in definitions for note in each.doubts))


def _most_confident(assessed: Sequence[EntityScores], index: int) -> int:
    """Return the number of the ranking that is surest of the entity at *index*."""
    return max(range(len(assessed)), key=lambda number: assessed[number].confidences[index])


def to_match(
    entity: Entity,
    *,
    score: float,
    confidence: float = 0.0,
    evidence: Evidence = _NO_EVIDENCE,
    direct: bool = True,
) -> Match:
    """Write *entity* as a match, with the numbers that it was found by."""
    suspicious = entity.suspicious
    return Match(
        id=entity.id,
        name=entity.exposed_name,
        server=entity.server,
        description=entity.definition.description,
        required=entity.required,
        score=score,
        confidence=round(confidence, 6),
        evidence=evidence,
        direct=direct and not suspicious,
        suspicious=suspicious,
    )
