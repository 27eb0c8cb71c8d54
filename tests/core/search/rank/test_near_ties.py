"""How past calls move a ranking: what they may move, and what they may not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.search import TIE_SHARE, RankedList, rerank, rerank_by_usage
from tests.fakes import entity, tool

falling = st.lists(st.floats(-10, 10), max_size=12).map(lambda each: sorted(each, reverse=True))


def test_near_ties_swap_and_others_do_not() -> None:
    """Of a range of 1, 0.05 is near."""
    ids = ["a", "b", "c", "d"]
    liked = {"b": 1.15, "d": 1.15, "a": 0.85}

    assert [1, 0, 2, 3] == rerank(ids, [1.0, 0.96, 0.5, 0.0], liked)
    assert [0, 1, 2, 3] == rerank(ids, [1.0, 0.94, 0.5, 0.0], liked)


def test_equal_scores_are_ordered_by_use() -> None:
    """And stay as they were where use says nothing."""
    assert [1, 0, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {"b": 1.1})
    assert [0, 1, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {})
    assert [] == rerank([], [], {})


@given(falling, st.lists(st.floats(0.85, 1.15), min_size=12, max_size=12))
def test_nobody_passes_whom_it_is_not_near_to(scores: list[float], said: list[float]) -> None:
    """Whoever stands behind another although it ranked better is a near tie of it."""
    ids = [str(place) for place in range(len(scores))]

    order = rerank(ids, scores, dict(zip(ids, said, strict=False)))

    assert sorted(order) == list(range(len(scores)))
    near = TIE_SHARE * (scores[0] - scores[-1]) if scores else 0.0
    for at, place in enumerate(order):
        for later in order[at + 1 :]:
            assert later > place or scores[later] - scores[place] <= near


def test_what_passes_a_better_one_by_use_gets_its_score() -> None:
    """By hand, of a range of 1: 0.98 passes 1.0. Scores fall, also where lists are read by them."""
    scores = np.asarray([1.0, 0.98, 0.5, 0.0], np.float32)
    before = RankedList(positions=np.arange(4), scores=scores)
    entities = [entity(tool(f"tool_{place}")) for place in range(4)]

    after = rerank_by_usage(before, {"srv/tool_1": 1.15}, named=(), entities=entities, limit=3)

    assert [1, 0, 2, 3] == after.positions.tolist()
    assert [1.0, 1.0, 0.5, 0.0] == after.scores.tolist()
