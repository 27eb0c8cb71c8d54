"""What follows what, by counts; and when a history says nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.usage import MAX_FOLLOWERS, TransitionCounts, count_transitions, is_predictive

tasks = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), max_size=12)


def told(*sequences: str, min_count: int = 1) -> list[tuple[str, int, int, float]]:
    found = count_transitions([list(each) for each in sequences], min_count=min_count)
    return [(each.before + each.after, each.count, each.of, each.confidence) for each in found]


def test_pairs_are_counted_by_tasks_and_believed_by_discounted_share() -> None:
    """Behind a came b three times of four, and c once: three quarters are taken off each count,
    and two more sightings of others are assumed.
    """
    assert [
        ("ab", 3, 4, round(2.25 / 6, 6)),
        ("ac", 1, 4, round(0.25 / 6, 6)),
        ("bc", 1, 1, round(0.25 / 3, 6)),
    ] == told("ab", "ab", "abc", "ac")


def test_a_task_says_a_pair_once_and_nothing_follows_itself() -> None:
    """A loop of one task is one task."""
    assert [("ab", 1, 1, round(0.25 / 3, 6)), ("ba", 1, 1, round(0.25 / 3, 6))] == told(
        "aaabababab"
    )


def test_what_was_seen_once_says_nothing_yet() -> None:
    """By default a pair needs two tasks."""
    assert ["ab"] == [pair for pair, *_ in told("ab", "ab", "ac", min_count=2)]


def test_one_tool_has_only_so_many_next_steps() -> None:
    """The surest; ties by name."""
    letters = "bcdefghijklmn"
    found = told(*(f"a{letter}" for letter in letters))

    assert [f"a{letter}" for letter in letters[:MAX_FOLLOWERS]] == [pair for pair, *_ in found]


def test_an_old_task_counts_less() -> None:
    """Two tasks of half a weight: their count is whole, their share is not."""
    (found,) = TransitionCounts.of(["ab", "ab"], [0.5, 0.5]).followers("a")

    assert (2, round((1 - 0.375) / 3, 6)) == (found.count, found.confidence)


def test_what_comes_behind_many_tools_is_known_for_it() -> None:
    """z comes behind three of four pairs; what the pairs of a leave open is what was taken off."""
    learned = TransitionCounts.of(["az", "bz", "cz", "ab", "az"]).learned_steps(before=["a", "x"])

    assert {"z": 0.75, "b": 0.25} == learned.often
    assert {"a": pytest.approx(1 - (1.25 + 0.25) / 5), "x": 1.0} == learned.open
    assert ["a"] == [*learned.edges]
    assert learned
    assert not TransitionCounts().learned_steps()


@given(tasks, tasks)
def test_what_is_removed_leaves_nothing_behind(
    kept: list[list[str]], gone: list[list[str]]
) -> None:
    """TransitionCounts are those of the tasks that are left."""
    habits = TransitionCounts.of([*kept, *gone])
    for task in gone:
        habits.remove(task)

    left = TransitionCounts.of(kept)
    assert left.popularity() == habits.popularity()
    for before in "abcde":
        assert left.followers(before) == habits.followers(before)
        assert left.open_share(before) == pytest.approx(habits.open_share(before))


@given(tasks)
def test_the_order_of_the_tasks_says_nothing(sequences: list[list[str]]) -> None:
    """Only the order within a task does; confidence stays a share."""
    found = count_transitions(sequences)

    assert found == count_transitions(sequences[::-1])
    assert is_predictive(sequences) == is_predictive(sequences[::-1])
    assert all(0 < each.confidence < 1 and each.before != each.after for each in found)


def test_a_history_is_believed_if_it_foretells_itself() -> None:
    """Forty tasks of four ways to work; the same calls, shuffled, are chance; few say nothing."""
    ways = [[f"{way}{step}" for step in range(5)] for way in "abcdefgh"]
    history = ways * 5
    calls = [call for task in history for call in task]
    random.Random(7).shuffle(calls)
    shuffled = [calls[at : at + 5] for at in range(0, len(calls), 5)]

    assert is_predictive(history)
    assert not is_predictive(shuffled)
    assert not is_predictive(ways)
    assert not is_predictive(ways[:1] * 2)
    assert not is_predictive([])
