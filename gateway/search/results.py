"""Positions and evidence -> the values that a caller sees. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gateway.search.eligible import Mask
from gateway.search.evidence import Ranking
from gateway.search.index.snapshot import Snapshot
from gateway.search.supplement import Supplement, Supplements
from gateway.types import Entity, Evidence, Match, SearchResult

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


def browse(snapshot: Snapshot, mask: Mask, limit: int) -> tuple[Match, ...]:
    """Give the first *limit* eligible entities by name: nothing was asked, nothing is ranked."""
    spots = [position for position in range(len(snapshot.entities)) if mask[position]]
    return tuple(plain(snapshot.entities[spot], score=0.0) for spot in spots[:limit])


def lists(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    chosen: Sequence[tuple[int, int]],
    added: Supplements,
) -> Lists:
    """Say what was found and what the graph added.

    Args:
        snapshot: The index.
        rankings: One a query.
        chosen: The matches, as pairs of the ranking's number and the position. The ranking that
            found a match judges it.
        added: The supplements, each with the way that led to it. The surest ranking judges it.
    """
    # Whoever was chosen stands among the first so many of its ranking: others took fewer places.
    scores = [_head(ranking, len(chosen)) for ranking in rankings]
    found = (Supplement(position=spot, score=scores[number][spot]) for number, spot in chosen)
    every = (*found, *added.prerequisites, *added.related, *added.next_steps)
    told = iter(_told(snapshot, rankings, every, [number for number, _ in chosen]))
    return Lists(
        matches=tuple(islice(told, len(chosen))),
        prerequisites=tuple(islice(told, len(added.prerequisites))),
        related=tuple(islice(told, len(added.related))),
        next_steps=tuple(told),
    )


def emptied(
    found: SearchResult, snapshot: Snapshot, rankings: Sequence[Ranking], mask: Mask
) -> SearchResult:
    """Say that nothing serves the request, and what might help: the nearest, and what there is."""
    unmatched = dict.fromkeys(word for ranking in rankings for word in ranking.words.best.unmatched)
    servers = snapshot.eligibility.servers(mask)
    return replace(
        found,
        matches=(),
        prerequisites=(),
        related=(),
        next_steps=(),
        nearest=found.matches[0] if found.matches else None,
        unmatched=tuple(unmatched),
        servers=tuple(sorted(servers))[:MAX_SERVERS],
    )


def _head(ranking: Ranking, count: int) -> dict[int, float]:
    order = ranking.order
    return dict(zip(order.positions[:count].tolist(), order.scores[:count].tolist(), strict=True))


def _told(
    snapshot: Snapshot,
    rankings: Sequence[Ranking],
    every: Sequence[Supplement],
    finders: Sequence[int],
) -> Iterable[Match]:
    """Tell of *every* entity; who found the first ones is known."""
    spots = [each.position for each in every]
    told = [ranking.told(spots) for ranking in rankings]
    rest = list(zip(*(each.confidences for each in told), strict=True))[len(finders) :]
    owners = [*finders, *(each.index(max(each)) for each in rest)]
    for place, (each, owner) in enumerate(zip(every, owners, strict=True)):
        said = told[owner]
        evidence = rankings[owner].evidence(said, place, spot=each.position, path=each.path)
        yield plain(
            snapshot.entities[each.position],
            score=each.score,
            confidence=said.confidences[place],
            evidence=evidence,
            direct=each.direct,
        )


def plain(
    entity: Entity,
    *,
    score: float,
    confidence: float = 0.0,
    evidence: Evidence = _NO_EVIDENCE,
    direct: bool = True,
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
        evidence=evidence,
        direct=direct,
    )
