"""The Microsoft Agent Framework: an agent with the middleware, against a real server."""

from __future__ import annotations

import json
from pathlib import Path

from openai import AsyncOpenAI

from gateway import Gateway
from gateway.discovery.approval import Approve
from gateway.testing import Turn
from tests.adapters.conformance import (
    PAID,
    Cast,
    Finding,
    Host,
    answer,
    client_of,
    find,
    last_line,
    use,
)
from tests.adapters.frameworks import needs

needs("agent-framework", "agent_framework", "agent_framework_openai")

from agent_framework import Agent, AgentSession, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

from gateway.adapters.agent_framework import GatewayMiddleware

Clients = type[OpenAIChatClient | OpenAIChatCompletionClient]


class TestAgentFramework(Finding):
    """The suite, over the Responses API: the service keeps the conversation."""

    client: Clients = OpenAIChatClient

    async def converse(
        self, gateway: Gateway, url: str, host: Host, approve: Approve | None = None
    ) -> str:
        async with client_of(url) as client:
            agent = agent_of(gateway, client, host, approve, over=self.client)
            done = await agent.run("Please help me.")
        return str(done.text)


class TestAgentFrameworkChat(TestAgentFramework):
    """The suite, over Chat Completions."""

    client = OpenAIChatCompletionClient


def agent_of(
    gateway: Gateway,
    client: AsyncOpenAI,
    host: Host = (),
    approve: Approve | None = None,
    *,
    over: Clients = OpenAIChatClient,
) -> Agent:
    """An agent over the scripted server."""
    return Agent(
        client=over(model="scripted", async_client=client),
        tools=[tool(each) for each in host],
        middleware=[GatewayMiddleware(gateway, approve=approve)],
    )


async def test_a_later_run_goes_on_with_what_was_found(gateway: Gateway, cast: Cast) -> None:
    """The session remembers, though the service keeps the messages; it can be stored between."""
    model = cast(find("play a song"), Turn("What song?"))

    async with client_of(model.base_url) as client:
        agent = agent_of(gateway, client)
        session = agent.create_session()
        await agent.run("Please help me.", session=session)
        stored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
        await agent.run("Yesterday.", session=stored)

    assert model.requests[2].kept is not None
    assert "play_music" in model.requests[2].tool_names


async def test_runs_do_not_see_what_other_runs_found(gateway: Gateway, cast: Cast) -> None:
    """One agent serves many conversations."""
    model = cast(find("play a song"), Turn("What song?"))

    async with client_of(model.base_url) as client:
        agent = agent_of(gateway, client)
        await agent.run("Please help me.")
        await agent.run("Please help me.")

    assert "play_music" not in model.requests[2].tool_names


async def test_a_streamed_run_goes_the_same_way(gateway: Gateway, cast: Cast) -> None:
    """Updates of the tools come between those of the model."""
    model = cast(find("play a song"), use("play_music", song="Yesterday"), Turn("Enjoy."))

    async with client_of(model.base_url) as client:
        run = agent_of(gateway, client).run("Please help me.", stream=True)
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


def test_the_example_runs(tmp_path: Path) -> None:
    """What a user copies works."""
    assert PAID == last_line("agent_framework_agent.py", tmp_path)
