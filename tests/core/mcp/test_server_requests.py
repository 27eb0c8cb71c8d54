"""Which call a server's question belongs to, how long it may take, and what its caller can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
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
from tests.apps.serve.asking import NAME, sample

CAN: JsonObject = {"elicitation": {}}
ADA = types.ElicitResult(action="accept", content={"name": "Ada"})


class Person:
    """A client that answers every form with the same name, once its door is open."""

    listens = True

    def __init__(self, capabilities: JsonObject, *, who: object = "me") -> None:
        self.capabilities = capabilities
        self.who = who
        self.questions: list[str] = []
        self.reports: list[float] = []
        self.called = asyncio.Event()
        self.door = asyncio.Event()
        self.door.set()

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        self.questions += requests
        self.called.set()
        await self.door.wait()
        return dict.fromkeys(requests, ADA)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.door.wait()
        self.reports.append(progress)


def active_calls(**options: float) -> ActiveCalls:
    """A connection without calls."""
    return ActiveCalls("srv", UpstreamOptions(**options))  # type: ignore[arg-type]  # only floats


@asynccontextmanager
async def under_way(calls: ActiveCalls, person: Person | None = None) -> AsyncIterator[ActiveCall]:
    """Hold a call of *person*."""
    with on_behalf_of(person) if person is not None else nullcontext():
        async with calls.start() as call:
            yield call


@asynccontextmanager
async def heard(person: Person) -> AsyncIterator[tuple[ActiveCall, Any]]:
    """Hold a call of *person*, whose door is shut, and give it with what takes its progress."""
    person.door.clear()
    async with under_way(active_calls(), person) as call:
        assert call.progress_listener is not None
        yield call, call.progress_listener


async def test_a_question_goes_to_the_only_caller() -> None:
    """A server of before 2026-07-28 names no call; one without a client does not count."""
    calls, person = active_calls(), Person(CAN)
    async with under_way(calls), under_way(calls, person), under_way(calls, person):
        answer = await calls.answer(NAME)

    assert ADA == answer


@pytest.mark.parametrize(
    ("callers", "question", "reason"),
    [
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
    assert not any(person.questions for person in callers if person)


async def test_no_more_questions_wait_than_a_person_could_answer() -> None:
    """Each waits for minutes, and a server may send hundreds a second."""
    calls, person = active_calls(), Person(CAN)
    person.door.clear()
    async with under_way(calls, person):
        asking = [asyncio.create_task(calls.answer(NAME)) for _ in range(16)]
        await person.called.wait()
        refused = await calls.answer(NAME)
        person.door.set()
        answers = await asyncio.gather(*asking)

    assert isinstance(refused, types.ErrorData)
    assert "too many" in refused.message
    assert [ADA] * 16 == answers


async def test_progress_that_its_caller_does_not_take_is_dropped() -> None:
    """A later report says more than one that waits."""
    person = Person(CAN)
    async with heard(person) as (_, report):
        reporting = [asyncio.ensure_future(report(each, None, None)) for each in range(1000)]
        await asyncio.sleep(0)
        person.door.set()
        await asyncio.gather(*reporting)

    assert list(range(64)) == person.reports


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
        answer = await calls.answer(NAME)

    assert isinstance(answer, types.ErrorData)
    assert "did not answer" in answer.message


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
    assert ["who", "again"] == person.questions
    assert [
        {},
        {"requestState": "1", "inputResponses": {"who": ADA}},
        {"requestState": "2"},
        {"inputResponses": {"again": ADA}},
    ] == server.received


async def test_rounds_have_an_end() -> None:
    """Sixteen answers are sent; a server that asks once more has no more asked."""
    calls, person, other = active_calls(), Person(CAN), Person(CAN)
    done: dict[str, Any] = {"content": []}
    patient = Server(*[required("s", who=NAME)] * 16, done)
    endless = Server(required("s", who=NAME))
    async with under_way(calls, person) as call:
        assert done == await calls.input_rounds(call, patient)
    async with under_way(calls, other) as call:
        with pytest.raises(CallerError, match="asks again after 16 answers"):
            await calls.input_rounds(call, endless)

    assert (16, 17) == (len(person.questions), len(patient.received))
    assert (16, 17) == (len(other.questions), len(endless.received))


async def test_a_call_ends_after_its_progress_and_reports_it_in_order() -> None:
    """The library begins each by itself; what comes after an answer is lost."""
    calls, person = active_calls(), Person(CAN)
    person.door.clear()
    reports: list[asyncio.Future[None]] = []

    async def run() -> None:
        async with calls.start() as call:
            listener = call.progress_listener
            assert listener is not None
            reports.extend(asyncio.ensure_future(listener(part, 3, None)) for part in (1, 2, 3))
            await asyncio.sleep(0)

    with on_behalf_of(person):
        running = asyncio.ensure_future(run())
        await asyncio.wait({running}, timeout=0.01)
    waits = not running.done()
    person.door.set()
    await running

    assert waits
    assert [1, 2, 3] == person.reports
    assert all(each.done() for each in reports)
    async with under_way(calls) as silent:
        assert silent.progress_listener is None


async def test_an_answer_is_not_lost_to_a_caller_that_takes_no_progress() -> None:
    """It loses the progress, and neither the call nor the server pays for it."""
    person = Person(CAN)
    async with heard(person) as (call, listener):
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
    request = sample("hello")
    request.params.tools = []
    return request


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


OLDER: JsonObject = {"capabilities": {"elicitation": {}}, "protocolVersion": "2025-11-25"}


@pytest.mark.parametrize(
    ("method", "params", "can_be_asked", "declared"),
    [
        ("tools/call", modern({"elicitation": {}}), True, modern({"sampling": {"tools": {}}})),
        ("initialize", OLDER, True, OLDER),
        ("initialize", OLDER, False, {**OLDER, "capabilities": {}}),
        ("tools/call", {}, True, {}),
        ("tools/call", {"_meta": {"progressToken": 1}}, True, {"_meta": {"progressToken": 1}}),
    ],
)
def test_a_server_learns_what_this_caller_can_do_and_no_more(
    method: str, params: JsonObject, *, can_be_asked: bool, declared: JsonObject
) -> None:
    """Nothing that we would not pass on. An older server learns it once for all calls, and only
    where callers can be asked.
    """
    can: JsonObject = {"sampling": {"tools": {}}, "experimental": {"x": {}}, "roots": None}
    with on_behalf_of(Person(can)):
        assert declared == declare_capabilities(method, params, can_be_asked=can_be_asked)


@pytest.mark.parametrize(
    ("data", "needed", "named"),
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}, "sampling"),
        ({"requiredCapabilities": "x"}, {}, "more"),
        (None, {}, "more"),
    ],
)
def test_a_servers_refusal_says_what_was_missing(
    data: object, needed: JsonObject, named: str
) -> None:
    """As far as the server says it."""
    error = capability_error("srv", MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "no", data))

    assert needed == error.needed
    assert named in str(error)
