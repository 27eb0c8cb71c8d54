"""LangChain: `create_agent` with the middleware, against a real HTTP server."""

from __future__ import annotations

from typing import Any

from gateway import Gateway
from gateway.testing import Turn
from gateway.types import Caller
from tests.apps.adapters.conformance import SONG, Cast, Running, Setup, find, tell_time, use
from tests.apps.adapters.frameworks import needs

needs("langchain", "langchain", "langchain_openai")

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.config import get_config
from openai import AsyncOpenAI

from gateway.adapters.langchain import GatewayMiddleware

ASK: Any = {"messages": [{"role": "user", "content": "Please help me."}]}


def agent_of(setup: Setup, url: str) -> Any:
    """Return an agent of *setup* with the scripted model at *url*."""
    model = ChatOpenAI(model="scripted", base_url=url, api_key="test", max_retries=0)
    middleware = GatewayMiddleware(setup.gateway, approve=setup.approve, caller=setup.caller)
    return create_agent(
        model, tools=list(setup.host), middleware=[middleware], context_schema=Caller
    )


def of_context(runtime: Any) -> Caller:
    """Return the caller in the run's context."""
    caller: Caller = runtime.context
    return caller


def of_config(_runtime: Any) -> Caller:
    """Return the caller in the run's configuration."""
    caller: Caller = get_config()["configurable"]["caller"]
    return caller


class TestLangchain(Running):
    """The common tests with asynchronous runs."""

    readers = (of_context, of_config)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Any:
        return agent_of(setup, str(client.base_url))

    async def run(self, agent: Any, text: str, before: Any = None) -> tuple[str, Any]:
        asked = [*(before or ()), {"role": "user", "content": text}]
        messages = (await self.asked(agent, {"messages": asked}))["messages"]
        return str(messages[-1].content), messages

    async def run_for(self, agent: Any, caller: Caller) -> object:
        config = {"configurable": {"caller": caller}}
        return await self.asked(agent, ASK, context=caller, config=config)

    async def asked(self, agent: Any, state: Any, **named: Any) -> Any:
        return await agent.ainvoke(state, **named)


class TestLangchainBlocking(TestLangchain):
    """The common tests with blocking runs."""

    async def asked(self, agent: Any, state: Any, **named: Any) -> Any:
        return agent.invoke(state, **named)


async def test_tool_message_contains_the_text_and_the_whole_result(
    gateway: Gateway, cast: Cast
) -> None:
    """The whole result is the artifact of the message. Messages of failed calls are marked."""
    model = cast(
        use("call_tool", name="find_invoice", arguments={"number": "INV-7"}),
        use("call_tool", name="find_invoice", arguments={}),
        Turn("Done."),
    )

    done = await agent_of(Setup(gateway), model.base_url).ainvoke(ASK)

    result, failed = [message for message in done["messages"] if message.type == "tool"]
    assert ("success", False) == (result.status, result.artifact.structured["paid"])
    assert ("error", None) == (failed.status, failed.artifact)


async def test_call_of_an_unknown_tool_is_answered_with_similar_names(
    gateway: Gateway, cast: Cast
) -> None:
    model = cast(find("invoice"), use("find_invoices", number="INV-7"), Turn("Done."))

    done = await agent_of(Setup(gateway, [tell_time]), model.base_url).ainvoke(ASK)

    assert "find_invoice" in done["messages"][-2].content


async def test_streamed_run_calls_tools(gateway: Gateway, cast: Cast) -> None:
    model = cast(*SONG)

    updates = agent_of(Setup(gateway), model.base_url).astream(ASK, stream_mode="updates")
    steps = [step async for step in updates]

    assert ["model", "tools"] * 2 + ["model"] == [next(iter(step)) for step in steps]
    assert "playing Yesterday" == steps[3]["tools"]["messages"][0].content
