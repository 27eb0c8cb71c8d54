"""Measured gains of signals on past tasks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.gateway import Gateway
from gateway.options import GraphOptions, Options, UsageOptions
from gateway.plugins.usage import MAX_CALLS, CallNote, Outcomes, Task, evaluate_usage
from gateway.testing import ManualClock
from tests.conftest import OpenGateway
from tests.fakes import tool

LETTERS = "abcdefghijklmnop"
SEQUENCES = [
    [f"{letter}{LETTERS[-1 - number]}" for letter in LETTERS[number : number + 4]]
    for number in range(8)
]
"""Eight sequences of four tools each. The tool names do not suggest the order."""
TOOLS = sorted({name for sequence in SEQUENCES for name in sequence})
HISTORY = [sequence for _ in range(6) for sequence in SEQUENCES]


def shuffled(tasks: Sequence[Sequence[str]]) -> list[list[str]]:
    calls = [call for task in tasks for call in task]
    random.Random(7).shuffle(calls)
    return [calls[start : start + 4] for start in range(0, len(calls), 4)]


def opened(open_gateway: OpenGateway, folder: Path, **usage: object) -> Gateway:
    rules = GraphOptions(phases=False, groups=False)
    options = Options(
        catalog_store_path=folder / "catalog.sqlite3",
        graph=rules,
        usage=UsageOptions(**usage),  # type: ignore[arg-type]  # as they came
    )
    clock = ManualClock()
    return open_gateway([tool(name) for name in TOOLS], options=options, clock=clock)


def tasks_of(tasks: Sequence[Sequence[str]]) -> list[Task]:
    return [Task(tools=tuple(f"shelf/{name}" for name in task)) for task in tasks]


async def test_learned_steps_gain_if_the_order_of_calls_repeats_and_not_if_it_is_random(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    snapshot = await opened(open_gateway, tmp_path).snapshot()

    real = evaluate_usage(snapshot, tasks_of(HISTORY), {}).learn
    chance = evaluate_usage(snapshot, tasks_of(shuffled(HISTORY)), {}).learn

    assert (len(HISTORY), 3 * len(HISTORY)) == (real.tasks, real.calls)
    assert real.measured
    assert real.mean > 0.5
    assert real.lower == 0
    assert not chance.measured


async def test_outcomes_gain_if_the_next_call_avoids_failing_tools(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Of two equal tools, the successful one is called next."""
    snapshot = await opened(open_gateway, tmp_path).snapshot()
    good, bad = TOOLS[9], TOOLS[1]
    tasks = tasks_of([[TOOLS[0], good]] * 30)
    outcomes = {f"shelf/{good}": Outcomes(succeeded=30.0), f"shelf/{bad}": Outcomes(failed=30.0)}

    assert evaluate_usage(snapshot, tasks, outcomes).rerank.measured
    assert 0.0 == evaluate_usage(snapshot, tasks, {}).rerank.mean


async def test_evaluation_skips_missing_tools_and_uses_the_newest_calls(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    snapshot = await opened(open_gateway, tmp_path).snapshot()

    few = evaluate_usage(snapshot, [*tasks_of([["gone", TOOLS[0]]]), Task(tools=("x/y",))], {})
    many = evaluate_usage(snapshot, tasks_of([TOOLS[:2]] * (MAX_CALLS + 9)), {})

    assert 0 == few.learn.calls
    assert MAX_CALLS == many.learn.calls


@pytest.mark.parametrize(("helpful", "on"), [(True, True), (False, False)])
async def test_option_auto_enables_only_signals_with_a_measured_gain(
    open_gateway: OpenGateway, tmp_path: Path, helpful: bool, on: bool
) -> None:
    """The measurement runs after the first request, and the next reading uses it."""
    gateway = opened(open_gateway, tmp_path, learn="auto", rerank="auto", refresh_s=0.0)
    for number, task in enumerate(HISTORY if helpful else shuffled(HISTORY)):
        for name in task:
            gateway.usage.call_log.note(
                CallNote(tool=f"shelf/{name}", outcome="ok", task=str(number))
            )
    first, second, *_ = SEQUENCES[0]

    before = await gateway.next_steps([first])
    measured = await gateway.usage.measured_gains()
    after = await gateway.next_steps([first])

    assert not any(step.evidence.path for step in before)
    assert (on, False) == (measured.learn, measured.rerank)
    assert on == any(step.name == second and step.evidence.path for step in after[:1])
    assert await gateway.usage.measured_gains() == measured
