"""LangChain: `create_agent` with the middleware, against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway import Gateway
from gateway.adapters.broker import CallerOf
from gateway.discovery.approval import Approve
from gateway.testing import Turn
from gateway.types import ANYONE, Access, Caller
from tests.apps.adapters.conformance import (
    PLAY,
    SONG,
    Cast,
    Host,
    Running,
    answer,
    find,
    tell_time,
    use,
)
from tests.apps.adapters.frameworks import needs

needs("langchain", "langchain", "langchain_openai")

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.config import get_config
from openai import AsyncOpenAI

from gateway.adapters.langchain import GatewayMiddleware

ADA = Caller(scopes=frozenset({"music"}))
ASK: Any = {"messages": [{"role": "user", "content": "Please help me."}]}


def agent_of(
    gateway: Gateway,
    url: str,
    host: Host = (),
    approve: Approve | None = None,
    caller: CallerOf[Any] = ANYONE,
) -> Any:
    """An agent over the scripted server."""
    model = ChatOpenAI(model="scripted", base_url=url, api_key="test", max_retries=0)
    middleware = GatewayMiddleware(gateway, approve=approve, caller=caller)
    return create_agent(model, tools=list(host), middleware=[middleware], context_schema=Caller)


def of_context(runtime: Any) -> Caller:
    """What the run was given as its context."""
    caller: Caller = runtime.context
    return caller


def of_config(_runtime: Any) -> Caller:
    """What the run was given as its configuration."""
    caller: Caller = get_config()["configurable"]["caller"]
    return caller


class TestLangchain(Running):
    """The suite, asked asynchronously."""

    def agent(
        self,
        gateway: Gateway,
        client: AsyncOpenAI,
        host: Host = (),
        approve: Approve | None = None,
        caller: CallerOf[Any] = ANYONE,
    ) -> Any:
        return agent_of(gateway, str(client.base_url), host, approve, caller)

    async def run(self, agent: Any, text: str, before: Any = None) -> tuple[str, Any]:
        asked = [*(before or ()), {"role": "user", "content": text}]
        messages = (await self.asked(agent, {"messages": asked}))["messages"]
        return str(messages[-1].content), messages

    async def asked(self, agent: Any, state: Any) -> Any:
        return await agent.ainvoke(state)


class TestLangchainBlocking(TestLangchain):
    """The suite, asked by a blocking caller."""

    async def asked(self, agent: Any, state: Any) -> Any:
        return agent.invoke(state)


@pytest.mark.parametrize("reads", [of_context, of_config])
async def test_the_caller_comes_with_the_run(
    gateway: Gateway, cast: Cast, reads: Callable[[Any], Caller]
) -> None:
    """One agent serves many callers: by the run's context, or by its configuration."""
    gateway.set_rules({"local/play_music": Access(scopes=frozenset({"music"}))})
    model = cast(PLAY, Turn("Done."), PLAY, Turn("Done."))
    agent = agent_of(gateway, model.base_url, caller=reads)

    for caller in (ADA, ANYONE):
        await agent.ainvoke(ASK, context=caller, config={"configurable": {"caller": caller}})

    assert "playing Yesterday" in answer(model.requests[1])
    assert "playing Yesterday" not in answer(model.requests[3])


async def test_a_result_keeps_what_the_tool_gave(gateway: Gateway, cast: Cast) -> None:
    """The message has the text, its artifact the whole result; a failure is marked as one."""
    model = cast(
        use("call_tool", name="find_invoice", arguments={"number": "INV-7"}),
        use("call_tool", name="find_invoice", arguments={}),
        Turn("Done."),
    )

    done = await agent_of(gateway, model.base_url).ainvoke(ASK)

    found, failed = [message for message in done["messages"] if message.type == "tool"]
    assert ("success", False) == (found.status, found.artifact.structured["paid"])
    assert ("error", None) == (failed.status, failed.artifact)


async def test_an_unknown_tool_is_answered_with_near_names(gateway: Gateway, cast: Cast) -> None:
    """A misspelt name costs one turn."""
    model = cast(find("invoice"), use("find_invoices", number="INV-7"), Turn("Done."))

    done = await agent_of(gateway, model.base_url, [tell_time]).ainvoke(ASK)

    assert "find_invoice" in done["messages"][-2].content


async def test_a_stream_brings_tools_and_words(gateway: Gateway, cast: Cast) -> None:
    """Streamed steps run the same way."""
    model = cast(*SONG)

    updates = agent_of(gateway, model.base_url).astream(ASK, stream_mode="updates")
    steps = [step async for step in updates]

    assert ["model", "tools"] * 2 + ["model"] == [next(iter(step)) for step in steps]
    assert "playing Yesterday" == steps[3]["tools"]["messages"][0].content
