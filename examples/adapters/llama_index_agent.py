"""A LlamaIndex agent that finds its tools, without a key and without a network.

    pip install ".[llama-index]" llama-index-llms-mistralai
    python examples/adapters/llama_index_agent.py

A scripted model stands in for a real one: it speaks the wire format that Mistral's service shares.
"""

from __future__ import annotations

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.mistralai import MistralAI

from gateway import Gateway
from gateway.adapters.llama_index import GatewayRetriever
from gateway.testing import Call, ScriptedModel, Turn, script

PLAY = script(
    Turn("One moment.", calls=(Call("find_invoice", {"number": "INV-2042"}),)),
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
    async with Gateway(strategy="graph") as gateway:
        gateway.add_tool(find_invoice)
        with ScriptedModel(PLAY) as model:
            endpoint = model.base_url.removesuffix("/v1")
            agent = FunctionAgent(
                llm=MistralAI(model="mistral-large-latest", api_key="unused", endpoint=endpoint),
                tools=[tell_time],
                tool_retriever=GatewayRetriever(gateway, [tell_time]),
                streaming=False,
            )
            done = await agent.run("Is invoice INV-2042 paid?")
            for request in model.requests:
                print("The model sees:", ", ".join(request.tool_names))
    print(done)


if __name__ == "__main__":
    asyncio.run(main())
