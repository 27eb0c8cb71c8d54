"""The benchmark of programs on a small input: totals and costs with and without a program."""

from __future__ import annotations

import pytest

from benchmarks.program_server import server
from benchmarks.programs import Kind, ScriptedTask, run_task
from gateway.options import DiscoveryOptions, Options, ProgramsOptions
from tests.conftest import OpenGateway


async def run(
    open_gateway: OpenGateway, kind: Kind, *, uses_program: bool = True, mistakes: bool = False
) -> dict[str, float]:
    """Run a task of three calls."""
    options = Options(
        discovery=DiscoveryOptions(programs=uses_program),
        programs=ProgramsOptions(seconds=20, wall_s=120),
    )
    gateway = open_gateway(options=options)
    gateway.add_server("shop", server=server(3))
    task = ScriptedTask(kind=kind, calls=3, uses_program=uses_program, mistakes=mistakes)
    return await run_task(gateway, task)


@pytest.mark.parametrize(("kind", "direct_turns"), [("apart", 3), ("chain", 5)])
async def test_task_with_a_program_takes_three_turns_for_any_number_of_calls(
    open_gateway: OpenGateway, kind: Kind, direct_turns: int
) -> None:
    direct = await run(open_gateway, kind, uses_program=False)
    program = await run(open_gateway, kind)

    assert (direct["turns"], program["turns"]) == (direct_turns, 3)
    assert direct["failures"] == program["failures"] == 0


async def test_task_with_a_wrong_program_takes_one_turn_more(open_gateway: OpenGateway) -> None:
    figures = await run(open_gateway, "apart", mistakes=True)

    assert (figures["turns"], figures["failures"]) == (4, 1)
