"""Positions and evidence -> the values that a caller sees. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.search import fusion
from gateway.search.evidence import Ranking, Told
from gateway.search.run import Run
from gateway.search.sayable import unmatched
from gateway.search.supplement import Supplements
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
class Lists:
    """The lists of a result."""

    matches: tuple[Match, ...]
    prerequisites: tuple[Match, ...]
    related: tuple[Match, ...]
    next_steps: tuple[Match, ...]
    doubts: tuple[Diagnostic, ...]
    """What the catalog doubts of the entities in these lists (`ToolDefinition.doubts`), each once.
    """


def browse(snapshot: Snapshot, mask: Mask, limit: int) -> Lists:
    """Give the first *limit* eligible entities by name: nothing was asked, nothing is ranked."""
    spots = [position for position in range(len(snapshot.entities)) if mask[position]][:limit]
    return Lists(
        matches=tuple(plain(snapshot.entities[spot], score=0.0) for spot in spots),
        prerequisites=(),
        related=(),
        next_steps=(),
        doubts=_doubts(snapshot, spots),
    )


def nearest_of_jobs(rankings: Sequence[Ranking], limit: int) -> float:
    """Give the best confidence among the nearest of each job, 0 to 1; 0 without a job.

    The tools of a server that does a job may each look less likely than strangers that are near to
    one of its parts. So whether anything serves a job is asked of the nearest as well.

    Args:
        rankings: One for each query; only those by vectors, of many parts, are looked at.
        limit: How many of the nearest are judged.
    """
    jobs = (each for each in rankings if each.found and fusion.job(each.asked.parts))
    judged = (each.told(each.found.pool[:limit].tolist()) for each in jobs if each.found)
    return max((max(each.confidences, default=0.0) for each in judged), default=0.0)


def lists(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int]],
    added: Supplements,
    *,
    limit: int,
) -> Lists:
    """Write down what was found and what the graph added.

    Args:
        snapshot: The index.
        rankings: One for each query.
        chosen: The matches, as pairs of the ranking's number and the position. The ranking that
            found a match judges it.
        added: The supplements, each with the way that led to it. The surest ranking judges it.
        limit: How many were wanted; the matches may be a choice among so many.
    """
    extra = (*added.prerequisites, *added.related, *added.next_steps)
    spots = [spot for _, spot in chosen] + [each.position for each in extra]
    judged = [ranking.told(spots) for ranking in rankings]
    # A match stands among the first *limit* of the ranking that found it.
    scores = [_head(ranking, limit) for ranking in rankings]
    entities = snapshot.entities
    found = [
        plain(
            entities[spot],
            score=scores[owner][spot],
            confidence=judged[owner].confidences[place],
            evidence=rankings[owner].evidence(judged[owner], place),
        )
        for place, (owner, spot) in enumerate(chosen)
    ]
    for place, each in enumerate(extra, start=len(chosen)):
        owner = _surest(judged, place)
        found.append(
            plain(
                entities[each.position],
                score=each.score,
                confidence=judged[owner].confidences[place],
                evidence=rankings[owner].evidence(judged[owner], place, each.path),
                direct=each.direct,
            )
        )
    rest = iter(found)
    return Lists(
        matches=tuple(islice(rest, len(chosen))),
        prerequisites=tuple(islice(rest, len(added.prerequisites))),
        related=tuple(islice(rest, len(added.related))),
        next_steps=tuple(rest),
        doubts=_doubts(snapshot, spots),
    )


def spread(snapshot: Snapshot, ranking: Ranking, limit: int) -> Ranking:
    """Give *ranking* with places left by each kind to the others; see `gateway.search.spread`."""
    from gateway.search.spread import capped  # noqa: PLC0415  (few searches ask for it)

    order = ranking.order
    kinds = snapshot.eligibility.kinds(order.positions)
    return replace(ranking, order=order.at(capped(kinds, order.scores.tolist(), limit=limit)))


def displayed(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int]],
    request: SearchRequest,
) -> tuple[list[tuple[int, int]], tuple[float, ...]]:
    """Choose which of *chosen* are displayed, as many as `SearchRequest.places` says.

    Returns:
        The choice, and the display score of each, 0 to 1.
    """
    from gateway.search import grouped  # noqa: PLC0415  (few searches ask for it)

    scores = [_head(ranking, request.limit) for ranking in rankings]
    shown = grouped.chosen(
        snapshot.eligibility.kinds(np.array([spot for _, spot in chosen], dtype=np.intp)),
        [scores[owner][spot] for owner, spot in chosen],
        limit=request.places,
        policy=request.ranking,
    )
    return [chosen[each.place] for each in shown], tuple(each.display for each in shown)


def assembled(
    run: Run,
    rankings: Sequence[Ranking],
    lists: Lists,
    added: Supplements,
    *,
    mode: RankingMode,
    window: int,
) -> SearchResult:
    """Put a result together: its lists, with what the search noted, counted and spent.

    Args:
        run: The search.
        rankings: One for each query.
        lists: What was found.
        added: What the graph added, for what that cost.
        mode: What ranked.
        window: How many entities supplements could come from.
    """
    return SearchResult(
        matches=lists.matches,
        prerequisites=lists.prerequisites,
        related=lists.related,
        next_steps=lists.next_steps,
        mode=mode,
        diagnostics=tuple(run.notes),
        counts=Counts(
            eligible=run.eligible,
            candidates=max(len(each.order.positions) for each in rankings),
            window=window,
            graph_nodes=added.visited,
            embedded_texts=run.texts,
            tokens=run.tokens,
        ),
        normalized=tuple(each.asked.english for each in rankings),
        stages=run.seconds,
    )


def emptied(
    found: SearchResult, snapshot: Snapshot, rankings: Sequence[Ranking], mask: Mask
) -> SearchResult:
    """Take all lists out of *found*, and add what might help: the nearest match, the words that
    nobody holds, and the servers there are.
    """
    readings = [ranking.words.best for ranking in rankings]
    servers = snapshot.eligibility.servers(mask)
    return replace(
        found,
        matches=(),
        prerequisites=(),
        related=(),
        next_steps=(),
        displays=(),
        nearest=found.matches[0] if found.matches else None,
        unmatched=unmatched(snapshot.lexical, readings, mask),
        servers=tuple(sorted(servers))[:MAX_SERVERS],
    )


def _head(ranking: Ranking, count: int) -> dict[int, float]:
    """Give the scores of the first *count*, by position."""
    order = ranking.order
    return dict(zip(order.positions[:count].tolist(), order.scores[:count].tolist(), strict=True))


def _doubts(snapshot: Snapshot, spots: Iterable[int]) -> tuple[Diagnostic, ...]:
    entities = snapshot.entities
    return tuple(
        dict.fromkeys([note for spot in spots for note in entities[spot].definition.doubts])
    )


def _surest(judged: Sequence[Told], place: int) -> int:
    """Give the number of the ranking that is surest of the entity at *place*."""
    return max(range(len(judged)), key=lambda number: judged[number].confidences[place])


def plain(
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
