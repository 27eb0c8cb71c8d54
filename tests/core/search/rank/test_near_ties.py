"""Reranking by past calls moves only near ties."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.search import TIE_SHARE, RankedList, rerank, rerank_by_usage
from tests.fakes import entity, tool

descending = st.lists(st.floats(-10, 10), max_size=12).map(
    lambda scores: sorted(scores, reverse=True)
)


def test_rerank_swaps_only_near_ties() -> None:
    """The scores range from 0 to 1, so entities that differ by 0.05 are near ties."""
    ids = ["a", "b", "c", "d"]
    liked = {"b": 1.15, "d": 1.15, "a": 0.85}

    assert [1, 0, 2, 3] == rerank(ids, [1.0, 0.96, 0.5, 0.0], liked)
    assert [0, 1, 2, 3] == rerank(ids, [1.0, 0.94, 0.5, 0.0], liked)


def test_rerank_orders_equal_scores_by_past_calls() -> None:
    assert [1, 0, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {"b": 1.1})
    assert [0, 1, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {})
    assert [] == rerank([], [], {})


@given(descending, st.lists(st.floats(0.85, 1.15), min_size=12, max_size=12))
def test_rerank_moves_an_entity_only_before_its_near_ties(
    scores: list[float], factors: list[float]
) -> None:
    ids = [str(place) for place in range(len(scores))]

    order = rerank(ids, scores, dict(zip(ids, factors, strict=False)))

    assert sorted(order) == list(range(len(scores)))
    near = TIE_SHARE * (scores[0] - scores[-1]) if scores else 0.0
    for index, place in enumerate(order):
        for later in order[index + 1 :]:
            assert later > place or scores[later] - scores[place] <= near


def test_entity_that_moves_up_gets_the_score_of_the_one_it_passes() -> None:
    """Scores must stay in descending order. They range from 0 to 1, so 0.98 is a near tie of
    1.0.
    """
    scores = np.asarray([1.0, 0.98, 0.5, 0.0], np.float32)
    before = RankedList(positions=np.arange(4), scores=scores)
    entities = [entity(tool(f"tool_{place}")) for place in range(4)]

    after = rerank_by_usage(before, {"srv/tool_1": 1.15}, named=(), entities=entities, limit=3)

    assert [1, 0, 2, 3] == after.positions.tolist()
    assert [1.0, 1.0, 0.5, 0.0] == after.scores.tolist()
