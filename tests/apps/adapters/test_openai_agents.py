"""The OpenAI Agents SDK: an agent with the gateway as MCP server, against a real HTTP server."""

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
    """The common tests over the Responses API."""

    model: Models = OpenAIResponsesModel
    readers = (lambda run: run.context,)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Agent:
        return Agent(
            name="helper",
            model=self.model(model="scripted", openai_client=client),
            tools=[function_tool(item) for item in setup.host],
            mcp_servers=[GatewayServer(setup.gateway, approve=setup.approve, caller=setup.caller)],
        )

    async def run(self, agent: Agent, text: str, before: Any = None) -> tuple[str, Any]:
        done = await Runner.run(agent, [*(before or ()), {"role": "user", "content": text}])
        return str(done.final_output), done.to_input_list()

    async def run_for(self, agent: Agent, caller: Caller) -> object:
        return await Runner.run(agent, "Please help me.", context=caller)


class TestOpenAIAgentsChat(TestOpenAIAgents):
    """The common tests over Chat Completions."""

    model = OpenAIChatCompletionsModel


agent_of = TestOpenAIAgents().agent


async def test_streamed_run_calls_tools(gateway: Gateway, cast: Cast) -> None:
    """The stream contains events of tools and of the model in turn."""
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        run = Runner.run_streamed(agent_of(Setup(gateway), client), "Please help me.")
        called = [event.name async for event in run.stream_events() if hasattr(event, "name")]

    assert 2 == called.count("tool_output")
    assert "Enjoy." == run.final_output


async def test_agent_works_with_a_client_that_the_gateway_wraps(
    gateway: Gateway, cast: Cast
) -> None:
    """The wrapped client searches and calls by itself, and the SDK gets only the last reply. No
    adapter is needed.
    """
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        wrapped = AsyncAutoDiscoveryClient(client, gateway)
        chat = OpenAIResponsesModel(model="scripted", openai_client=wrapped)
        done = await Runner.run(Agent(name="helper", model=chat), "Please help me.")

    assert "Enjoy." == done.final_output
    assert 1 == len(done.new_items)
    assert "playing Yesterday" in answer(model.requests[2])


async def test_request_outside_a_run_gets_only_tools_that_need_no_scope(gateway: Gateway) -> None:
    """If the adapter has one caller for all runs, that caller's scopes apply."""
    gateway.set_rules(MUSIC_RULES)
    servers = [GatewayServer(gateway, caller=item) for item in (lambda _run: ADA, ADA)]

    results = [await item.call_tool("play_music", {"song": "Yesterday"}) for item in servers]

    assert [True, False] == [item.is_error for item in results]


async def test_server_lists_and_calls_tools_outside_a_run(gateway: Gateway) -> None:
    """Tools of the SDK list the tools of servers in this way."""
    server = GatewayServer(gateway)

    await server.connect()
    tools = await server.list_tools()
    result = await server.call_tool("play_music", {"song": "Yesterday"})
    await server.cleanup()

    assert ["search_tools", "call_tool"] == [tool.name for tool in tools]
    assert (False, "playing Yesterday") == (result.is_error, getattr(result.content[0], "text", ""))
    assert [] == (await server.list_prompts()).prompts
    assert [] == (await server.get_prompt("any")).messages
