"""What follows what, by counts; and when a history says nothing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from gateway.search.usage.sequences import MAX_EACH, followed, trusted

tasks = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), max_size=12)


def told(*sequences: str, min_count: int = 1) -> list[tuple[str, int, float]]:
    found = followed([list(each) for each in sequences], min_count=min_count)
    return [(each.before + each.after, each.count, each.confidence) for each in found]


def test_pairs_are_counted_by_tasks_and_believed_by_share() -> None:
    """a was followed by b three times of four, right behind it; anywhere behind it b three times
    and c twice, of five. Each share has two more in its denominator.
    """
    assert [
        ("ab", 3, round((3 / 6 + 3 / 7) / 2, 6)),
        ("ac", 2, round((1 / 6 + 2 / 7) / 2, 6)),
        ("bc", 1, round((1 / 3 + 1 / 3) / 2, 6)),
    ] == told("ab", "ab", "abc", "ac")


def test_a_task_says_a_pair_once_and_nothing_follows_itself() -> None:
    """A loop of one task is one task; anywhere behind it counts where it stood first."""
    assert [("ab", 1, round(1 / 3, 6)), ("ba", 1, round(1 / 6, 6))] == told("aaabababab")


def test_what_was_seen_once_says_nothing_yet() -> None:
    """By default a pair needs two tasks."""
    assert ["ab"] == [pair for pair, _, _ in told("ab", "ab", "ac", min_count=2)]


def test_one_tool_has_only_so_many_next_steps() -> None:
    """The surest; ties by name."""
    letters = "bcdefghijklmn"
    found = told(*(f"a{letter}" for letter in letters))

    assert [f"a{letter}" for letter in letters[:MAX_EACH]] == [pair for pair, _, _ in found]


@given(tasks)
def test_the_order_of_the_tasks_says_nothing(sequences: list[list[str]]) -> None:
    """Only the order within a task does; confidence stays a share."""
    found = followed(sequences)

    assert found == followed(sequences[::-1])
    assert trusted(sequences) == trusted(sequences[::-1])
    assert all(0 < each.confidence < 1 and each.before != each.after for each in found)


def test_a_history_is_believed_if_it_foretells_itself() -> None:
    """Forty tasks of four ways to work; the same calls, shuffled, are chance; few say nothing."""
    ways = [[f"{way}{step}" for step in range(5)] for way in "abcdefgh"]
    history = ways * 5
    calls = [call for task in history for call in task]
    random.Random(7).shuffle(calls)  # noqa: S311  (nobody guards anything with it)
    shuffled = [calls[at : at + 5] for at in range(0, len(calls), 5)]

    assert trusted(history)
    assert not trusted(shuffled)
    assert not trusted(ways)
    assert not trusted(ways[:1] * 2)
    assert not trusted([])
