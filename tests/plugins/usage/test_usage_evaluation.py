"""What signals would have changed: the past, each task judged by the others."""

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
WAYS = [[f"{letter}{LETTERS[-1 - at]}" for letter in LETTERS[at : at + 4]] for at in range(8)]
"""Eight ways to work, of four tools each; by name alone nobody would guess the next."""
TOOLS = sorted({name for way in WAYS for name in way})
HISTORY = [way for _ in range(6) for way in WAYS]


def shuffled(tasks: Sequence[Sequence[str]]) -> list[list[str]]:
    calls = [call for task in tasks for call in task]
    random.Random(7).shuffle(calls)
    return [calls[at : at + 4] for at in range(0, len(calls), 4)]


def opened(open_gateway: OpenGateway, folder: Path, **usage: object) -> Gateway:
    rules = GraphOptions(phases=False, groups=False)
    options = Options(
        catalog_store_path=folder / "catalog.sqlite3",
        graph=rules,
        usage=UsageOptions(**usage),  # type: ignore[arg-type]  # as they came
    )
    clock = ManualClock()
    return open_gateway([tool(name) for name in TOOLS], options=options, clock=clock)


def told(tasks: Sequence[Sequence[str]]) -> list[Task]:
    return [Task(tools=tuple(f"shelf/{name}" for name in task)) for task in tasks]


async def test_an_order_that_repeats_gains_and_chance_does_not(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Three calls of each task come after another."""
    snapshot = await opened(open_gateway, tmp_path).snapshot()

    real = evaluate_usage(snapshot, told(HISTORY), {}).learn
    chance = evaluate_usage(snapshot, told(shuffled(HISTORY)), {}).learn

    assert (len(HISTORY), 3 * len(HISTORY)) == (real.tasks, real.calls)
    assert real.measured
    assert real.mean > 0.5
    assert real.lower == 0
    assert not chance.measured


async def test_outcomes_gain_where_the_failing_tools_are_not_called(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """Of equal tools the one that works is called next: it stood behind one that fails."""
    snapshot = await opened(open_gateway, tmp_path).snapshot()
    good, bad = TOOLS[9], TOOLS[1]
    tasks = told([[TOOLS[0], good]] * 30)
    outcomes = {f"shelf/{good}": Outcomes(succeeded=30.0), f"shelf/{bad}": Outcomes(failed=30.0)}

    assert evaluate_usage(snapshot, tasks, outcomes).rerank.measured
    assert 0.0 == evaluate_usage(snapshot, tasks, {}).rerank.mean


async def test_tools_that_are_gone_are_passed_over_and_the_newest_tasks_are_judged(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """So many calls at most."""
    snapshot = await opened(open_gateway, tmp_path).snapshot()

    few = evaluate_usage(snapshot, [*told([["gone", TOOLS[0]]]), Task(tools=("x/y",))], {})
    many = evaluate_usage(snapshot, told([TOOLS[:2]] * (MAX_CALLS + 9)), {})

    assert 0 == few.learn.calls
    assert MAX_CALLS == many.learn.calls


@pytest.mark.parametrize(("helpful", "on"), [(True, True), (False, False)])
async def test_auto_turns_on_what_was_measured_to_help(
    open_gateway: OpenGateway, tmp_path: Path, helpful: bool, on: bool
) -> None:
    """Measured behind the first answer; the next reading acts on it."""
    gateway = opened(open_gateway, tmp_path, learn="auto", rerank="auto", refresh_s=0.0)
    for number, task in enumerate(HISTORY if helpful else shuffled(HISTORY)):
        for name in task:
            gateway.usage.call_log.note(
                CallNote(tool=f"shelf/{name}", outcome="ok", task=str(number))
            )
    first, second, *_ = WAYS[0]

    before = await gateway.next_steps([first])
    judged = await gateway.usage.measured_gains()
    after = await gateway.next_steps([first])

    assert not any(each.evidence.path for each in before)
    assert (on, False) == (judged.learn, judged.rerank)
    assert on == any(each.name == second and each.evidence.path for each in after[:1])
    assert await gateway.usage.measured_gains() == judged
