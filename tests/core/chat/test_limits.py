"""How far the loop goes on its own, who is asked first, and what is told of it."""

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
def test_a_limit_ends_the_call_and_says_which(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway, name: str, limit: Any, turn: Turn,
    turns: int,
) -> None:  # fmt: skip
    """Iterations, tokens, time, errors in a row."""
    options: dict[str, Any] = {name: limit}
    gateway = summing(open_gateway, chat=ChatOptions(**options))
    gateway.bridge.call(gateway.snapshot)
    role = stage.act(lambda _: turn)

    with pytest.raises(LoopError, match=f"raise ChatOptions.{name}") as caught:
        AutoDiscoveryClient(openai, gateway).chat.completions.create(model=role.model, messages=ASK)

    assert name == caught.value.limit
    assert caught.value.turns == len(role.requests) <= turns


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_that_a_limit_ended_can_be_gone_on_with(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """What it found and what it cost is not lost with it."""
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


def test_an_error_now_and_then_ends_nothing(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """Only turns in a row in which nothing worked count."""
    both = Turn(calls=(*WRONG.calls, *SUM.calls))
    role = stage.cast(WRONG, both, WRONG, both, Turn("Done."))
    gateway = summing(open_gateway, chat=ChatOptions(max_consecutive_errors=2))
    client = AutoDiscoveryClient(openai, gateway)

    answer = client.chat.completions.create(model=role.model, messages=ASK)

    assert "Done." == answer.choices[0].message.content
    spent = accounting_of(answer)
    assert spent is not None
    assert (5, 6, 4) == (spent.turns, spent.tool_calls, spent.errors)


class Asked:
    """A host that is asked, and says no or yes."""

    def __init__(self, says: bool) -> None:
        self.says = says
        self.about: list[str] = []

    def __call__(self, approval: Approval) -> bool:
        self.about.append(approval.entity.name)
        return self.says

    async def later(self, approval: Approval) -> bool:
        """The same, for hosts on a loop."""
        await asyncio.sleep(0)
        return self(approval)


def dangerous(open_gateway: OpenGateway, ran: list[str], confirm: Any) -> Gateway:
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
async def test_the_host_is_asked_before_what_may_destroy(
    stage: Stage,
    speaker: Speaker,
    open_gateway: OpenGateway,
    confirm: str,
    about: list[str],
    later: bool,
    says: bool,
) -> None:
    """On a thread of its own, so that it may wait for a person; or on the loop."""
    ran: list[str] = []
    host = Asked(says)
    gateway, approve = dangerous(open_gateway, ran, confirm), host.later if later else host
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway, approve=approve)
    role = stage.cast(Turn(calls=(Call("look_up"), Call("wipe"))), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    assert about == sorted(host.about)
    refused = [] if says else about
    assert sorted({"look_up", "wipe"} - set(refused)) == sorted(ran)
    assert len(refused) == sum("was not approved" in each for each in role.results())


@pytest.mark.parametrize(
    ("confirm", "ran"),
    [
        ("never", ["look_up", "stay_silent", "wipe"]),
        ("destructive", ["look_up", "stay_silent"]),
        ("not_read_only", ["look_up"]),
        ("all", []),
    ],
)
async def test_what_nobody_can_approve_is_refused_with_the_way_to_allow_it(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, confirm: str, ran: list[str]
) -> None:
    """By default only what says that it destroys: most servers say nothing of their tools."""
    done: list[str] = []
    gateway = dangerous(open_gateway, done, confirm)
    gateway.add_source(ListSource("shelf", [tool("stay_silent", "Do something.")]))
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway)
    calls = [Call(name) for name in ("look_up", "stay_silent", "wipe")]
    role = stage.cast(Turn(calls=tuple(calls)), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    refused = [each for each in role.results() if 'ChatOptions(confirm=\\"never\\")' in each]
    assert (3 - len(ran), True) == (len(refused), all("approve=" in each for each in refused))
    assert [name for name in ran if name != "stay_silent"] == sorted(done)


async def no_in_words(_approval: Approval) -> Any:
    return "no"


def no_in_words_from_a_thread(approval: Approval) -> Any:
    return no_in_words(approval)


async def fails(_approval: Approval) -> Any:
    raise RuntimeError("s3cret")


async def is_cancelled(_approval: Approval) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("approve", "why"),
    [
        (lambda _: None, "the answer was of type NoneType, not True"),
        (lambda _: "no", "the answer was of type str, not True"),
        (no_in_words, "the answer was of type str, not True"),
        (no_in_words_from_a_thread, "the answer was of type str, not True"),
        (fails, "asking failed: RuntimeError"),
        # A StopIteration on a thread.
        (lambda _: next(iter(())), "asking failed: RuntimeError"),
        (is_cancelled, "asking failed: CancelledError"),
    ],
)
async def test_whatever_is_not_a_plain_yes_is_a_no(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, approve: Any, why: str
) -> None:
    """Nothing is destroyed by a mistake in the host; what was called beside it still runs."""
    ran: list[str] = []
    gateway = dangerous(open_gateway, ran, "destructive")
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, gateway, approve=approve)
    role = stage.cast(Turn(calls=(Call("wipe"), Call("look_up"))), Turn("Done."))

    await client.chat.completions.create(model=role.model, messages=ASK)

    wiped, seen = role.results()
    assert (["look_up"], "seen") == (ran, seen)
    assert f"'wipe' was not approved ({why}): do not repeat the call" in wiped
    assert "s3cret" not in wiped


WIPES = (Call("wipe"), Call("local/wipe"), Call("call_tool", {"name": "wipe", "arguments": {}}))


def test_five_hundred_conversations_destroy_only_what_was_approved(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """One to four calls each; a third of the hosts say yes, a third no, a third is not asked."""
    ran: list[str] = []
    gateway = dangerous(open_gateway, ran, "destructive")
    approved = 0
    for seed in range(500):
        dice = Random(seed)
        host = Asked(says=seed % 3 == 0)
        calls = dice.choices((*WIPES, Call("look_up")), k=dice.randint(1, 4))
        role = stage.cast(Turn(calls=tuple(calls)), Turn("Done."))
        client = AutoDiscoveryClient(openai, gateway, approve=None if seed % 3 == 1 else host)
        ran.clear()

        client.chat.completions.create(model=role.model, messages=ASK)

        wipes = sum(each in WIPES for each in calls)
        asked = 0 if seed % 3 == 1 else wipes
        runs = wipes if host.says else 0
        assert (len(calls) - wipes, runs) == (ran.count("look_up"), ran.count("wipe")), seed
        assert ["wipe"] * asked == host.about
        approved += runs

    assert approved > 100


def test_nobody_is_asked_about_a_call_that_cannot_go_out(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway
) -> None:
    """Wrong arguments and unknown tools are answered as ever."""
    host = Asked(says=True)
    gateway = summing(open_gateway, chat=ChatOptions(confirm="all"))
    client = AutoDiscoveryClient(openai, gateway, approve=host)
    role = stage.cast(Turn(calls=(Call("add", {"a": "x"}), Call("nothing"))), Turn("Done."))

    client.chat.completions.create(model=role.model, messages=ASK)

    assert [] == host.about
    assert all("error" in each for each in role.results())


def test_accountings_add_up_to_that_of_a_conversation(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Per call on the reply, per conversation by adding; nothing of it is ever sent."""
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
async def test_a_small_catalog_may_go_out_whole(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, options: dict[str, Any]
) -> None:
    """Without meta-tools, and its calls are ours all the same."""
    gateway = summing(open_gateway, discovery=DiscoveryOptions(**options))
    role = stage.cast(SUM, lambda asked: Turn(str(asked.last_tool_results()[0]["content"])))

    answer = await speaker.ask("whole", gateway, role)

    assert "3" == text(answer)
    assert [("add", "divide")] * 2 == role.tool_names


async def test_a_preselection_saves_the_first_search(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway
) -> None:
    """What the user's words find is there at once, and stays where it is."""
    gateway = summing(open_gateway, discovery=DiscoveryOptions(preselect=1))
    role = stage.cast(SUM, Turn("3"))
    messages: Any = [{"role": "user", "content": "add two numbers"}]

    await speaker.ask("whole", gateway, role, messages=messages)

    assert [("search_tools", "call_tool", "add")] * 2 == role.tool_names


async def test_two_more_meta_tools_on_demand(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway
) -> None:
    """Servers before tools, and what the graph says comes next; neither is callable by name."""
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
async def test_a_call_that_is_cancelled_leaves_nothing_behind(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, streams: bool
) -> None:
    """Neither the tool's work nor a task that waits for it."""
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
