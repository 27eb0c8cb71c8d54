"""Surveys of the parts of a catalog -> rankings of the whole. Pure.

A *number* is that of an entity over all parts; see `number_of`. A *row* is its place among all that
a search looks at, in the order of names: ties break by name, as they do in one process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import NamedTuple

import numpy as np

from gateway.index.eligibility import Positions
from gateway.options import SearchOptions
from gateway.runtime.vectors import placed
from gateway.search.query import Query
from gateway.search.rank.fusion import Pool, PoolMoments, RankedList, pin_exact_names, rank_pool
from gateway.search.retrieve import window_of
from gateway.sharding.values import QueryChoice, Survey, SurveyAnswer

_PART_SIZE = 1 << 32
"""More entities, and more servers, than any part has."""


def number_of(part: int, position: int) -> int:
    """Return the number over all parts of the entity at *position* of a part."""
    return part * _PART_SIZE + position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The entities that a search looks at."""

    numbers: Positions
    """By row."""
    labels: Sequence[str]
    by_number: Mapping[int, int]

    @classmethod
    def of(cls, labels: Mapping[int, str]) -> Rows:
        """Order the entities that *labels* names by number."""
        numbers = sorted(labels, key=labels.__getitem__)
        return cls(
            numbers=np.array(numbers, np.intp),
            labels=[labels[number] for number in numbers],
            by_number={number: row for row, number in enumerate(numbers)},
        )

    def kinds_at(self, rows: Positions) -> list[str]:
        """Return the kinds of the entities at *rows*."""
        return [self.labels[row].rpartition("\t")[2] for row in rows.tolist()]

    def at(self, numbers: Iterable[int]) -> Positions:
        """Return the rows of entities."""
        return np.array([self.by_number[number] for number in numbers], np.intp)

    def within(self, part: int, rows: Sequence[int] | Positions) -> Positions:
        """Return the positions of those of *rows* that are of a part, in their order."""
        parts, positions = np.divmod(self.numbers[np.asarray(rows, np.intp)], _PART_SIZE)
        found: Positions = positions[parts == part]
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedQuery:
    """One query, ranked over all parts; positions are rows."""

    query: Query
    ranked: RankedList
    """With exact names first; copies were not moved yet."""
    named: Sequence[int]
    window: frozenset[int]
    choice: QueryChoice


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedSearch:
    """All queries of a search, ranked over all parts."""

    rows: Rows
    queries: Sequence[MergedQuery]

    @property
    def window(self) -> list[int]:
        """The rows that supplements may come from."""
        return sorted(frozenset[int]().union(*(query.window for query in self.queries)))

    def choices(self, part: int) -> tuple[QueryChoice, ...]:
        """Return what a part needs to know of each query."""
        choices = (query.choice for query in self.queries)
        return tuple(replace(each, listed=self.rows.within(part, each.listed)) for each in choices)


def merge(
    queries: Sequence[Query],
    answers: Mapping[int, SurveyAnswer],
    *,
    limit: int,
    options: SearchOptions,
    by_words: bool,
) -> MergedSearch:
    """Rank *queries* over all parts as one process ranks them.

    Args:
        queries: In all their forms.
        answers: What each part has for them, by its number.
        limit: How many matches are wanted.
        options: Sizes and weights.
        by_words: Whether words rank beside the vectors.
    """
    labels: dict[int, str] = {}
    found: list[_QuerySurveys] = []
    for at, query in enumerate(queries):
        surveys = {part: answer.surveys[at] for part, answer in answers.items()}
        each = _QuerySurveys(query, surveys, _union(surveys, options.pool(limit)), _called(surveys))
        for number in chain(each.pool.positions.tolist(), *each.called):
            part, position = divmod(number, _PART_SIZE)
            labels[number] = surveys[part].labels[position]
        found.append(each)
    rows = Rows.of(labels)
    ranked = [_rank(each, rows, limit, options, by_words=by_words) for each in found]
    return MergedSearch(rows=rows, queries=ranked)


class _QuerySurveys(NamedTuple):
    """What all parts have for one query; positions are numbers."""

    query: Query
    surveys: Mapping[int, Survey]
    pool: Pool
    called: Sequence[Sequence[int]]


def _union(surveys: Mapping[int, Survey], count: int) -> Pool:
    """Return the candidates that may be among the best *count* of all parts."""
    pools = []
    for part, survey in surveys.items():
        pool, first = survey.pool, number_of(part, 0)
        pools.append(replace(pool, positions=pool.positions + first, groups=pool.groups + first))
    columns = [_columns(pool) for pool in pools]
    whole = Pool(**{name: np.concatenate([each[name] for each in columns]) for name in columns[0]})
    if len(whole.positions) <= count:
        return whole
    least = placed(whole.strengths, len(whole.strengths) - count)
    return _at(whole, np.flatnonzero(whole.strengths >= least))


def _columns(pool: Pool) -> dict[str, np.ndarray]:
    columns = {each.name: getattr(pool, each.name) for each in fields(Pool)}
    return {name: column for name, column in columns.items() if column is not None}


def _at(pool: Pool, places: Positions) -> Pool:
    return replace(pool, **{name: column[places] for name, column in _columns(pool).items()})


def _called(surveys: Mapping[int, Survey]) -> list[list[int]]:
    """Return what each name in the query calls; an id calls nothing else."""
    found = []
    for names in zip(*(survey.named for survey in surveys.values()), strict=True):
        by_id = any(is_id for is_id, _ in names)
        called = (
            number_of(part, at)
            for part, (is_id, positions) in zip(surveys, names, strict=True)
            for at in positions
            if is_id or not by_id
        )
        found.append(list(called))
    return found


def _rank(
    found: _QuerySurveys, rows: Rows, limit: int, options: SearchOptions, *, by_words: bool
) -> MergedQuery:
    query, surveys = found.query, found.surveys.values()
    moments = reduce(add, (survey.moments for survey in surveys), PoolMoments())
    eligible = sum(survey.eligible for survey in surveys)
    positions = rows.at(found.pool.positions.tolist())
    best = np.lexsort((positions, -found.pool.strengths))[: options.pool(limit)]
    pool = _at(replace(found.pool, positions=positions), best)
    mean = moments.vectors.strengths.mean if query.is_embedded else 0.0
    window = window_of(pool.positions, pool.strengths, limit, options, eligible=eligible, mean=mean)
    ranked = RankedList(positions=pool.positions, scores=pool.strengths)
    if by_words and query.is_embedded:
        weight, count = options.lexical_weight, query.clause_count
        ranked = rank_pool(pool, moments, weight=weight, clause_count=count)
    listed = ranked.positions
    if query.is_embedded:
        listed = np.array(sorted(window.union(listed[: options.window(limit)].tolist())), np.intp)
    named = list(
        dict.fromkeys(row for each in found.called for row in sorted(rows.at(each).tolist()))
    )
    coverages = [survey.coverages for survey in surveys if survey.coverages]
    most = [max(form) for form in zip(*coverages, strict=True)] or [0.0]
    return MergedQuery(
        query=query,
        ranked=pin_exact_names(ranked, named),
        named=named,
        window=window,
        choice=QueryChoice(
            moments=moments.vectors, eligible=eligible, form=most.index(max(most)), listed=listed
        ),
    )
