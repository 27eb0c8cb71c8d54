"""Requests of a server to its caller: the right caller, limits and capabilities."""

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


class ScriptedClient:
    """A client that answers every request with the same name, once the event `may_answer` is
    set.
    """

    listens = True

    def __init__(self, capabilities: JsonObject, *, who: object = "me") -> None:
        self.capabilities = capabilities
        self.who = who
        self.questions: list[str] = []
        self.reports: list[float] = []
        self.called = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self, requests: Mapping[str, types.InputRequest]) -> types.InputResponses:
        self.questions += requests
        self.called.set()
        await self.may_answer.wait()
        return dict.fromkeys(requests, ADA)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.may_answer.wait()
        self.reports.append(progress)


def active_calls(**options: float) -> ActiveCalls:
    """Return the `ActiveCalls` of a connection, without any call yet."""
    return ActiveCalls("srv", UpstreamOptions(**options))  # type: ignore[arg-type]  # only floats


@asynccontextmanager
async def started_call(
    calls: ActiveCalls, person: ScriptedClient | None = None
) -> AsyncIterator[ActiveCall]:
    """Run a call of the client *person* during the block."""
    with on_behalf_of(person) if person is not None else nullcontext():
        async with calls.start() as call:
            yield call


@asynccontextmanager
async def unanswered_call(person: ScriptedClient) -> AsyncIterator[tuple[ActiveCall, Any]]:
    """Yield a call of the client *person*, who does not answer yet, and the call's progress
    listener.
    """
    person.may_answer.clear()
    async with started_call(active_calls(), person) as call:
        assert call.progress_listener is not None
        yield call, call.progress_listener


async def test_request_of_a_server_goes_to_the_only_caller() -> None:
    """Requests before 2026-07-28 do not name a call. Calls without a client do not count."""
    calls, person = active_calls(), ScriptedClient(CAN)
    async with started_call(calls), started_call(calls, person), started_call(calls, person):
        answer = await calls.answer(NAME)

    assert ADA == answer


@pytest.mark.parametrize(
    ("callers", "question", "reason"),
    [
        ([None], NAME, "no client that can be asked is waiting"),
        ([ScriptedClient(CAN), ScriptedClient(CAN, who="you")], NAME, "several clients"),
        ([ScriptedClient(CAN)], sample("hello"), "sampling"),
    ],
)
async def test_request_of_a_server_is_refused_if_no_caller_can_answer(
    callers: list[ScriptedClient | None], question: types.InputRequest, reason: str
) -> None:
    calls = active_calls()
    async with AsyncExitStack() as stack:
        for person in callers:
            await stack.enter_async_context(started_call(calls, person))
        answer = await calls.answer(question)

    assert isinstance(answer, types.ErrorData)
    # The SDK treats -32600 as a lost session.
    assert types.INVALID_PARAMS == answer.code
    assert reason in answer.message
    assert not any(person.questions for person in callers if person)


async def test_number_of_unanswered_requests_of_a_server_is_limited() -> None:
    """A request may wait for minutes, and a server may send hundreds of requests a second."""
    calls, person = active_calls(), ScriptedClient(CAN)
    person.may_answer.clear()
    async with started_call(calls, person):
        asking = [asyncio.create_task(calls.answer(NAME)) for _ in range(16)]
        await person.called.wait()
        refused = await calls.answer(NAME)
        person.may_answer.set()
        answers = await asyncio.gather(*asking)

    assert isinstance(refused, types.ErrorData)
    assert "too many" in refused.message
    assert [ADA] * 16 == answers


async def test_progress_reports_beyond_the_limit_are_dropped() -> None:
    person = ScriptedClient(CAN)
    async with unanswered_call(person) as (_, report):
        reporting = [asyncio.ensure_future(report(number, None, None)) for number in range(1000)]
        await asyncio.sleep(0)
        person.may_answer.set()
        await asyncio.gather(*reporting)

    assert list(range(64)) == person.reports


async def test_time_limit_of_a_call_is_suspended_while_its_caller_is_asked() -> None:
    """The limit starts again only after the last of two overlapping requests."""
    calls, person = active_calls(), ScriptedClient(CAN)
    async with started_call(calls, person) as call:
        person.may_answer.clear()
        asking = [asyncio.create_task(calls.answer(NAME)) for _ in range(2)]
        await person.called.wait()
        await asyncio.sleep(0)
        resting = call.limit.when()
        person.may_answer.set()
        await asyncio.gather(*asking)
        again = call.limit.when()

    assert resting is None
    assert again is not None


async def test_request_to_a_client_that_never_answers_times_out() -> None:
    calls, person = active_calls(ask_timeout_s=0.01), ScriptedClient(CAN)
    person.may_answer.clear()
    async with started_call(calls, person):
        answer = await calls.answer(NAME)

    assert isinstance(answer, types.ErrorData)
    assert "did not answer" in answer.message


async def test_call_times_out_after_a_request_was_answered() -> None:
    calls, person = active_calls(call_timeout_s=0.01), ScriptedClient(CAN)

    async def call() -> None:
        async with calls.start():
            await calls.answer(NAME)
            await asyncio.Event().wait()

    with on_behalf_of(person), pytest.raises(TimeoutError):
        await call()


def required(state: str | None = "s", **requests: types.InputRequest) -> dict[str, Any]:
    """Return a call result that requires input: the answers to *requests*."""
    result = types.InputRequiredResult(input_requests=requests or None, request_state=state)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class Server:
    """A function that sends calls. It returns *answers* in turn, then repeats the last one.

    `received` contains the additional parameters of each call.
    """

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.received: list[JsonObject] = []

    async def __call__(self, more: JsonObject) -> dict[str, Any]:
        self.received.append(more)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_call_is_repeated_until_the_result_requires_no_input() -> None:
    """The server's request state is sent back unchanged. A result may also ask only for a
    repetition.
    """
    calls, person = active_calls(), ScriptedClient(CAN)
    done: dict[str, Any] = {"content": []}
    server = Server(required("1", who=NAME), required("2"), required(None, again=NAME), done)
    async with started_call(calls, person) as call:
        result = await calls.input_rounds(call, server)

    assert done == result
    assert ["who", "again"] == person.questions
    assert [
        {},
        {"requestState": "1", "inputResponses": {"who": ADA}},
        {"requestState": "2"},
        {"inputResponses": {"again": ADA}},
    ] == server.received


async def test_call_fails_if_its_result_requires_input_too_often() -> None:
    """The caller is asked at most sixteen times."""
    calls, person, other = active_calls(), ScriptedClient(CAN), ScriptedClient(CAN)
    done: dict[str, Any] = {"content": []}
    patient = Server(*[required("s", who=NAME)] * 16, done)
    endless = Server(required("s", who=NAME))
    async with started_call(calls, person) as call:
        assert done == await calls.input_rounds(call, patient)
    async with started_call(calls, other) as call:
        with pytest.raises(CallerError, match="asks again after 16 answers"):
            await calls.input_rounds(call, endless)

    assert (16, 17) == (len(person.questions), len(patient.received))
    assert (16, 17) == (len(other.questions), len(endless.received))


async def test_call_waits_for_its_progress_reports_in_order() -> None:
    """The SDK starts a task for each report. A caller would ignore reports after the answer."""
    calls, person = active_calls(), ScriptedClient(CAN)
    person.may_answer.clear()
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
    person.may_answer.set()
    await running

    assert waits
    assert [1, 2, 3] == person.reports
    assert all(report.done() for report in reports)
    async with started_call(calls) as silent:
        assert silent.progress_listener is None


async def test_caller_that_does_not_read_progress_reports_still_gets_the_answer() -> None:
    person = ScriptedClient(CAN)
    async with unanswered_call(person) as (call, listener):
        stuck = asyncio.ensure_future(listener(1, 3, None))
        await asyncio.sleep(0)
        await call.flush_progress(0.001)

        assert not stuck.done()
        assert call.limit.when() is None
        person.may_answer.set()


URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(message="pay", url="https://a.example", elicitation_id="1")
)
ROOTS = types.ListRootsRequest()
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def with_tools() -> types.CreateMessageRequest:
    """Return a sampling request whose model may call tools."""
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
def test_missing_capabilities_are_those_that_the_request_needs(
    can: JsonObject, request_: types.InputRequest, missing: JsonObject
) -> None:
    """An empty elicitation capability means forms, which once were the only kind."""
    assert missing == missing_capabilities(ScriptedClient(can), request_)


def modern(capabilities: object) -> JsonObject:
    """Return the parameters of a request of a client of 2026-07-28."""
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
def test_server_gets_only_forwarded_capabilities_of_the_caller(
    method: str, params: JsonObject, *, can_be_asked: bool, declared: JsonObject
) -> None:
    """An older server gets them once for all calls, and only if callers can be asked."""
    can: JsonObject = {"sampling": {"tools": {}}, "experimental": {"x": {}}, "roots": None}
    with on_behalf_of(ScriptedClient(can)):
        assert declared == declare_capabilities(method, params, can_be_asked=can_be_asked)


@pytest.mark.parametrize(
    ("data", "needed", "named"),
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}, "sampling"),
        ({"requiredCapabilities": "x"}, {}, "more"),
        (None, {}, "more"),
    ],
)
def test_error_of_a_refused_call_names_the_missing_capabilities(
    data: object, needed: JsonObject, named: str
) -> None:
    error = capability_error("srv", MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "no", data))

    assert needed == error.needed
    assert named in str(error)
