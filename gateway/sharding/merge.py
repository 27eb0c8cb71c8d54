"""Surveys and details of the parts of a catalog -> rankings and lists of the whole. Pure.

A *row* is an entity's number among all that the parts named, in the order of names: ties break by
name, as they do in one process. A *place* is a part's number and a position within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, itemgetter
from typing import TypeAlias

import numpy as np

from gateway.index.eligibility import Positions
from gateway.options import SearchOptions
from gateway.search.expand.supplements import Supplement
from gateway.search.query import Query
from gateway.search.rank.fusion import Pool, PoolMoments, RankedList, pin_exact_names, rank_pool
from gateway.search.rank.parameters import RELATED_COVERAGE
from gateway.search.retrieve import window_of
from gateway.sharding.values import Details, DetailsAnswer, QueryChoice, Survey

Place: TypeAlias = tuple[int, int]
Surveys: TypeAlias = Mapping[int, Survey]
"""Of one query, by the number of the part."""
_PART_GROUPS = 1 << 32
"""More servers than any part has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The entities that the parts named."""

    places: Sequence[Place]
    kinds: Sequence[str]
    by_place: Mapping[Place, int]

    @classmethod
    def of(cls, surveys: Iterable[Surveys]) -> Rows:
        """Collect the entities of *surveys*, one mapping for each query."""
        found: dict[Place, tuple[str, str, str]] = {}
        for by_part in surveys:
            for part, survey in by_part.items():
                columns = survey.positions.tolist(), survey.names, survey.ids, survey.kinds
                for position, name, entity_id, kind in zip(*columns, strict=True):
                    found[part, position] = name.casefold(), entity_id, kind
        places = sorted(found, key=lambda place: found[place][:2])
        return cls(
            places=places,
            kinds=[found[place][2] for place in places],
            by_place={place: row for row, place in enumerate(places)},
        )

    def at(self, part: int, positions: Iterable[int]) -> list[int]:
        """Return the rows of the entities at *positions* of a part."""
        return [self.by_place[part, position] for position in positions]

    def within(self, part: int, rows: Iterable[int]) -> Positions:
        """Return the positions of those of *rows* that are of a part, in their order."""
        places = (self.places[row] for row in rows)
        return np.array([position for owner, position in places if owner == part], np.intp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedQuery:
    """One query, ranked over all parts; positions are rows."""

    query: Query
    ranked: RankedList
    """With exact names first; copies were not moved yet."""
    named: Sequence[int]
    window: frozenset[int]
    listed: Sequence[int]
    """The rows that the graph is asked about."""
    moments: PoolMoments
    eligible: int
    form: int

    def choice(self, rows: Rows, part: int) -> QueryChoice:
        """Return what a part needs to know of it."""
        return QueryChoice(
            moments=self.moments,
            eligible=self.eligible,
            form=self.form,
            listed=rows.within(part, self.listed),
        )


def merge_query(
    query: Query, surveys: Surveys, rows: Rows, *, limit: int, options: SearchOptions
) -> MergedQuery:
    """Rank *query* over all parts as one process ranks it.

    Args:
        query: In all its forms.
        surveys: What the parts have for it.
        rows: All entities of the search.
        limit: How many matches are wanted.
        options: Sizes and weights.
    """
    moments = reduce(add, (survey.moments for survey in surveys.values()), PoolMoments())
    eligible = sum(survey.eligible for survey in surveys.values())
    pool = _pool(surveys, rows, options.pool(limit))
    ranked = RankedList(positions=pool.positions, scores=pool.strengths)
    mean = moments.vectors.strengths.mean if query.is_embedded else 0.0
    window = window_of(pool.positions, pool.strengths, limit, options, eligible=eligible, mean=mean)
    if any(len(survey.words) for survey in surveys.values()):
        weight, count = options.lexical_weight, query.clause_count
        ranked = rank_pool(pool, moments, weight=weight, clause_count=count)
    listed = ranked.positions.tolist()
    if query.is_embedded:
        listed = sorted(window.union(listed[: options.window(limit)]))
    named = _named(surveys, rows)
    coverages = [survey.coverages for survey in surveys.values() if survey.coverages]
    most = [max(form) for form in zip(*coverages, strict=True)] or [0.0]
    return MergedQuery(
        query=query,
        ranked=pin_exact_names(ranked, named),
        named=named,
        window=window,
        listed=listed,
        moments=moments,
        eligible=eligible,
        form=most.index(max(most)),
    )


def _pool(surveys: Surveys, rows: Rows, count: int) -> Pool:
    """Return the best *count* candidates of all parts, best first, ties by row."""
    parts = [
        Pool(
            positions=np.array(
                rows.at(part, survey.positions[: len(survey.strengths)].tolist()), np.intp
            ),
            strengths=survey.strengths,
            words=survey.words,
            clauses=survey.clauses,
            groups=survey.groups[: len(survey.strengths)] + part * _PART_GROUPS,
            group_sizes=survey.group_sizes[: len(survey.strengths)],
        )
        for part, survey in surveys.items()
    ]
    positions = np.concatenate([part.positions for part in parts])
    strengths = np.concatenate([part.strengths for part in parts])
    best = np.lexsort((positions, -strengths))[:count]
    words = np.concatenate([part.words for part in parts])
    clauses = np.concatenate([part.clauses for part in parts if part.clauses is not None])
    return Pool(
        positions=positions[best],
        strengths=strengths[best],
        words=words[best] if len(words) else words,
        clauses=clauses[best] if len(clauses) else None,
        groups=np.concatenate([part.groups for part in parts])[best],
        group_sizes=np.concatenate([part.group_sizes for part in parts])[best],
    )


def _named(surveys: Surveys, rows: Rows) -> list[int]:
    """Return the rows of what the query calls by name; an id names nothing else."""
    found: dict[int, None] = {}
    for names in zip(*(survey.named for survey in surveys.values()), strict=True):
        by_id = any(is_id for is_id, _ in names)
        called = [
            rows.at(part, positions)
            for part, (is_id, positions) in zip(surveys, names, strict=True)
            if is_id or not by_id
        ]
        found |= dict.fromkeys(sorted(row for each in called for row in each))
    return list(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAnswers:
    """What the parts told of entities, in one search."""

    answers: Mapping[int, DetailsAnswer]
    """By the number of the part."""

    def details(self) -> dict[Place, Details]:
        """Return all entities that were told of."""
        return {
            (part, each.position): each
            for part, answer in self.answers.items()
            for each in answer.details
        }

    def ordered(
        self, name: str, details: Mapping[Place, Details]
    ) -> list[tuple[Place, Supplement]]:
        """Return the neighbours in one list of all parts: declared ones first, then the strongest.

        Args:
            name: ``related`` or ``next_steps``.
            details: Of all entities.
        """
        found = _neighbours(self.answers, name)

        def order(pair: tuple[Place, Supplement]) -> tuple[bool, float, str, str]:
            match = details[pair[0]].match
            return not _is_declared(pair[1]), -pair[1].score, match.name, match.id

        return sorted(found, key=order)

    def prerequisites(
        self, matches: Sequence[tuple[Place, str]], budget: int
    ) -> list[tuple[Place, Supplement]]:
        """Return what the matches need, by match, what the host declares first.

        Args:
            matches: Their places and ids, best first.
            budget: How many of those that are no matches themselves.
        """
        found = list(_neighbours(self.answers, "prerequisites"))
        places = {place for place, _ in matches}
        order = {entity_id: rank for rank, (_, entity_id) in enumerate(matches)}
        # Sorting is stable: of one match they stay as its part ordered them.
        found.sort(key=lambda pair: (not _is_declared(pair[1]), order[pair[1].path[0].subject]))
        chosen = []
        for place, each in found:
            if place not in places:
                if budget <= 0:
                    continue
                budget -= 1
            chosen.append((place, each))
        return chosen

    def text_hits(
        self, rows: Rows, free: frozenset[int], room: int
    ) -> list[tuple[Place, Supplement]]:
        """Return what holds nearly as much of the query's words as the best that was found.

        Args:
            rows: All entities of the search.
            free: The rows of the window that stand in no list.
            room: How many at most.
        """
        hits: list[tuple[int, float]] = []
        for query in zip(*(answer.hits for answer in self.answers.values()), strict=True):
            scored = [
                (-score, rows.by_place[part, position], share)
                for part, found in zip(self.answers, query, strict=True)
                for position, score, share in found
            ]
            hits += ((row, share) for _, row, share in sorted(scored))
        floor = RELATED_COVERAGE * max((share for _, share in hits), default=0.0)
        near = dict(hit for hit in hits if hit[1] >= floor and hit[0] in free)
        return [
            (rows.places[row], Supplement(position=row, score=share))
            for row, share in list(near.items())[: max(room, 0)]
        ]

    def unmatched(self) -> tuple[str, ...]:
        """Return the words of the queries that no part holds, in their order."""
        answers = list(self.answers.values())
        lists = zip(*(answer.unmatched for answer in answers), strict=True)
        words = (
            word for first, *others in lists for word in first if all(word in w for w in others)
        )
        return tuple(dict.fromkeys(words))


def assessed(details: Details) -> tuple[float, object]:
    """Return the confidence, and its evidence, of the query that is surest of an entity."""
    return max(details.assessed, key=itemgetter(0))


def _neighbours(
    answers: Mapping[int, DetailsAnswer], name: str
) -> Iterator[tuple[Place, Supplement]]:
    for part, answer in answers.items():
        for each in getattr(answer, name):
            yield (part, each.position), each


def _is_declared(supplement: Supplement) -> bool:
    return all(step.declared for step in supplement.path)
