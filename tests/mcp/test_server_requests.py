"""Which call a server's question belongs to, how long it may take, and what its caller can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

import pytest
from mcp import MCPError, types

from gateway.errors import CallerError
from gateway.mcp.server_requests import (
    ActiveCall,
    ActiveCalls,
    capability_error,
    declare_capabilities,
    missing_capabilities,
    on_behalf_of,
)
from gateway.options import UpstreamOptions
from gateway.types import JsonObject
from tests.mcp.callers import Person
from tests.serve.asking import NAME, sample

CAN: JsonObject = {"elicitation": {}}


def active_calls(**options: float) -> ActiveCalls:
    """A connection without calls."""
    return ActiveCalls("srv", UpstreamOptions(**options))  # type: ignore[arg-type]  # only floats


@asynccontextmanager
async def under_way(calls: ActiveCalls, person: Person | None = None) -> AsyncIterator[ActiveCall]:
    """Hold a call of *person*."""
    with on_behalf_of(person) if person is not None else nullcontext():
        async with calls.start() as call:
            yield call


async def test_a_question_goes_to_the_only_caller() -> None:
    """A server of before 2026-07-28 names no call; one without a client does not count."""
    calls, person = active_calls(), Person(CAN)
    async with under_way(calls), under_way(calls, person), under_way(calls, person):
        answer = await calls.answer(NAME)

    assert isinstance(answer, types.ElicitResult)
    assert {"name": "Ada"} == answer.content


@pytest.mark.parametrize(
    ("callers", "question", "reason"),
    [
        ([], NAME, "no client that can be asked waits"),
        ([None], NAME, "no client that can be asked waits"),
        ([Person(CAN), Person(CAN, who="you")], NAME, "several clients"),
        ([Person(CAN)], sample("hello"), "sampling"),
    ],
)
async def test_a_question_that_nobody_can_answer_is_refused(
    callers: list[Person | None], question: types.InputRequest, reason: str
) -> None:
    """And nobody is asked."""
    calls = active_calls()
    async with AsyncExitStack() as stack:
        for person in callers:
            await stack.enter_async_context(under_way(calls, person))
        answer = await calls.answer(question)

    assert isinstance(answer, types.ErrorData)
    # The SDK takes -32600 for a session that the server has forgotten.
    assert types.INVALID_PARAMS == answer.code
    assert reason in answer.message
    assert [] == [asked for person in callers if person for asked in person.asked]


async def test_the_limit_of_a_call_rests_while_somebody_is_asked() -> None:
    """A person is slower than a tool, and may be asked twice at once."""
    calls, person = active_calls(), Person(CAN)
    async with under_way(calls, person) as call:
        person.door.clear()
        asking = [asyncio.create_task(calls.answer(NAME)) for _ in range(2)]
        await person.called.wait()
        await asyncio.sleep(0)
        resting = call.limit.when()
        person.door.set()
        await asyncio.gather(*asking)
        again = call.limit.when()

    assert resting is None
    assert again is not None


async def test_a_client_that_never_answers_is_given_up() -> None:
    """Within `ask_timeout_s`."""
    calls, person = active_calls(ask_timeout_s=0.01), Person(CAN)
    person.door.clear()
    async with under_way(calls, person):
        said = await calls.answer(NAME)

    assert isinstance(said, types.ErrorData)
    assert "did not answer" in said.message


async def test_a_call_that_is_late_is_late() -> None:
    """What went on before changes nothing of that."""
    calls, person = active_calls(call_timeout_s=0.01), Person(CAN)

    async def call() -> None:
        async with calls.start():
            await calls.answer(NAME)
            await asyncio.Event().wait()

    with on_behalf_of(person), pytest.raises(TimeoutError):
        await call()


def required(state: str | None = "s", **requests: types.InputRequest) -> dict[str, Any]:
    """The answer of a server that wants more."""
    result = types.InputRequiredResult(input_requests=requests or None, request_state=state)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class Server:
    """Gives *answers* in turn, the last one for ever; knows what was sent to it."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.received: list[JsonObject] = []

    async def __call__(self, more: JsonObject) -> dict[str, Any]:
        self.received.append(more)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_rounds_are_played_until_the_server_is_content() -> None:
    """With the state as it came, and patience where that is all it wants."""
    calls, person = active_calls(), Person(CAN)
    done: dict[str, Any] = {"content": []}
    server = Server(required("1", who=NAME), required("2"), required(None, again=NAME), done)
    async with under_way(calls, person) as call:
        result = await calls.input_rounds(call, server)

    assert done == result
    assert ["who", "again"] == person.asked
    answer = types.ElicitResult(action="accept", content={"name": "Ada"})
    assert [
        {},
        {"requestState": "1", "inputResponses": {"who": answer}},
        {"requestState": "2"},
        {"inputResponses": {"again": answer}},
    ] == server.received


async def test_rounds_have_an_end() -> None:
    """A server that asks for ever gets no answer for ever."""
    calls, person = active_calls(), Person(CAN)
    server = Server(required("s", who=NAME))
    async with under_way(calls, person) as call:
        with pytest.raises(CallerError, match="asks again"):
            await calls.input_rounds(call, server)

    assert 16 == len(server.received)


async def test_progress_goes_to_who_wants_it() -> None:
    """And to nobody else."""
    calls, person = active_calls(), Person(CAN)
    async with calls.start() as silent:
        nobody = silent.progress_listener
    with on_behalf_of(person):
        call: ActiveCall
        async with calls.start() as call:
            listener = call.progress_listener
    assert listener is not None
    await listener(1, 2, "half")

    assert nobody is None
    assert [(1, 2, "half")] == person.heard


async def test_a_call_ends_after_its_progress_and_tells_it_in_order() -> None:
    """The library begins each by itself; what comes after an answer is lost."""
    calls, person = active_calls(), Person(CAN)
    person.door.clear()

    async def called() -> None:
        async with calls.start() as call:
            listener = call.progress_listener
            assert listener is not None
            told.extend(asyncio.ensure_future(listener(part, 3, None)) for part in (1, 2, 3))
            await asyncio.sleep(0)

    told: list[asyncio.Future[None]] = []
    with on_behalf_of(person):
        under_way = asyncio.ensure_future(called())
        for _ in range(10):
            await asyncio.sleep(0)
    waits = not under_way.done()
    person.door.set()
    await under_way

    assert waits
    assert [1, 2, 3] == [part for part, _, _ in person.heard]
    assert all(each.done() for each in told)


async def test_an_answer_is_not_lost_to_a_caller_that_takes_no_progress() -> None:
    """It loses the progress, and neither the call nor the server pays for it."""
    calls, person = active_calls(), Person(CAN)
    person.door.clear()
    async with under_way(calls, person) as call:
        listener = call.progress_listener
        assert listener is not None
        stuck = asyncio.ensure_future(listener(1, 3, None))
        await asyncio.sleep(0)
        await call.flush_progress(0.001)

        assert not stuck.done()
        assert call.limit.when() is None
        person.door.set()


URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(message="pay", url="https://a.example", elicitation_id="1")
)
ROOTS = types.ListRootsRequest()
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def with_tools() -> types.CreateMessageRequest:
    """A model that may call tools."""
    asked = sample("hello")
    asked.params.tools = []
    return asked


@pytest.mark.parametrize(
    ("can", "request_", "missing"),
    [
        ({"elicitation": {}}, NAME, {}),
        ({"elicitation": {"form": {}}}, NAME, {}),
        ({"elicitation": {"url": {}}}, NAME, {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, URL, {"elicitation": {"url": {}}}),
        ({"elicitation": {"form": {}, "url": {}}}, URL, {}),
        ({}, NAME, {"elicitation": {}}),
        ({"sampling": {}}, sample("a"), {}),
        ({"sampling": {}}, with_tools(), {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, with_tools(), {}),
        ({"elicitation": {}}, sample("a"), {"sampling": {}}),
        ({"roots": {"listChanged": True}}, ROOTS, {}),
        ({"sampling": {}}, ROOTS, {"roots": {}}),
    ],
)
def test_what_a_client_lacks(
    can: JsonObject, request_: types.InputRequest, missing: JsonObject
) -> None:
    """An empty elicitation is one for forms: there was nothing else once."""
    assert missing == missing_capabilities(Person(can), request_)


def modern(capabilities: object) -> JsonObject:
    """The parameters of a request as a client of 2026-07-28 writes them."""
    return {"name": "a", "_meta": {CAPABILITIES: capabilities, "other": 1}}


def test_a_server_is_told_what_this_caller_can_do() -> None:
    """And no more: nothing that we would not pass on, nothing of anybody else."""
    can: JsonObject = {"sampling": {"tools": {}}, "experimental": {"x": {}}, "roots": None}
    params = modern({"elicitation": {}})
    with on_behalf_of(Person(can)):
        declared = declare_capabilities("tools/call", params, can_be_asked=True)

    assert modern({"sampling": {"tools": {}}}) == declared
    assert modern({}) == declare_capabilities("tools/call", params, can_be_asked=True)


def test_a_session_declares_only_where_callers_can_be_asked() -> None:
    """For the older servers, once for all calls."""
    params: JsonObject = {"capabilities": {"elicitation": {}}, "protocolVersion": "2025-11-25"}

    assert params == declare_capabilities("initialize", params, can_be_asked=True)
    assert {**params, "capabilities": {}} == declare_capabilities(
        "initialize", params, can_be_asked=False
    )


@pytest.mark.parametrize("params", [{}, {"name": "a"}, {"_meta": {"progressToken": 1}}])
def test_what_declares_nothing_stays_as_it_is(params: JsonObject) -> None:
    """Requests of the older versions."""
    assert params == declare_capabilities("tools/call", params, can_be_asked=True)


@pytest.mark.parametrize(
    ("data", "needed", "said"),
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}, "sampling"),
        ({"requiredCapabilities": "x"}, {}, "more"),
        (None, {}, "more"),
    ],
)
def test_a_servers_refusal_says_what_was_missing(
    data: object, needed: JsonObject, said: str
) -> None:
    """As far as the server says it."""
    error = capability_error("srv", MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "no", data))

    assert needed == error.needed
    assert said in str(error)
