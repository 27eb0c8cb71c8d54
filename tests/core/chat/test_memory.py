"""Objects in memory after conversations have ended."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable

import openai as sdk
import pytest
from openai import OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.chat.conversation import MAX_CONVERSATIONS, ConversationState
from gateway.errors import LoopError
from gateway.testing import Call, Faults, ModelRequest, Turn
from tests.core.chat.stage import ASK, SUM, Role, Speaker, Stage, find, user_messages

ROUNDS = 10
OURS = (
    "gateway.",
    "openai.",
    "httpx2.",
    "builtins.async_generator",
    "builtins.coroutine",
    "builtins.generator",
    "_asyncio.",
    "asyncio.streams.",
)
MORE_A_ROUND = 0.5
"""Maximum growth in objects per round of conversations. A leak would be at least 1; libraries cause
less."""


def play_turn(request: ModelRequest) -> Turn:
    """Return the model's next turn: a search, a call and an answer; or errors until a limit is
    reached.
    """
    if request.user_text == "err":
        return Turn(calls=(Call("call_tool", {"name": "nothing"}),))
    if request.progress == 0:
        return find("add two numbers")
    if request.progress == 1:
        return SUM
    return Turn("Done.")


def count_objects(stage: Stage) -> Counter[str]:
    """Count the gateway's and the SDK's objects by type.

    The server's log and its open connections are excluded. Other objects of the process, such as
    modules, timers and logs, do not belong to conversations.
    """
    stage.server.settle()
    stage.server.forget()
    gc.collect()
    kinds = (type(item) for item in gc.get_objects())
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith(OURS))


async def measure_growth(stage: Stage, rounds: Callable[[], Awaitable[None]]) -> dict[str, int]:
    """Run *rounds* of conversations three times. Return the growth of each type in the last run."""
    await rounds()
    await rounds()
    before = count_objects(stage)
    await rounds()
    more = count_objects(stage) - before
    return {kind: number for kind, number in more.items() if number > ROUNDS * MORE_A_ROUND}


async def test_blocking_conversations_leave_no_objects(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """The conversations are whole, streamed, abandoned, failed at the service, and stopped by a
    limit.
    """
    role = stage.act(play_turn)
    client = AutoDiscoveryClient(openai, functions)
    create = client.chat.completions.create

    def one() -> None:
        create(model=role.model, messages=ASK)
        list(create(model=role.model, messages=ASK, stream=True))
        with create(model=role.model, messages=ASK, stream=True) as opened:
            next(iter(opened))
        create(model=role.model, messages=ASK, stream=True).close()
        client.prepare(ASK, model=role.model)
        stage.server.fail(Faults())
        with pytest.raises(sdk.InternalServerError):
            create(model=role.model, messages=ASK)

    async def rounds() -> None:
        for _ in range(ROUNDS):
            await asyncio.to_thread(one)
        with pytest.raises(LoopError):
            await asyncio.to_thread(lambda: create(model=role.model, messages=user_messages("err")))

    assert {} == await measure_growth(stage, rounds)


async def test_async_conversations_leave_no_objects(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """Some of the conversations are cancelled."""
    role = stage.act(play_turn)
    create = AsyncAutoDiscoveryClient(speaker.asynchronous, functions).chat.completions.create

    async def one() -> None:
        await create(model=role.model, messages=ASK)
        stream = await create(model=role.model, messages=ASK, stream=True)
        assert [chunk async for chunk in stream]
        with stage.server.gate() as gate:
            request = asyncio.create_task(cancelled(role))
            await gate.arrived()
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)

    async def cancelled(role: Role) -> None:
        await create(model=role.model, messages=ASK)

    async def rounds() -> None:
        for _ in range(ROUNDS):
            await one()

    assert {} == await measure_growth(stage, rounds)


async def test_number_of_stored_conversations_is_bounded(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """At the limit, the least recently used conversation is dropped."""
    role = stage.act(play_turn)
    client = AutoDiscoveryClient(openai, functions)
    context = client._context  # noqa: SLF001  (its memory is what is looked at)
    for number in range(MAX_CONVERSATIONS):
        context.store.put(f"old-{number}", ConversationState())

    async def rounds() -> None:
        for _ in range(ROUNDS):
            await asyncio.to_thread(
                lambda: client.responses.create(model=role.model, input="Please.")
            )

    assert {} == await measure_growth(stage, rounds)
