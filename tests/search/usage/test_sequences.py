"""What follows what, by counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.search.usage.sequences import MAX_EACH, followed

tasks = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), max_size=12)


def told(*sequences: str, min_count: int = 1) -> list[tuple[str, int, float]]:
    found = followed([list(each) for each in sequences], min_count=min_count)
    return [(each.before + each.after, each.count, each.confidence) for each in found]


def test_pairs_are_counted_by_tasks_and_believed_by_share() -> None:
    """a was followed four times, three times by b: 3 / (4 + 2)."""
    assert [
        ("ab", 3, 0.5),
        ("ac", 1, round(1 / 6, 6)),
        ("bc", 1, round(1 / 3, 6)),
    ] == told("ab", "ab", "abc", "ac")


def test_a_task_says_a_pair_once_and_nothing_follows_itself() -> None:
    """A loop of one task is one task."""
    assert [("ab", 1, round(1 / 3, 6)), ("ba", 1, round(1 / 3, 6))] == told("aaabababab")


def test_what_was_seen_once_says_nothing_yet() -> None:
    """By default a pair needs two tasks."""
    assert [("ab", 2, 0.4)] == [
        (each.before + each.after, each.count, each.confidence)
        for each in followed([["a", "b"], ["a", "b"], ["a", "c"]])
    ]


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
    assert all(0 < each.confidence < 1 and each.before != each.after for each in found)
