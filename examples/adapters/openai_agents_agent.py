"""An agent of the OpenAI Agents SDK that finds its tools, without a key and without a network.

    pip install ".[openai-agents]"
    python examples/adapters/openai_agents_agent.py

A scripted model stands in for a real one.
"""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from gateway import Gateway
from gateway.adapters.openai_agents import GatewayServer
from gateway.testing import Call, ScriptedModel, Turn, script

PLAY = script(
    Turn(calls=(Call("search_tools", {"query": "Is invoice INV-2042 paid?"}),)),
    Turn(calls=(Call("find_invoice", {"number": "INV-2042"}),)),
    Turn("Invoice INV-2042 is still open: 480.50 EUR."),
)


def find_invoice(number: str) -> dict[str, object]:
    """Look up one invoice: the amount, and whether it is paid."""
    return {"number": number, "amount_eur": 480.5, "paid": False}


def tell_time() -> str:
    """Tell the time of day."""
    return "five past ten"


async def main() -> None:
    """Give the agent one tool of its own, and a gateway for the rest."""
    set_tracing_disabled(disabled=True)
    async with Gateway(strategy="graph") as gateway:
        gateway.add_tool(find_invoice)
        with ScriptedModel(PLAY) as model:
            async with AsyncOpenAI(base_url=model.base_url, api_key="unused") as client:
                agent = Agent(
                    name="clerk",
                    model=OpenAIResponsesModel(model="scripted", openai_client=client),
                    tools=[function_tool(tell_time)],
                    mcp_servers=[GatewayServer(gateway)],
                )
                done = await Runner.run(agent, "Is INV-2042 paid?")
            for request in model.requests:
                print("The model sees:", ", ".join(request.tool_names))
    print(done.final_output)


if __name__ == "__main__":
    asyncio.run(main())
