"""The Microsoft Agent Framework: an agent with the middleware, against a real HTTP server."""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI

from gateway import Gateway
from gateway.testing import Turn
from gateway.types import Caller
from tests.apps.adapters.conformance import SONG, Cast, Running, Setup, answer, client_of
from tests.apps.adapters.frameworks import needs

needs("agent-framework", "agent_framework", "agent_framework_openai")

from agent_framework import Agent, AgentSession, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

from gateway.adapters.agent_framework import GatewayMiddleware

Clients = type[OpenAIChatClient | OpenAIChatCompletionClient]


class AgentFramework(Running):
    """The common tests with the Agent Framework. A session stores found tools, and can be saved
    between two runs.
    """

    client: Clients
    readers = (lambda context: context.kwargs["caller"],)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Agent:
        return Agent(
            client=self.client(model="scripted", async_client=client),
            tools=[tool(item) for item in setup.host],
            middleware=[
                GatewayMiddleware(setup.gateway, approve=setup.approve, caller=setup.caller)
            ],
        )

    async def run(self, agent: Agent, text: str, before: Any = None) -> tuple[str, Any]:
        session = AgentSession.from_dict(json.loads(before)) if before else agent.create_session()
        done = await agent.run(text, session=session)
        return str(done.text), json.dumps(session.to_dict())

    async def run_for(self, agent: Agent, caller: Caller) -> object:
        return await agent.run("Please help me.", client_kwargs={"caller": caller})


class TestAgentFrameworkChat(AgentFramework):
    """The common tests over Chat Completions."""

    client = OpenAIChatCompletionClient


class TestAgentFramework(AgentFramework):
    """The common tests over the Responses API."""

    client = OpenAIChatClient

    async def test_session_stores_found_tools_if_the_service_stores_the_messages(
        self, gateway: Gateway, cast: Cast
    ) -> None:
        """A later request then contains only new messages, without the search result."""
        request = await self.request_of_second_run(gateway, cast, continues=True)

        assert request.stored is not None

    async def test_found_tools_are_stored_with_the_run_if_there_is_no_session(
        self, gateway: Gateway, cast: Cast
    ) -> None:
        model = cast(*SONG)

        async with client_of(model.base_url) as client:
            done = await self.agent(Setup(gateway), client).run("Please help me.")

        assert "Enjoy." == done.text
        assert "playing Yesterday" in answer(model.requests[2])


agent_of = TestAgentFramework().agent


async def test_streamed_run_calls_tools(gateway: Gateway, cast: Cast) -> None:
    """The stream contains updates of tool calls and of the model in turn."""
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        run = agent_of(Setup(gateway), client).run("Please help me.", stream=True)
        updates = [update async for update in run]
        done = await run.get_final_response()

    results = [part for each in updates for part in each.contents if part.type == "function_result"]
    assert ("Enjoy.", 2) == (done.text, len(results))
    assert "playing Yesterday" in answer(model.requests[2])


async def test_tools_that_the_model_service_runs_are_passed_unchanged(
    gateway: Gateway, cast: Cast
) -> None:
    model = cast(Turn("Sunny."))

    async with client_of(model.base_url) as client:
        chat_client = OpenAIChatClient(model="scripted", async_client=client)
        hosted = chat_client.get_web_search_tool()
        agent = Agent(client=chat_client, tools=[hosted], middleware=[GatewayMiddleware(gateway)])
        await agent.run("Please help me.")

    kinds = [tool["type"] for tool in model.requests[0].tools]
    assert ["function", "function"] == [kind for kind in kinds if kind == "function"]
    assert 3 == len(kinds)
