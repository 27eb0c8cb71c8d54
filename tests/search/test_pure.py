"""The arithmetic of the search: fusion, interleaving, confidence, evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search import confidence, fusion
from gateway.search.asked import Asked
from gateway.search.confidence import Signals
from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates, candidates
from gateway.search.fusion import Order, interleave, named_first

orders = st.lists(st.lists(st.integers(0, 12), max_size=10, unique=True), max_size=5)


def order(positions: list[int]) -> Order:
    return Order(
        positions=np.asarray(positions, np.intp),
        scores=np.linspace(2, 1, len(positions), dtype=np.float32),
    )


def found(cosines: list[float], *, pool: int = 200) -> Candidates:
    rows = unit_rows([[value, (1 - value * value) ** 0.5] for value in cosines] or [[1, 0]])
    rows = rows[: len(cosines)]
    return candidates(
        VectorIndex.of(rows),
        VectorQuery(texts=unit_rows([[1, 0]]), clauses=rows[:0]),
        mask=np.ones(len(cosines), bool),
        limit=5,
        options=SearchOptions(pool_min=pool, pool_factor=0),
    )


def words(scores: list[float], coverage: list[float]) -> fusion.Lexical:
    return fusion.Lexical(
        scores=np.asarray(scores, np.float32),
        coverage=np.asarray(coverage, np.float32),
        names=np.zeros(len(scores), np.float32),
    )


def fused(cosines: list[float], lexical: list[float], coverage: list[float]) -> list[int]:
    result = fusion.fuse(
        found(cosines),
        words(lexical, coverage),
        mask=np.ones(len(cosines), bool),
        weight=0.8,
    )
    return [int(spot) for spot in result.positions]


# -- interleaving ----------------------------------------------------------------------------------


@given(orders, st.integers(0, 20))
def test_interleaving_takes_turns_and_nobody_twice(rankings: list[list[int]], limit: int) -> None:
    """Each query gets its quota; what one ranking lacks, the others fill."""
    pairs = interleave([order(each) for each in rankings], limit=limit)

    spots = [spot for _, spot in pairs]
    every = {spot for each in rankings for spot in each}
    assert len(spots) == len(set(spots)) == min(limit, len(every))
    assert all(spot in rankings[number] for number, spot in pairs)


@given(st.lists(st.integers(0, 12), max_size=10, unique=True), st.integers(0, 20))
def test_one_ranking_stays_as_it_is(ranking: list[int], limit: int) -> None:
    """A single query is not changed by the interleaving."""
    assert ranking[:limit] == [spot for _, spot in interleave([order(ranking)], limit=limit)]


def test_the_first_of_each_ranking_come_before_any_second() -> None:
    """In the order of the queries."""
    assert [(0, 1), (1, 3), (0, 2), (1, 4)] == interleave(
        [order([1, 2]), order([3, 1, 4])], limit=4
    )


# -- names -----------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 12), max_size=10, unique=True),
    st.lists(st.integers(0, 12), max_size=4, unique=True),
)
def test_what_is_named_comes_first_and_the_rest_keeps_its_order(
    ranking: list[int], named: list[int]
) -> None:
    """Also what the ranking did not hold."""
    result = named_first(order(ranking), named)

    assert named == result.positions.tolist()[: len(named)]
    assert [spot for spot in ranking if spot not in named] == (
        result.positions.tolist()[len(named) :]
    )
    assert all(result.scores[: len(named)] >= max(result.scores[len(named) :].tolist(), default=0))


# -- fusion ----------------------------------------------------------------------------------------


def test_words_decide_where_vectors_cannot_tell_apart() -> None:
    """Each kind of evidence in its own deviations: the one that tells decides."""
    assert [2, 0, 1] == fused([0.5, 0.5, 0.499, 0.1], [0, 0, 5, 0], [0, 0, 1, 0])[:3]


def test_words_that_explain_nothing_of_the_query_do_not_move_it() -> None:
    """A query in another language than the catalog's is ranked by vectors alone."""
    cosines = [0.9, 0.6, 0.3, 0.1]

    assert [0, 1, 2, 3] == fused(cosines, [0, 0, 0, 5], [0, 0, 0, 0.001])


@pytest.mark.parametrize(
    ("cosines", "lexical"), [([0.9, 0.5], [0, 0]), ([0.5, 0.5], [1, 0]), ([], [])]
)
def test_without_a_spread_vectors_rank_alone(cosines: list[float], lexical: list[float]) -> None:
    """Evidence that says the same of everything says nothing."""
    assert list(range(len(cosines))) == fused(cosines, lexical, [1.0] * len(cosines))


@given(st.lists(st.tuples(st.floats(-1, 1, width=16), st.floats(0, 9, width=16)), max_size=30))
def test_fusion_reorders_the_pool_and_nothing_else(evidence: list[tuple[float, float]]) -> None:
    """Vectors choose the candidates."""
    cosines = [cosine for cosine, _ in evidence]
    chosen = found(cosines, pool=7)
    result = fusion.fuse(
        chosen,
        words([said for _, said in evidence], [1.0] * len(cosines)),
        mask=np.ones(len(cosines), bool),
        weight=0.8,
    )

    assert set(chosen.pool.tolist()) == set(result.positions.tolist())
    assert sorted(result.scores.tolist(), reverse=True) == result.scores.tolist()


SERVERS = Mates.of(["small", "small", "big", "big", "big", "big", "big", "big"])


def job(parts: int, doubts: Doubts | None = None) -> fusion.Order:
    """Rank a small server's two tools and a big one's six: the big one's first is the nearest."""
    cosines = [0.5, 0.44, 0.56, 0.1, 0.1, 0.1, 0.1, 0.1]
    return fusion.fuse(
        found(cosines),
        words([0.0] * 8, [0.0] * 8),
        mask=np.ones(8, bool),
        weight=0.8,
        mates=SERVERS,
        doubts=doubts,
        parts=parts,
    )


def test_a_job_of_many_steps_is_done_by_few_small_servers() -> None:
    """A single near tool of a large server belongs to another job; the order within one stays."""
    assert 2 == job(0).positions[0]
    assert [0, 1, 2] == job(10).positions[:3].tolist()


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_longer_the_job_the_more_a_mate_says(one: int, other: int) -> None:
    """From five parts to ten; a request of fewer is no job."""
    less, more = sorted((one, other))
    few, many = (dict(zip(*listed(job(parts)), strict=True)) for parts in (less, more))

    assert few[0] <= many[0]
    assert (few == many) == (min(max(less, 5), 10) == min(max(more, 5), 10))


def listed(order: fusion.Order) -> tuple[list[int], list[float]]:
    return order.positions.tolist(), order.scores.tolist()


def doubting(spot: int, *, lost: float, unheard: float) -> Doubts:
    """Doubt one of eight."""
    losses, shares = np.zeros((2, 8), np.float32)
    losses[spot], shares[spot] = lost, unheard
    return Doubts(lost=losses, unheard=shares)


def test_who_is_doubted_falls_back_and_nobody_else_does() -> None:
    """By its loss, of which up to half of the most may be chance."""
    before = dict(zip(*listed(job(0)), strict=True))
    after = dict(zip(*listed(job(0, doubting(1, lost=1.5, unheard=0))), strict=True))

    assert before[1] - 1.5 == pytest.approx(after[1])
    assert all(before[spot] == after[spot] for spot in (0, *range(2, 8)))
    assert listed(job(0)) == listed(job(0, doubting(0, lost=0, unheard=0)))


def test_who_is_doubted_in_full_speaks_for_nobody() -> None:
    """What its mates gained by it they lose too, and strangers lose nothing."""
    for parts in (0, 10):
        before = dict(zip(*listed(job(parts)), strict=True))
        after = dict(zip(*listed(job(parts, doubting(0, lost=MAX_DOUBT, unheard=0))), strict=True))
        assert before[1] > after[1]
        assert all(before[spot] == after[spot] for spot in range(2, 8))


def test_for_who_is_not_heard_no_mate_speaks() -> None:
    """In a job too; it stands where its vector puts it."""
    for parts in (0, 10):
        before = dict(zip(*listed(job(parts)), strict=True))
        after = dict(zip(*listed(job(parts, doubting(1, lost=0, unheard=1))), strict=True))
        assert before[1] > after[1]
        assert all(before[spot] == after[spot] for spot in range(2, 8))


def spoken(
    cosines: list[float], said: list[float], doubts: Doubts | None = None, *, clauses: bool = False
) -> dict[int, float]:
    """Rank by vectors and words; give the scores by position."""
    lexical = words(said, said)
    if clauses:
        lexical = replace(lexical, clauses=np.zeros(len(said), np.float32))
    mask = np.ones(len(said), bool)
    order = fusion.fuse(found(cosines), lexical, mask=mask, weight=0.4, doubts=doubts)
    return dict(zip(*listed(order), strict=True))


def test_who_is_not_heard_gains_nothing_by_its_words() -> None:
    """And loses nothing more: what stands below the average for its words stays there."""
    cosines, said = [0.5, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], [0.0, 1, 0, 0, 0, 0, 0, 0]

    heard, half, none = (
        spoken(cosines, said, doubting(1, lost=0, unheard=share)) for share in (0, 0.5, 1)
    )

    assert heard == spoken(cosines, said)
    assert heard[1] > half[1] > none[1]
    assert half[1] == pytest.approx((heard[1] + none[1]) / 2, abs=1e-5)
    assert all(heard[spot] == none[spot] for spot in range(8) if spot != 1)
    assert spoken(cosines, said, doubting(0, lost=0, unheard=1))[0] == heard[0]


def test_words_count_less_the_farther_vectors_are_from_the_nearest() -> None:
    """Of a short request: each part of a long one is near to something else."""
    cosines, said = [0.8, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1], [0.0, 0, 1, 0, 0, 0, 0, 0]
    closer = [0.8, 0.5, 0.8, 0.1, 0.1, 0.1, 0.1, 0.1]

    short, long = spoken(cosines, said), spoken(cosines, said, clauses=True)

    assert short[2] < long[2]
    assert spoken(closer, said)[2] == pytest.approx(spoken(closer, said, clauses=True)[2])


# -- confidence ------------------------------------------------------------------------------------

shares = st.floats(0, 1)


away = st.none() | st.floats(-9, 9)


def signals(**known: float | None) -> Signals:
    told = {"coverage": 0.0, "unmatched": 0.0, "eligible": 100} | known
    return Signals(**told)  # type: ignore[arg-type]  # numbers by name


@given(shares, shares, st.integers(1, 10**7), away, away)
def test_confidence_is_a_share(
    coverage: float, unmatched: float, eligible: int, near: float | None, far: float | None
) -> None:
    """Comparable between queries and modes: 0 to 1."""
    known = Signals(
        coverage=coverage,
        unmatched=unmatched,
        eligible=eligible,
        standing=near,
        nearness=far,
    )

    assert 0 <= confidence.judge(known) <= 1


@pytest.mark.parametrize("vectors", [{}, {"standing": 3.0}, {"standing": 3.0, "nearness": 1.0}])
@given(low=shares, high=shares)
def test_more_words_are_never_less_confidence(
    vectors: dict[str, float], low: float, high: float
) -> None:
    """Whatever else is known."""
    low, high = min(low, high), max(low, high)

    less = confidence.judge(signals(coverage=low, **vectors))
    assert less <= confidence.judge(signals(coverage=high, **vectors))


@pytest.mark.parametrize("known", [{}, {"standing": 3.0}, {"standing": 3.0, "nearness": 1.0}])
@given(st.lists(st.tuples(shares, st.floats(-9, 9)), max_size=4), shares)
def test_matches_that_are_weighed_together_weigh_what_each_does(
    known: dict[str, float], pairs: list[tuple[float, float]], unread: float
) -> None:
    """To the last bit."""
    kind = [*known][-1:]
    query = signals(**known, unread=unread)
    alone = [
        signals(**{**known, **dict.fromkeys(kind, near)}, coverage=share, unread=unread)
        for share, near in pairs
    ]

    told = confidence.weigh_each(query, [share for share, _ in pairs], [near for _, near in pairs])
    assert told == [confidence.weigh(each) for each in alone]


def test_a_nearer_match_is_surer_and_one_of_many_is_not() -> None:
    """The best of ten thousand is near by chance."""
    near = confidence.judge(signals(standing=3.0, nearness=2.0))
    far = confidence.judge(signals(standing=3.0, nearness=1.0))
    among = confidence.judge(signals(standing=3.0, nearness=2.0, eligible=10_000))

    assert near > far
    assert near > among


def test_a_language_that_the_model_half_knows_is_no_sign_of_a_stranger() -> None:
    """Its cosines are small for what serves the request too."""
    read = confidence.judge(signals(standing=3.0, nearness=1.0))
    unread = confidence.judge(signals(standing=3.0, nearness=1.0, unread=0.8))

    assert unread > read


@given(shares, st.none() | st.floats(-2, 2))
def test_the_graph_raises_confidence_and_never_beyond_one(
    judged: float, agreement: float | None
) -> None:
    """Rule 4: its agreement takes a share of the remaining doubt away."""
    result = confidence.with_graph(judged, agreement)

    assert judged <= result <= 1
    assert agreement not in {None, 0} or result == judged


def test_standing_is_measured_from_the_catalog() -> None:
    """Of which a few entities say little, and equal ones nothing."""
    (few,) = confidence.standings([0.5], mean=0.2, spread=0.1, count=3)
    (many,) = confidence.standings([0.5], mean=0.2, spread=0.1, count=3000)

    assert 0 < few < many < 3
    assert [0] == confidence.standings([0.5], mean=0.5, spread=0, count=9)


# -- evidence --------------------------------------------------------------------------------------


def test_a_query_is_asked_in_all_its_forms() -> None:
    """Rules 6 and 7: both texts for vectors, the English one for the graph, each with context."""
    asked = Asked(query="лист", english="email", context="for Bob", clauses=("a b c",))

    assert ("лист. for Bob", "email. for Bob", "a b c") == asked.all_texts
    assert "email. for Bob" == asked.graph_text
    assert ("лист", "email") == asked.judged


def test_a_context_alone_is_what_is_judged() -> None:
    """There is nothing else."""
    asked = Asked(query="", english="", context="for Bob")

    assert (("for Bob",), ("for Bob",), "for Bob") == (asked.texts, asked.judged, asked.graph_text)


def test_vectors_are_told_apart_into_texts_and_clauses() -> None:
    """Clauses add to the strength, texts are the cosine."""
    rows = {"q": np.ones(2, np.float32), "c": np.zeros(2, np.float32)}
    with_clause = Asked(query="q", english="q", clauses=("c",)).question(rows)
    without = Asked(query="q", english="q").question(rows)

    assert [(1, 2), (1, 2)] == [each.shape for each in (with_clause.texts, with_clause.clauses)]
    assert [(1, 2), (0, 2)] == [each.shape for each in (without.texts, without.clauses)]
