"""Gain of a new ranking: its mean over calls, and its bootstrap interval over tasks."""

from __future__ import annotations

import random

import pytest

from gateway.runtime.gains import MIN_TASKS, Gain, measure_gain


def test_gain_is_zero_without_calls() -> None:
    assert Gain() == measure_gain([]) == measure_gain([[], []])


def test_gain_is_the_mean_over_calls() -> None:
    """A task with many calls counts once for each of its calls."""
    gain = measure_gain([[0.5, 0.25, 0.0], [-0.25], []])

    assert (2, 4, 2, 1) == (gain.tasks, gain.calls, gain.higher, gain.lower)
    assert pytest.approx(0.125) == gain.mean
    assert gain.low <= gain.mean <= gain.high
    assert [-0.25, 0.25] == pytest.approx([gain.low, gain.high])


@pytest.mark.parametrize(
    ("tasks", "measured"),
    [
        ([[0.5]] * MIN_TASKS, True),
        ([[0.5]] * (MIN_TASKS - 1), False),
        ([[0.0]] * MIN_TASKS, False),
        ([[0.5]] * MIN_TASKS + [[-0.5]] * MIN_TASKS, False),
        ([[0.5]] * 3 * MIN_TASKS + [[-0.5]] * MIN_TASKS, True),
    ],
)
def test_gain_counts_as_measured_only_if_significant(
    tasks: list[list[float]], measured: bool
) -> None:
    """The interval of the gain must be above zero, and there must be at least 20 tasks."""
    assert measured == measure_gain(tasks).measured


def test_gain_treats_calls_of_a_task_as_dependent() -> None:
    """Forty calls in four tasks are four independent observations."""
    drawn = random.Random(3)
    tasks = [[sign * 0.3 + drawn.random() / 9 for _ in range(10)] for sign in (1, 1, 1, -1)]
    apart = [[call] for task in tasks for call in task]

    assert measure_gain(tasks).low < 0 < measure_gain(apart).low
    assert measure_gain(tasks) == measure_gain(tasks)
