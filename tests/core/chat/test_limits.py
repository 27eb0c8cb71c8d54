"""Limits of the loop, approvals by the host, and accounting."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from openai import OpenAI

from gateway import (
    Approval,
    AsyncAutoDiscoveryClient,
    AutoDiscoveryClient,
    Gateway,
    Hints,
    accounting_of,
)
from gateway.chat.accounting import Accounting
from gateway.errors import LoopError
from gateway.options import ChatOptions, DiscoveryOptions, Options
from gateway.testing import Call, Turn
from tests.conftest import OpenGateway
from tests.core.chat.conftest import add, summing
from tests.core.chat.stage import ASK, SUM, WAYS, Speaker, Stage, Way, find, look, text
from tests.fakes import ListSource, tool

WRONG = Turn(calls=(Call("divide", {"a": 1, "b": 0}),))


@pytest.mark.parametrize(
    ("name", "limit", "turn", "turns"),
    [
        ("max_turns", 2, SUM, 2),
        ("max_tokens", 1, SUM, 1),
        ("max_seconds", 0.001, SUM, 1),
        ("max_consecutive_errors", 2, WRONG, 2),
    ],
)
def test_limit_ends_the_client_call_with_an_error_that_names_the_limit(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway, name: str, limit: Any, turn: Turn,
    turns: int,
) -> None:  # fmt: skip
    """There are limits of turns, tokens, time and consecutive errors."""
    options: dict[str, Any] = {name: limit}
    gateway = summing(open_gateway, chat=ChatOptions(**options))
    gateway.bridge.call(gateway.snapshot)
    role = stage.act(lambda _: turn)

    with pytest.raises(LoopError, match=f"raise ChatOptions.{name}") as caught:
        AutoDiscoveryClient(openai, gateway).chat.completions.create(model=role.model, messages=ASK)

    assert name == caught.value.limit
    assert caught.value.turns == len(role.requests) <= turns


@pytest.mark.parametrize("way", WAYS)
async def test_conversation_can_continue_after_a_limit(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """The error contains the messages with the found tools, and the accounting."""
    gateway = summing(open_gateway, chat=ChatOptions(max_turns=2))
    role = stage.cast(find("add two numbers"), SUM, Turn("It is 3."))
    with pytest.raises(LoopError) as caught:
        await speaker.ask(way, gateway, role)
    error, spent = caught.value, accounting_of(caught.value)

    answer = await speaker.ask(way, gateway, role, messages=[*ASK, *error.messages])

    assert spent is not None
    assert spent is error.accounting
    assert (2, 1, 1) == (spent.turns, spent.searches, spent.tool_calls)
    assert spent.prompt_tokens > 0 or "stream" in way
    assert ["assistant", "tool"] * 2 == [message["role"] for message in error.messages]
    assert "It is 3." == text(answer)
    assert "add" in role.tool_names[2]


def test_occasional_tool_errors_do_not_end_the_client_call(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """Only consecutive turns without a successful call count as errors."""
    both = Turn(calls=(*WRONG.calls, *SUM.calls))
    role = stage.cast(WRONG, both, WRONG, both, Turn("Done."))
    gateway = summing(open_gateway, chat=ChatOptions(max_consecutive_errors=2))
    client = AutoDiscoveryClient(openai, gateway)

    answer = client.chat.completions.create(model=role.model, messages=ASK)

    assert "Done." == answer.choices[0].message.content
    spent = accounting_of(answer)
    assert spent is not None
    assert (5, 6, 4) == (spent.turns, spent.tool_calls, spent.errors)


class RecordingApprover:
    """An approver that records the approvals it is asked for, and answers yes or no."""

    def __init__(self, says: bool) -> None:
        self.says = says
        self.about: list[str] = []

    def __call__(self, approval: Approval) -> bool:
        self.about.append(approval.entity.name)
        return self.says

    async def later(self, approval: Approval) -> bool:
        """Answer the same as `__call__`, as an async function."""
        await asyncio.sleep(0)
        return self(approval)


def destructive_gateway(open_gateway: OpenGateway, ran: list[str], confirm: Any) -> Gateway:
    gateway = open_gateway(options=Options(chat=ChatOptions(confirm=confirm)))

    def wipe() -> str:
        """Wipe the disk."""
        ran.append("wipe")
        return "wiped"

    def look_up() -> str:
        """Look something up."""
        ran.append("look_up")
        return "seen"

    gateway.add_tool(wipe, hints=Hints(destructive=True))
    gateway.add_tool(look_up, hints=Hints(read_only=True))
    return gateway


@pytest.mark.parametrize(
    ("confirm", "about"),
    [("destructive", ["wipe"]), ("not_read_only", ["wipe"]), ("all", ["look_up", "wipe"])],
)
@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("says", [True, False])
async def test_host_is_asked_before_destructive_calls(
    stage: Stage,
    speaker: Speaker,
    open_gateway: OpenGateway,
    confirm: str,
    about: list[str],
    later: bool,
    says: bool,
) -> None:
    """An approver that is a plain function runs in its own thread, so that it may wait for a
    person. An async one runs on the event loop.
    """
    ran: list[str] = []
    host = RecordingApprover(says)
    gateway, approve = (
        destructive_gateway(open_gateway, ran, confirm),
        host.later if later else host,
    )
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway, approve=approve)
    role = stage.cast(Turn(calls=(Call("look_up"), Call("wipe"))), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    assert about == sorted(host.about)
    refused = [] if says else about
    assert sorted({"look_up", "wipe"} - set(refused)) == sorted(ran)
    assert len(refused) == sum("was not approved" in result for result in role.results())


@pytest.mark.parametrize(
    ("confirm", "ran"),
    [
        ("never", ["look_up", "stay_silent", "wipe"]),
        ("destructive", ["look_up", "stay_silent"]),
        ("not_read_only", ["look_up"]),
        ("all", []),
    ],
)
async def test_destructive_call_without_approver_is_refused_with_a_remedy(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, confirm: str, ran: list[str]
) -> None:
    """With the default of `confirm`, only tools marked as destructive are refused, because most
    servers give no hints.
    """
    done: list[str] = []
    gateway = destructive_gateway(open_gateway, done, confirm)
    gateway.add_source(ListSource("shelf", [tool("stay_silent", "Do something.")]))
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway)
    calls = [Call(name) for name in ("look_up", "stay_silent", "wipe")]
    role = stage.cast(Turn(calls=tuple(calls)), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    refused = [result for result in role.results() if 'ChatOptions(confirm=\\"never\\")' in result]
    assert (3 - len(ran), True) == (len(refused), all("approve=" in result for result in refused))
    assert [name for name in ran if name != "stay_silent"] == sorted(done)


async def answer_in_words(_approval: Approval) -> Any:
    return "no"


def answer_in_words_from_a_thread(approval: Approval) -> Any:
    return answer_in_words(approval)


async def raise_error(_approval: Approval) -> Any:
    raise RuntimeError("s3cret")


async def raise_cancelled(_approval: Approval) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("approve", "why"),
    [
        (lambda _: None, "the answer was of type NoneType, not True"),
        (lambda _: "no", "the answer was of type str, not True"),
        (answer_in_words, "the answer was of type str, not True"),
        (answer_in_words_from_a_thread, "the answer was of type str, not True"),
        (raise_error, "asking failed: RuntimeError"),
        # An error that a thread must not raise unchanged (StopIteration).
        (lambda _: next(iter(())), "asking failed: RuntimeError"),
        (raise_cancelled, "asking failed: CancelledError"),
    ],
)
async def test_only_true_approves_a_call(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, approve: Any, why: str
) -> None:
    """A mistake in the host's function must not approve a destructive call. Other calls of the turn
    still run.
    """
    ran: list[str] = []
    gateway = destructive_gateway(open_gateway, ran, "destructive")
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway, approve=approve)
    role = stage.cast(Turn(calls=(Call("wipe"), Call("look_up"))), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    wiped, looked_up = role.results()
    assert (["look_up"], "seen") == (ran, looked_up)
    assert f"'wipe' was not approved ({why}): do not repeat the call" in wiped
    assert "s3cret" not in wiped


WIPES = (Call("wipe"), Call("local/wipe"), Call("call_tool", {"name": "wipe", "arguments": {}}))


def test_only_approved_calls_run_in_five_hundred_conversations(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """Each conversation has one to four calls. A third of the hosts approve, a third deny, and a
    third have no approver.
    """
    ran: list[str] = []
    gateway = destructive_gateway(open_gateway, ran, "destructive")
    approved = 0
    for seed in range(500):
        dice = Random(seed)
        host = RecordingApprover(says=seed % 3 == 0)
        calls = dice.choices((*WIPES, Call("look_up")), k=dice.randint(1, 4))
        role = stage.cast(Turn(calls=tuple(calls)), Turn("Done."))
        client = AutoDiscoveryClient(openai, gateway, approve=None if seed % 3 == 1 else host)
        ran.clear()

        client.chat.completions.create(model=role.model, messages=ASK)

        wipes = sum(name in WIPES for name in calls)
        expected_questions = 0 if seed % 3 == 1 else wipes
        runs = wipes if host.says else 0
        assert (len(calls) - wipes, runs) == (ran.count("look_up"), ran.count("wipe")), seed
        assert ["wipe"] * expected_questions == host.about
        approved += runs

    assert approved > 100


def test_host_is_not_asked_about_invalid_calls(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """Calls with invalid arguments or an unknown tool are answered with an error, as usual."""
    host = RecordingApprover(says=True)
    gateway = summing(open_gateway, chat=ChatOptions(confirm="all"))
    client = AutoDiscoveryClient(openai, gateway, approve=host)
    role = stage.cast(Turn(calls=(Call("add", {"a": "x"}), Call("nothing"))), Turn("Done."))

    client.chat.completions.create(model=role.model, messages=ASK)

    assert [] == host.about
    assert all("error" in result for result in role.results())


def test_accountings_of_several_client_calls_can_be_added(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Each reply has its accounting as an attribute, which is never sent to the service."""
    role = stage.cast(find("add two numbers"), SUM, Turn("3"))
    client = AutoDiscoveryClient(openai, functions)
    answer = client.chat.completions.create(model=role.model, messages=ASK)
    first = accounting_of(answer)
    assert first is not None
    again = client.chat.completions.create(
        model=role.model,
        messages=[*ASK, *first.messages, answer.choices[0].message.to_dict(), *ASK],  # type: ignore[list-item]
    )
    other = accounting_of(again)
    assert other is not None

    both = first + other

    assert (2, 6, 2, 2) == (both.calls, both.turns, both.searches, both.tool_calls)
    assert first.messages + other.messages == both.messages
    assert first.turn_tokens + other.turn_tokens == both.turn_tokens
    assert (6, both.prompt_tokens) == (
        len(both.turn_tokens),
        sum(turn.input or 0 for turn in both.turn_tokens),
    )
    assert 0 < first.definition_share < 10
    assert 0.3 < first.prefix_stability < 1
    assert other.cached_tokens >= first.cached_tokens >= 0
    assert "gateway" not in answer.model_dump()
    assert "add" in role.tool_names[3]
    assert 1.0 == Accounting().prefix_stability
    assert 0.0 == Accounting().definition_share


@pytest.mark.parametrize(
    "options", [{"min_tools": 3}, {"context_share": 0.5, "context_tokens": 10_000}]
)
async def test_small_catalog_can_be_sent_without_meta_tools(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, options: dict[str, Any]
) -> None:
    """All tools are then listed by their own names, and the gateway still answers their calls."""
    gateway = summing(open_gateway, discovery=DiscoveryOptions(**options))
    role = stage.cast(SUM, lambda asked: Turn(str(asked.last_tool_results()[0]["content"])))

    answer = await speaker.ask("whole", gateway, role)

    assert "3" == text(answer)
    assert [("add", "divide")] * 2 == role.tool_names


async def test_preselection_adds_tools_before_the_first_search(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway
) -> None:
    """Tools that match the user's message are listed in the first request, and keep their
    position.
    """
    gateway = summing(open_gateway, discovery=DiscoveryOptions(preselect=1))
    role = stage.cast(SUM, Turn("3"))
    messages: Any = [{"role": "user", "content": "add two numbers"}]

    await speaker.ask("whole", gateway, role, messages=messages)

    assert [("search_tools", "call_tool", "add")] * 2 == role.tool_names


async def test_advisers_are_listed_if_configured(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway
) -> None:
    """Advisers are the tools route, which returns servers, and next, which returns following tools.
    The call tool cannot call them.
    """
    names = DiscoveryOptions(route_name="route_tools", next_name="next_tools")
    gateway = open_gateway(options=Options(discovery=names))
    gateway.add_tool(add, hints=Hints(categories=("arithmetic",)))
    role = stage.cast(
        Turn(
            calls=(
                Call("route_tools", {"query": "add two numbers"}),
                Call("next_tools", {"tools": ["add"]}),
                Call("route_tools", {"query": "add two numbers", "by": "category"}),
                Call("route_tools", {"query": "add", "by": "colour"}),
                Call("route_tools", {}),
                Call("next_tools", {"tools": ["nothing"]}),
                Call("next_tools", {}),
                Call("call_tool", {"name": "route_tools"}),
            )
        ),
        Turn("Done."),
    )

    await speaker.ask("whole", gateway, role)

    assert ("search_tools", "call_tool", "route_tools", "next_tools") == role.tool_names[0]
    routed, coming, by_category, no_way, no_query, unknown, no_tools, by_name = role.results()
    assert '"category":"arithmetic"' in by_category
    assert "'by' is one of: server, category" in no_way
    assert '"server":"local"' in routed
    assert coming.startswith('{"tools"')
    assert "'query' is a text" in no_query
    assert "nothing" in unknown
    assert "'tools' is a list" in no_tools
    assert "called directly" in by_name


@pytest.mark.parametrize("streams", [True, False])
async def test_cancelled_client_call_leaves_no_task_or_tool_running(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, streams: bool
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> str:
        """Wait for ever."""
        loop.call_soon_threadsafe(started.set)
        try:
            await asyncio.Event().wait()
        finally:
            loop.call_soon_threadsafe(ended.set)
        return ""

    gateway = open_gateway()
    gateway.add_tool(wait)
    role = stage.cast(Turn(calls=(Call("wait"), look("wait"))), Turn("Done."))
    before = asyncio.all_tasks()

    async def ask() -> None:
        await speaker.ask("async stream" if streams else "async whole", gateway, role)

    task = asyncio.create_task(ask())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()

    assert before == asyncio.all_tasks()
    assert 1 == len(role.requests)
