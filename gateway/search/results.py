"""Positions and evidence -> the values that a caller sees. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gateway.search.eligible import Mask
from gateway.search.evidence import Ranking
from gateway.search.index import Snapshot
from gateway.search.supplement import Supplement
from gateway.types import Entity, Evidence, Match


def browse(snapshot: Snapshot, mask: Mask, limit: int) -> tuple[Match, ...]:
    """Give the first *limit* eligible entities by name: nothing was asked, nothing is ranked."""
    spots = [position for position in range(len(snapshot.entities)) if mask[position]]
    return tuple(plain(snapshot.entities[spot], score=0.0) for spot in spots[:limit])


def matches(
    snapshot: Snapshot, rankings: Sequence[Ranking], chosen: Iterable[tuple[int, int]]
) -> tuple[Match, ...]:
    """Say what was found: pairs of the ranking's number and the position."""
    found = []
    for number, spot in chosen:
        ranking = rankings[number]
        scores = ranking.order.scores[ranking.order.positions == spot]
        found.append(
            plain(
                snapshot.entities[spot],
                score=float(scores[0]),
                confidence=ranking.confidence(spot),
                evidence=ranking.evidence(spot, snapshot.lexical),
            )
        )
    return tuple(found)


def supplements(
    snapshot: Snapshot, rankings: Sequence[Ranking], added: Iterable[Supplement]
) -> tuple[Match, ...]:
    """Say what the graph added, each with the way that led to it."""
    found = []
    for each in added:
        ranking = max(rankings, key=lambda ranking: ranking.confidence(each.position))
        evidence = ranking.evidence(each.position, snapshot.lexical)
        match = plain(
            snapshot.entities[each.position],
            score=each.score,
            confidence=ranking.confidence(each.position),
            evidence=replace(evidence, path=each.path),
        )
        found.append(replace(match, direct=each.direct))
    return tuple(found)


def plain(
    entity: Entity, *, score: float, confidence: float = 0.0, evidence: Evidence | None = None
) -> Match:
    """Say what *entity* is, with the numbers that it was found by."""
    return Match(
        id=entity.id,
        name=entity.exposed_name,
        server=entity.server,
        description=entity.description,
        required=entity.required,
        score=score,
        confidence=round(confidence, 6),
        evidence=evidence or Evidence(),
    )
