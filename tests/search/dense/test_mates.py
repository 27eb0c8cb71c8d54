"""Tools of one server serve a request together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.search.dense.mates import Mates


@pytest.mark.parametrize("servers", [[], ["one"], ["one", "one", "one"]])
def test_one_server_says_nothing(servers: list[str]) -> None:
    """Where all come from one place, nobody is told apart by it."""
    assert Mates.of(servers) is None


def test_the_rarer_the_server_the_more_a_mate_says() -> None:
    """A tool alone on its server has a weight and nobody to speak for it."""
    mates = Mates.of(["big"] * 6 + ["small"] * 2 + ["alone"])
    assert mates is not None

    support = mates.support(np.arange(9), np.full(9, 2.0, dtype=np.float32))

    assert 0 < support[0] < support[6] < 2
    assert 0 == support[8]
    assert 1 == pytest.approx(mates.weights[8])


def test_nobody_speaks_for_itself_or_against_another() -> None:
    """The best of a server is helped by its second; a bad mate costs nothing."""
    mates = Mates.of(["a", "a", "b", "b"])
    assert mates is not None
    scores = np.asarray([3.0, 1.0, -1.0, -2.0], dtype=np.float32)

    support = mates.support(np.arange(4), scores)

    assert [0.5, 1.5, 0.0, 0.0] == pytest.approx(support.tolist())


def test_the_head_of_a_server_is_the_same_for_all_of_it() -> None:
    """A tool alone leads itself, and who fits worse than the average leads nobody."""
    mates = Mates.of(["a", "b", "b", "c"])
    assert mates is not None
    spots = np.array([3, 2, 1, 0])

    heads = mates.heads(spots, np.asarray([-1.0, 0.5, 2.0, 1.0], dtype=np.float32))

    assert [0, 2, 2, 1] == heads.tolist()


def test_an_empty_pool_has_no_support() -> None:
    """Filters may leave nobody."""
    mates = Mates.of(["a", "b"])
    assert mates is not None
    assert 0 == len(mates.support(np.zeros(0, np.intp), np.zeros(0, np.float32)))
    assert 0 == len(mates.heads(np.zeros(0, np.intp), np.zeros(0, np.float32)))


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.floats(-4, 4, width=32)), min_size=2, max_size=30
    )
)
def test_support_is_what_a_loop_says(tools: list[tuple[str, float]]) -> None:
    """Whoever stands in the pool, and in whatever order."""
    servers = [server for server, _ in tools]
    mates = Mates.of(servers)
    if mates is None:
        return
    spots = np.arange(len(tools))[::-1].copy()
    scores = np.asarray([tools[spot][1] for spot in spots], dtype=np.float32)

    support = mates.support(spots, scores)

    for at, spot in enumerate(spots):
        others = [
            scores[other]
            for other, place in enumerate(spots)
            if other != at and servers[place] == servers[spot]
        ]
        best = max([0.0, *others])
        assert best * mates.weights[spot] == pytest.approx(support[at], abs=1e-5)
