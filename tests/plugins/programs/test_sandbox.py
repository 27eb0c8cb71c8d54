"""Isolation and limits of every sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.program_escapes import ATTEMPTS, attempt_all
from gateway.options import ProgramsOptions
from gateway.plugins.programs import (
    AnswerCall,
    CallAnswer,
    MontySandbox,
    PendingCall,
    Program,
    ProgramResult,
    ProgramSnapshot,
    wrapper_in_use,
)

PATIENT = ProgramsOptions(seconds=20, wall_s=120)
STUBS = "async def add(*, a: int, b: int = ...) -> int: ...\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[MontySandbox]:
    new_sandbox = MontySandbox(seconds=20)
    yield new_sandbox
    new_sandbox.close()


def program(code: str, *, stubs: str = "", **inputs: object) -> Program:
    return Program(code=code, functions={"add", "slow"}, stubs=stubs, inputs=inputs)


async def add(call: PendingCall) -> CallAnswer:
    """Answer a call of `add`; an argument that is not a number is a tool error."""
    a, b = call.named.get("a"), call.named.get("b", 0)
    if isinstance(a, int) and isinstance(b, int):
        return CallAnswer(value=a + b)
    return CallAnswer(error="no number", error_type="ValueError")


async def test_sandbox_stops_every_escape_and_runs_the_next_program() -> None:
    """The program's attempts use files, network, processes, environment, host objects, floods,
    frames and deep values.
    """
    sandbox = MontySandbox(seconds=20, wrapper="none")

    outcomes = await attempt_all(sandbox)

    sandbox.close()
    assert [] == [outcome for outcome in outcomes if outcome.reason]
    assert len(outcomes) == len(ATTEMPTS) >= 40
    assert max(outcome.host_mib for outcome in outcomes) < 100


class InProcess:
    """A sandbox without isolation, which reads files for programs."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        if program.code.endswith(".read_text()"):
            path = Path(program.code.split("'")[1])
            return ProgramResult(value=await asyncio.to_thread(path.read_text))
        return ProgramResult(value=2)

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        raise AssertionError("nothing waits")


async def test_escape_attempts_succeed_without_a_sandbox() -> None:
    """Otherwise the tests of the attempts would prove nothing."""
    reasons = {outcome.name: outcome.reason for outcome in await attempt_all(InProcess())}

    assert reasons["pathlib"] == "it read the canary"


@pytest.mark.skipif(wrapper_in_use("auto") is None, reason="bubblewrap does not work here")
async def test_bubblewrap_stops_every_escape() -> None:
    sandbox = MontySandbox(wrapper="required")

    outcomes = await attempt_all(sandbox)

    sandbox.close()
    assert [] == [outcome for outcome in outcomes if outcome.reason]


async def test_program_runs_calls_concurrently_and_uses_earlier_results(
    sandbox: MontySandbox,
) -> None:
    meeting = asyncio.Barrier(5)

    async def call(pending: PendingCall) -> CallAnswer:
        if pending.name == "slow":
            await meeting.wait()
        return await add(pending)

    code = (
        "import asyncio\n"
        "found = await asyncio.gather(*[slow(a=i) for i in range(5)])\n"
        "print('found', found)\n"
        "await add(a=sum(found), b=start)"
    )

    result = await sandbox.run(program(code, start=100), call=call, limits=PATIENT)

    assert (result.value, result.calls, result.error) == (110, 6, "")
    assert result.printed == "found [0, 1, 2, 3, 4]\n"


async def test_program_can_catch_a_tool_error(sandbox: MontySandbox) -> None:
    code = "try:\n    await add(a='x')\nexcept ValueError as error:\n    found = str(error)\nfound"

    result = await sandbox.run(program(code), call=add, limits=PATIENT)

    assert result.value == "no number"


async def test_error_of_a_program_names_the_line(sandbox: MontySandbox) -> None:
    result = await sandbox.run(program("x = [1]\nx[3]"), call=add, limits=PATIENT)

    assert result.error.startswith("line 2: IndexError")


async def test_type_errors_of_a_program_are_found_before_its_first_call(
    sandbox: MontySandbox,
) -> None:
    calls: list[PendingCall] = []

    async def call(pending: PendingCall) -> CallAnswer:
        calls.append(pending)
        return await add(pending)

    code = "await add(a=1)\nawait add(a='x')\nawait ad(a=1)"

    result = await sandbox.run(program(code, stubs=STUBS), call=call, limits=PATIENT)

    assert [(problem.line, problem.code) for problem in result.problems] == [
        (2, "invalid-argument-type"),
        (3, "unresolved-reference"),
    ]
    assert calls == []


async def test_number_of_calls_and_length_of_output_are_limited(sandbox: MontySandbox) -> None:
    limits = replace(PATIENT, calls=2, output_chars=1000)
    code = "print('x' * 5000)\nfor i in range(5):\n    await add(a=i)"

    many = await sandbox.run(
        program("for i in range(5):\n    await add(a=i)"), call=add, limits=limits
    )
    long = await sandbox.run(program(code), call=add, limits=limits)

    assert many.calls == 2
    assert "at most 2 calls" in many.error
    assert len(long.printed) <= 1100


async def test_program_is_stopped_at_the_time_limit(sandbox: MontySandbox) -> None:
    """A tool that never answers must not block a worker. The call itself is cancelled too."""
    cancelled = asyncio.Event()

    async def call(pending: PendingCall) -> CallAnswer:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return CallAnswer()

    limits = replace(PATIENT, wall_s=0.05)

    result = await sandbox.run(program("await slow(a=1)"), call=call, limits=limits)
    await cancelled.wait()

    assert "longer than 0.05 s" in result.error


async def test_cancelled_program_makes_no_more_calls() -> None:
    """A program may still be computing when it is cancelled."""
    sandbox, called = MontySandbox(seconds=20, processes=1), list[object]()

    async def call(pending: PendingCall) -> CallAnswer:
        called.append(pending.named["a"])
        running.cancel()
        return await add(pending)

    code = (
        "import asyncio\n"
        "async def one(number):\n"
        "    for _ in range(100_000 * number):\n"
        "        pass\n"
        "    await add(a=number)\n"
        "await asyncio.gather(*[one(number) for number in range(12)])"
    )
    running = asyncio.ensure_future(sandbox.run(program(code), call=call, limits=PATIENT))

    with pytest.raises(asyncio.CancelledError):
        await running
    # There is only one worker, so it has finished the first program.
    after = await sandbox.run(program("1"), call=add, limits=PATIENT)

    sandbox.close()
    assert after.value == 1
    assert len(called) < 12


async def test_cancelling_a_program_cancels_its_open_calls(sandbox: MontySandbox) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def call(pending: PendingCall) -> CallAnswer:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return CallAnswer()

    running = asyncio.create_task(
        sandbox.run(program("await slow(a=1)"), call=call, limits=PATIENT)
    )
    await began.wait()
    running.cancel()
    await ended.wait()

    with pytest.raises(asyncio.CancelledError):
        await running


async def test_program_resumes_from_a_snapshot_in_another_sandbox(sandbox: MontySandbox) -> None:
    """Before the snapshot, all calls that do not wait are answered."""

    async def undecided(pending: PendingCall) -> CallAnswer:
        return CallAnswer(waits=True) if pending.name == "slow" else await add(pending)

    code = (
        "import asyncio\nprint('before')\n"
        "a, b = await asyncio.gather(add(a=1), slow(a=2))\nprint('after')\nawait add(a=a, b=b)"
    )
    first = await sandbox.run(program(code), call=undecided, limits=PATIENT)
    assert first.snapshot is not None
    elsewhere = MontySandbox(processes=1, seconds=20)

    last = await elsewhere.resume(program(""), first.snapshot, call=add, limits=PATIENT)

    elsewhere.close()
    assert [(call.name, call.named) for call in first.snapshot.waiting] == [("slow", {"a": 2})]
    assert (last.value, last.printed, last.calls) == (3, "before\nafter\n", 3)
    assert first.calls == 2
