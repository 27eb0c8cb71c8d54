"""Ranking in the strategy `auto`: sum of signals, interleaving of queries, and exact names. Values
are computed by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.index import Candidates, VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector, unit_rows
from gateway.search import Pool, Query, RankedList, all_signals, fuse, interleave, pin_exact_names
from tests.core.search.conftest import lexical_scores, snapshot_of
from tests.fakes import entity, tool

positions = st.lists(st.integers(0, 12), max_size=10, unique=True)
evidence = st.lists(st.tuples(st.floats(-1, 1, width=16), st.floats(0, 9, width=16)), max_size=30)


def ranked_list(order: Sequence[int]) -> RankedList:
    scores = np.linspace(2, 1, len(order), dtype=np.float32)
    return RankedList(positions=np.asarray(order, np.intp), scores=scores)


def candidates(cosines: Sequence[float], *, pool: int = 200) -> Candidates:
    rows = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines] or [[1, 0]])
    rows = rows[: len(cosines)]
    return VectorIndex.of(rows).search(
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(len(cosines), bool),
        count=pool,
    )


def pool_of(candidates: Candidates, words: Sequence[float], *, mask: Sequence[bool] = ()) -> Pool:
    """Return all entities of a catalog with one server as candidates, with *words* as BM25F
    scores.
    """
    size = len(words)
    return Pool(
        snapshot=snapshot_of([entity(tool(f"tool_{number:02}")) for number in range(size)]),
        query=Query(text=""),
        candidates=candidates,
        mask=np.asarray(mask or [True] * size, bool),
        words=lexical_scores(words, coverage=[0.0] * size),
    )


def fuse_scores(
    candidates: Candidates, words: Sequence[float], *, mask: Sequence[bool] = ()
) -> RankedList:
    signals = all_signals(SearchOptions(lexical_weight=0.4))
    return fuse(pool_of(candidates, words, mask=mask), signals)[0]


class FixedSignal:
    """A signal with fixed scores that records the sum of the signals before it."""

    def __init__(self, name: str, order: int, scores: Sequence[float], weight: float = 1) -> None:
        self.name, self.order, self.weight = name, order, weight
        self.scores = np.asarray(scores)
        self.seen: list[float] = []

    def score(self, pool: Pool) -> Vector:
        self.seen = pool.scores.tolist()
        return self.scores[pool.positions]


def test_score_is_the_weighted_sum_of_deviations_of_signals() -> None:
    """z(cosine) + 0.4 z(BM25F), where z measures deviations from the mean of all eligible
    entities.
    """
    nearest = candidates([0.9, 0.6, 0.3, 0.1])
    words = np.asarray([0, 1, 5, 0], np.float32)

    result = fuse_scores(nearest, words.tolist())

    cosines = nearest.strengths[np.argsort(nearest.pool)]
    z = (cosines - cosines.mean()) / cosines.std()
    by_hand = z + 0.4 * (words - words.mean()) / words.std()
    assert np.argsort(-by_hand).tolist() == result.positions.tolist()
    np.testing.assert_allclose(result.scores, np.sort(by_hand)[::-1], rtol=1e-5)


def test_signal_can_read_the_sum_of_the_signals_before_it() -> None:
    """Signals are added by `order`, then by name. Their scores may be of any number type."""
    last = FixedSignal("last", 2, [0, 1, 0], weight=0.5)
    second, first = FixedSignal("b", 1, [3, 0, 0]), FixedSignal("a", 1, [0, 4, 1])
    signals = all_signals(SearchOptions(), [last, second, first])[:3]

    ranked_list, terms = fuse(pool_of(candidates([0.9, 0.5, 0.1]), [0, 0, 0]), signals)

    assert ["a", "b", "last"] == [*terms]
    assert ([0, 0, 0], [0, 4, 1], [3, 4, 1]) == (first.seen, second.seen, last.seen)
    assert ([1, 0, 2], [4.5, 3, 1]) == (ranked_list.positions.tolist(), ranked_list.scores.tolist())
    assert [3, 4.5, 1] == np.sum([*terms.values()], axis=0).tolist()


@pytest.mark.parametrize("names", [("mine", "mine"), ("words",)])
def test_two_signals_with_the_same_name_are_rejected(names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=f"two signals of ranking have the name '{names[0]}'"):
        all_signals(SearchOptions(), [FixedSignal(name, 1, []) for name in names])


def test_ineligible_entities_do_not_change_the_mean_of_a_signal() -> None:
    nearest = candidates([0.9, 0.6, 0.3])

    with_other = fuse_scores(nearest, [1, 2, 9], mask=[True, True, False])

    # The BM25F scores of the eligible entities are 1 and 2: mean 1.5, deviation 0.5.
    by_hand = nearest.deviations(nearest.strengths)
    by_hand += 0.4 * np.asarray([-1, 1, 15], np.float32)[nearest.pool]
    np.testing.assert_allclose(np.sort(by_hand)[::-1], with_other.scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("cosines", "words"), [([0.9, 0.5], [0, 0]), ([0.5, 0.5], [1, 0]), ([], [])]
)
def test_candidates_with_equal_evidence_keep_their_order(
    cosines: list[float], words: list[float]
) -> None:
    assert list(range(len(cosines))) == fuse_scores(candidates(cosines), words).positions.tolist()


@given(evidence)
def test_fuse_ranks_only_the_candidates(rows: list[tuple[float, float]]) -> None:
    nearest = candidates([cosine for cosine, _ in rows], pool=7)

    result = fuse_scores(nearest, [words for _, words in rows])

    assert set(nearest.pool.tolist()) == set(result.positions.tolist())
    assert sorted(result.scores.tolist(), reverse=True) == result.scores.tolist()


@given(st.lists(positions, max_size=5), st.integers(0, 20))
def test_interleave_takes_entities_of_all_lists_in_turn_without_duplicates(
    lists: list[list[int]], limit: int
) -> None:
    """If a list is short, the other lists get its share of the limit."""
    chosen = interleave([ranked_list(order) for order in lists], limit=limit)

    listed = [position for _, position, _ in chosen]
    all_positions = {position for order in lists for position in order}
    assert len(listed) == len(set(listed)) == min(limit, len(all_positions))
    assert all(position in lists[number] for number, position, _ in chosen)


def test_interleave_takes_the_best_entity_of_each_list_first() -> None:
    lists = [ranked_list([1, 2]), ranked_list([3, 1, 4])]

    chosen = [(number, position) for number, position, _ in interleave(lists, limit=4)]
    assert [(0, 1), (1, 3), (0, 2), (1, 4)] == chosen


@given(positions, st.lists(st.integers(0, 12), max_size=4, unique=True))
def test_pin_exact_names_puts_them_first_and_keeps_the_order_of_others(
    order: list[int], named: list[int]
) -> None:
    """Entities with an exact name are added even if the ranking does not contain them."""
    result = pin_exact_names(ranked_list(order), named)

    others = [position for position in order if position not in named]
    assert [*named, *others] == result.positions.tolist()
    assert all(result.scores[: len(named)] >= max(result.scores[len(named) :].tolist(), default=0))
