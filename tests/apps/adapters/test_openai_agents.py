"""The OpenAI Agents SDK: an agent with the gateway for a server, against a real server."""

from __future__ import annotations

from typing import Any

from gateway import AsyncAutoDiscoveryClient, Gateway
from gateway.types import Caller
from tests.apps.adapters.conformance import (
    ADA,
    MUSIC_RULES,
    SONG,
    Cast,
    Running,
    Setup,
    answer,
    client_of,
)
from tests.apps.adapters.frameworks import needs

needs("openai-agents", "agents")

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from gateway.adapters.openai_agents import GatewayServer

Models = type[OpenAIChatCompletionsModel | OpenAIResponsesModel]
set_tracing_disabled(disabled=True)


class TestOpenAIAgents(Running):
    """The suite, over the Responses API."""

    model: Models = OpenAIResponsesModel
    readers = (lambda run: run.context,)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Agent:
        return Agent(
            name="helper",
            model=self.model(model="scripted", openai_client=client),
            tools=[function_tool(each) for each in setup.host],
            mcp_servers=[GatewayServer(setup.gateway, approve=setup.approve, caller=setup.caller)],
        )

    async def run(self, agent: Agent, text: str, before: Any = None) -> tuple[str, Any]:
        done = await Runner.run(agent, [*(before or ()), {"role": "user", "content": text}])
        return str(done.final_output), done.to_input_list()

    async def run_for(self, agent: Agent, caller: Caller) -> object:
        return await Runner.run(agent, "Please help me.", context=caller)


class TestOpenAIAgentsChat(TestOpenAIAgents):
    """The suite, over Chat Completions."""

    model = OpenAIChatCompletionsModel


agent_of = TestOpenAIAgents().agent


async def test_a_streamed_run_goes_the_same_way(gateway: Gateway, cast: Cast) -> None:
    """Events of the tools come between those of the model."""
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        run = Runner.run_streamed(agent_of(Setup(gateway), client), "Please help me.")
        called = [event.name async for event in run.stream_events() if hasattr(event, "name")]

    assert 2 == called.count("tool_output")
    assert "Enjoy." == run.final_output


async def test_the_wrapped_client_serves_the_sdk_too(gateway: Gateway, cast: Cast) -> None:
    """Without an adapter: discovery happens below the SDK, which sees the last reply alone."""
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        wrapped = AsyncAutoDiscoveryClient(client, gateway)
        chat = OpenAIResponsesModel(model="scripted", openai_client=wrapped)
        done = await Runner.run(Agent(name="helper", model=chat), "Please help me.")

    assert "Enjoy." == done.final_output
    assert 1 == len(done.new_items)
    assert "playing Yesterday" in answer(model.requests[2])


async def test_without_a_run_there_is_no_caller_to_read(gateway: Gateway) -> None:
    """What needs a scope stays hidden, unless one caller is named for all."""
    gateway.set_rules(MUSIC_RULES)
    servers = [GatewayServer(gateway, caller=each) for each in (lambda _run: ADA, ADA)]

    results = [await each.call_tool("play_music", {"song": "Yesterday"}) for each in servers]

    assert [True, False] == [each.is_error for each in results]


async def test_a_server_answers_without_a_run(gateway: Gateway) -> None:
    """As the SDK's own tools for looking at servers ask it."""
    server = GatewayServer(gateway)

    await server.connect()
    tools = await server.list_tools()
    result = await server.call_tool("play_music", {"song": "Yesterday"})
    await server.cleanup()

    assert ["search_tools", "call_tool"] == [tool.name for tool in tools]
    assert (False, "playing Yesterday") == (result.is_error, getattr(result.content[0], "text", ""))
    assert [] == (await server.list_prompts()).prompts
    assert [] == (await server.get_prompt("any")).messages
