"""Transition counts, and recognition of random histories."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.usage import MAX_FOLLOWERS, TransitionCounts, count_transitions, is_predictive

tasks = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), max_size=12)


def transitions_of(*sequences: str, min_count: int = 1) -> list[tuple[str, int, int, float]]:
    transitions = count_transitions([list(sequence) for sequence in sequences], min_count=min_count)
    return [
        (
            transition.before + transition.after,
            transition.count,
            transition.of,
            transition.confidence,
        )
        for transition in transitions
    ]


def test_transition_counts_tasks_and_confidence_is_discounted() -> None:
    """b follows a in three of four tasks, c in one. 0.75 is subtracted from each count and two
    other followers are assumed.
    """
    assert [
        ("ab", 3, 4, round(2.25 / 6, 6)),
        ("ac", 1, 4, round(0.25 / 6, 6)),
        ("bc", 1, 1, round(0.25 / 3, 6)),
    ] == transitions_of("ab", "ab", "abc", "ac")


def test_task_counts_a_pair_once_and_no_tool_follows_itself() -> None:
    assert [("ab", 1, 1, round(0.25 / 3, 6)), ("ba", 1, 1, round(0.25 / 3, 6))] == transitions_of(
        "aaabababab"
    )


def test_pair_of_tools_in_a_single_task_is_not_a_transition() -> None:
    assert ["ab"] == [pair for pair, *_ in transitions_of("ab", "ab", "ac", min_count=2)]


def test_tool_has_at_most_the_maximum_number_of_followers() -> None:
    letters = "bcdefghijklmn"
    pairs = transitions_of(*(f"a{letter}" for letter in letters))

    assert [f"a{letter}" for letter in letters[:MAX_FOLLOWERS]] == [pair for pair, *_ in pairs]


def test_older_task_has_less_weight() -> None:
    """The number of tasks does not change, only their share."""
    (transition,) = TransitionCounts.of(["ab", "ab"], [0.5, 0.5]).followers("a")

    assert (2, round((1 - 0.375) / 3, 6)) == (transition.count, transition.confidence)


def test_popularity_is_the_share_of_pairs_that_a_tool_follows() -> None:
    """z follows in three of four pairs. The open share of a is the discounted part."""
    learned = TransitionCounts.of(["az", "bz", "cz", "ab", "az"]).learned_steps(before=["a", "x"])

    assert {"z": 0.75, "b": 0.25} == learned.often
    assert {"a": pytest.approx(1 - (1.25 + 0.25) / 5), "x": 1.0} == learned.open
    assert ["a"] == [*learned.edges]
    assert learned
    assert not TransitionCounts().learned_steps()


@given(tasks, tasks)
def test_removed_tasks_do_not_affect_the_counts(
    retained: list[list[str]], removed: list[list[str]]
) -> None:
    counter = TransitionCounts.of([*retained, *removed])
    for task in removed:
        counter.remove(task)

    remaining = TransitionCounts.of(retained)
    assert remaining.popularity() == counter.popularity()
    for before in "abcde":
        assert remaining.followers(before) == counter.followers(before)
        assert remaining.open_share(before) == pytest.approx(counter.open_share(before))


@given(tasks)
def test_order_of_tasks_does_not_matter(sequences: list[list[str]]) -> None:
    transitions = count_transitions(sequences)

    assert transitions == count_transitions(sequences[::-1])
    assert is_predictive(sequences) == is_predictive(sequences[::-1])
    assert all(
        0 < transition.confidence < 1 and transition.before != transition.after
        for transition in transitions
    )


def test_repeating_history_is_predictive_and_a_random_one_is_not() -> None:
    sequences_of_tools = [[f"{way}{step}" for step in range(5)] for way in "abcdefgh"]
    history = sequences_of_tools * 5
    calls = [call for task in history for call in task]
    random.Random(7).shuffle(calls)
    shuffled = [calls[start : start + 5] for start in range(0, len(calls), 5)]

    assert is_predictive(history)
    assert not is_predictive(shuffled)
    assert not is_predictive(sequences_of_tools)
    assert not is_predictive(sequences_of_tools[:1] * 2)
    assert not is_predictive([])
