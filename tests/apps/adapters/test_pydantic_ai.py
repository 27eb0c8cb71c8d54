"""Pydantic AI: an agent with the capability, against a real HTTP server."""

from __future__ import annotations

from typing import Any

from gateway import Gateway
from gateway.testing import Turn
from gateway.types import Caller
from tests.apps.adapters.conformance import (
    Cast,
    Running,
    Setup,
    answer,
    client_of,
    find,
    tell_time,
    use,
)
from tests.apps.adapters.frameworks import needs

needs("pydantic-ai", "pydantic_ai")

from openai import AsyncOpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ImageUrl, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from gateway.adapters.pydantic_ai import GatewayCapability

Models = type[OpenAIChatModel | OpenAIResponsesModel]


class TestPydanticAi(Running):
    """The common tests over Chat Completions."""

    model: Models = OpenAIChatModel
    readers = (lambda ctx: ctx.deps,)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Agent:
        provider = OpenAIProvider(openai_client=client)
        return Agent(
            self.model("scripted", provider=provider),
            tools=list(setup.host),
            capabilities=[
                GatewayCapability(setup.gateway, approve=setup.approve, caller=setup.caller)
            ],
        )

    async def run(self, agent: Agent, text: str, before: Any = None) -> tuple[str, Any]:
        asked = [text, ImageUrl(url="https://example.com/sleeve.png")] if before else text
        done = await agent.run(asked, message_history=before)
        return str(done.output), done.all_messages()

    async def run_for(self, agent: Any, caller: Caller) -> object:
        return await agent.run("Please help me.", deps=caller)


class TestPydanticAiResponses(TestPydanticAi):
    """The common tests over the Responses API."""

    model = OpenAIResponsesModel


agent_of = TestPydanticAi().agent


async def test_failed_call_is_marked_and_uses_no_retry_of_the_agent(
    gateway: Gateway, cast: Cast
) -> None:
    model = cast(use("call_tool", name="find_invoice", arguments={}), Turn("Sorry."))

    async with client_of(model.base_url) as client:
        done = await agent_of(Setup(gateway), client).run("Please help me.")

    parts = [part for message in done.all_messages() for part in message.parts]
    assert ["failed"] == [part.outcome for part in parts if isinstance(part, ToolReturnPart)]


async def test_search_tool_of_the_framework_keeps_its_name(gateway: Gateway, cast: Cast) -> None:
    """The gateway's search tool has the same name, so it gets another one."""
    model = cast(
        use("search_tools", queries=["time of day"]),
        use("tell_time"),
        find("play a song", "gateway_search_tools"),
        Turn("Done."),
    )

    async with client_of(model.base_url) as client:
        agent = agent_of(Setup(gateway, [Tool(tell_time, defer_loading=True)]), client)
        await agent.run("Please help me.")

    assert {"search_tools", "gateway_search_tools"} <= set(model.requests[0].tool_names)
    assert "tell_time" not in model.requests[0].tool_names
    assert "five past ten" in answer(model.requests[2])
    assert "play_music" in model.requests[3].tool_names
