"""The Microsoft Agent Framework: an agent with the middleware, against a real server."""

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
    """The suite. The session remembers, and can be stored between two runs."""

    client: Clients
    readers = (lambda context: context.kwargs["caller"],)

    def agent(self, setup: Setup, client: AsyncOpenAI) -> Agent:
        return Agent(
            client=self.client(model="scripted", async_client=client),
            tools=[tool(each) for each in setup.host],
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
    """The suite, over Chat Completions."""

    client = OpenAIChatCompletionClient


class TestAgentFramework(AgentFramework):
    """The suite, over the Responses API."""

    client = OpenAIChatClient

    async def test_the_service_keeps_the_messages(self, gateway: Gateway, cast: Cast) -> None:
        """A later request does not bring what was found: the session alone knows of it."""
        asked = await self.twice(gateway, cast, later=True)

        assert asked.stored is not None

    async def test_an_agent_runs_without_a_session(self, gateway: Gateway, cast: Cast) -> None:
        """What is found is remembered with the tools of the run."""
        model = cast(*SONG)

        async with client_of(model.base_url) as client:
            done = await self.agent(Setup(gateway), client).run("Please help me.")

        assert "Enjoy." == done.text
        assert "playing Yesterday" in answer(model.requests[2])


agent_of = TestAgentFramework().agent


async def test_a_streamed_run_goes_the_same_way(gateway: Gateway, cast: Cast) -> None:
    """Updates of the tools come between those of the model."""
    model = cast(*SONG)

    async with client_of(model.base_url) as client:
        run = agent_of(Setup(gateway), client).run("Please help me.", stream=True)
        updates = [update async for update in run]
        done = await run.get_final_response()

    results = [part for each in updates for part in each.contents if part.type == "function_result"]
    assert ("Enjoy.", 2) == (done.text, len(results))
    assert "playing Yesterday" in answer(model.requests[2])


async def test_the_services_own_tools_are_the_hosts(gateway: Gateway, cast: Cast) -> None:
    """A tool that the service runs passes through as it is."""
    model = cast(Turn("Sunny."))

    async with client_of(model.base_url) as client:
        asked = OpenAIChatClient(model="scripted", async_client=client)
        hosted = asked.get_web_search_tool()
        agent = Agent(client=asked, tools=[hosted], middleware=[GatewayMiddleware(gateway)])
        await agent.run("Please help me.")

    kinds = [tool["type"] for tool in model.requests[0].tools]
    assert ["function", "function"] == [kind for kind in kinds if kind == "function"]
    assert 3 == len(kinds)
