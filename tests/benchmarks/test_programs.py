"""The benchmark of programs, in small: both ways come to the same total, and what they cost."""

from __future__ import annotations

import pytest

from benchmarks.program_server import server
from benchmarks.programs import Kind, ScriptedTask, run_task
from gateway.options import DiscoveryOptions, Options, ProgramsOptions
from tests.conftest import OpenGateway


@pytest.mark.parametrize(("kind", "direct_turns"), [("apart", 3), ("chain", 5)])
async def test_a_program_takes_three_turns_however_many_calls_there_are(
    open_gateway: OpenGateway, kind: Kind, direct_turns: int
) -> None:
    figures = {}
    for uses_program in (False, True):
        gateway = open_gateway(
            options=Options(
                discovery=DiscoveryOptions(programs=uses_program),
                programs=ProgramsOptions(seconds=20, wall_s=120),
            )
        )
        gateway.add_server("shop", server=server(3))
        task = ScriptedTask(kind=kind, calls=3, uses_program=uses_program, mistakes=False)
        figures[uses_program] = await run_task(gateway, task)

    assert (figures[False]["turns"], figures[True]["turns"]) == (direct_turns, 3)
    assert figures[False]["failures"] == figures[True]["failures"] == 0


async def test_a_wrong_program_takes_one_turn_more(open_gateway: OpenGateway) -> None:
    gateway = open_gateway(
        options=Options(
            discovery=DiscoveryOptions(programs=True),
            programs=ProgramsOptions(seconds=20, wall_s=120),
        )
    )
    gateway.add_server("shop", server=server(3))
    task = ScriptedTask(kind="apart", calls=3, uses_program=True, mistakes=True)

    figures = await run_task(gateway, task)

    assert (figures["turns"], figures["failures"]) == (4, 1)
