"""Answers to the model's calls: errors, order and concurrency."""

from __future__ import annotations

import asyncio
import threading

import openai as sdk
import pytest

from gateway import AutoDiscoveryClient, Gateway, Options
from gateway.options import ChatOptions
from gateway.testing import Call, Faults, Turn
from tests.conftest import OpenGateway
from tests.core.chat.stage import ASK, SUM, WAYS, Speaker, Stage, Way, find, text
from tests.fakes import Shelf, tool


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Call("add", '{"a": 1, '), "the arguments are not JSON: "),
        (Call("add", "[1, 2]"), "the arguments must be a JSON object"),
        (Call("add", {"a": 1, "b": "two"}), "invalid arguments for 'add': b: 'two' is not of type"),
        (Call("add", {"a": 1}), "invalid arguments for 'add': 'b' is a required property"),
        (Call("ad", {"a": 1, "b": 2}), "unknown tool 'ad'; near names: add"),
        (Call("call_tool", {"name": "ad"}), "unknown tool 'ad'; near names: add"),
        (Call("call_tool", "{"), "the arguments are not JSON: "),
    ],
)
async def test_invalid_call_is_explained_and_corrected_in_the_next_turn(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way, wrong: Call, message: str
) -> None:
    """An exception would end a conversation that one more turn can save."""
    role = stage.cast(Turn(calls=(wrong,)), SUM, Turn("It is 3."))

    answer = await speaker.ask(way, functions, role)

    body = role.result(1)
    assert body["error"].startswith(message)
    assert (wrong.name == "add") == (["a", "b"] == body.get("schema", {}).get("required"))
    assert ["3"] == role.results(2)
    assert "It is 3." == text(answer)


async def test_failing_tool_gives_an_answer_instead_of_an_exception(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """In three cases: a function raises, a server reports an error, or a server is missing."""
    functions.add_server("shelf", server=Shelf([tool("fail", "Always fails.")]).server)
    functions.add_server("gone", command="/nowhere/at-all")
    role = stage.cast(
        Turn(calls=(Call("divide", {"a": 1, "b": 0}), Call("fail", {}), Call("gone/x", {}))),
        Turn("I could not."),
    )

    answer = await speaker.ask("whole", functions, role)

    raised, failed, gone = role.results()
    assert "The tool reported an error:\nZeroDivisionError: division by zero" == raised
    assert "The tool reported an error:\ncalled fail" == failed
    assert "unknown tool 'gone/x'" in gone
    assert "I could not." == text(answer)


@pytest.mark.parametrize("way", WAYS)
async def test_five_calls_of_one_turn_run_concurrently_and_are_answered_in_order(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """Each call waits until all have begun, so sequential calls would never end. The first call is
    the slowest, and one call fails. Each has exactly one answer at its position.
    """
    barrier = threading.Barrier(4)
    last = threading.Event()

    def slow(number: int) -> int:
        """Wait for the others to be done."""
        barrier.wait(10)
        last.wait(10)
        return number

    def quick(number: int) -> int:
        """Answer when all have begun."""
        barrier.wait(10)
        return number

    def broken(number: int) -> int:
        """Fail when all have begun."""
        barrier.wait(10)
        last.set()
        raise OSError(number)

    gateway = open_gateway()
    for function in (slow, quick, broken):
        gateway.add_tool(function)
    names = enumerate(("slow", "quick", "nobody", "broken", "quick"))
    called = tuple(Call(name, {"number": place}, id=f"c{place}") for place, name in names)
    role = stage.cast(Turn(calls=called), Turn("Done."))

    await speaker.ask(way, gateway, role)

    answered = role.requests[1].last_tool_results()
    assert [f"c{place}" for place in range(5)] == [
        function["tool_call_id"] for function in answered
    ]
    assert ["0", "1", "4"] == [str(answered[place]["content"]) for place in (0, 1, 4)]
    assert "unknown tool 'nobody'" in str(answered[2]["content"])
    assert "OSError: 3" in str(answered[3]["content"])


async def test_concurrent_calls_are_limited(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway
) -> None:
    """Servers allow only a limited number of calls at once. The test counts running calls instead
    of measuring time.
    """
    pair = asyncio.Barrier(2)
    running: list[int] = []
    most: list[int] = []

    async def work(number: int) -> int:
        """Count who runs at the same time."""
        running.append(number)
        most.append(len(running))
        async with asyncio.timeout(10):
            await pair.wait()
        running.remove(number)
        return number

    gateway = open_gateway(options=Options(chat=ChatOptions(max_parallel_calls=2)))
    gateway.add_tool(work)
    calls = tuple(Call("work", {"number": number}) for number in range(6))
    role = stage.cast(Turn(calls=calls), Turn("Done."))

    await speaker.ask("async whole", gateway, role)

    assert [str(number) for number in range(6)] == role.results()
    assert 2 == max(most)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("turn", [0, 1])
async def test_service_error_is_raised_as_the_sdks_error(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way, turn: int
) -> None:
    """Callers catch the usual exceptions of the SDK, on the first request and on later ones."""
    role = stage.cast(*[find("add")] * turn)

    with pytest.raises(sdk.BadRequestError, match="the script is over"):
        await speaker.ask(way, functions, role)

    stage.server.fail(Faults(status=429))
    with pytest.raises(sdk.RateLimitError):
        await speaker.ask(way, functions, role)
    # An interrupted answer must not look complete.
    stage.server.fail(Faults(kind="drop"))
    with pytest.raises(sdk.APIConnectionError):
        await speaker.ask(way, functions, stage.cast(Turn("A longer text, of several chunks.")))


async def test_invalid_messages_are_refused_before_sending(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """If messages are missing, the SDK itself refuses the call."""
    role = stage.cast(Turn("Hi."))

    with pytest.raises(ValueError, match="'messages' must be a list of objects"):
        await speaker.ask("whole", functions, role, messages="Hi")
    with pytest.raises(ValueError, match="each item of 'tools' must be an object, got str"):
        await speaker.ask("whole", functions, role, tools=["mine"])
    with pytest.raises(TypeError, match="Missing required arguments"):
        AutoDiscoveryClient(speaker.openai, functions).chat.completions.create(messages=ASK)  # type: ignore[call-overload]  # the fault under test

    assert [] == role.requests
