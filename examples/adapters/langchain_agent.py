"""A LangChain agent that finds its tools, without a key and without a network.

    pip install ".[langchain]" langchain-openai
    python examples/adapters/langchain_agent.py

A scripted model stands in for a real one.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from gateway import Gateway
from gateway.adapters.langchain import GatewayMiddleware
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


def main() -> None:
    """Give the agent one tool of its own, and a gateway for the rest."""
    gateway = Gateway(strategy="graph")
    gateway.add_tool(find_invoice)
    with ScriptedModel(PLAY) as model:
        chat = ChatOpenAI(model="scripted", base_url=model.base_url, api_key="unused")
        agent = create_agent(chat, tools=[tell_time], middleware=[GatewayMiddleware(gateway)])
        done = agent.invoke({"messages": [{"role": "user", "content": "Is INV-2042 paid?"}]})
        for request in model.requests:
            print("The model sees:", ", ".join(request.tool_names))
    print(done["messages"][-1].content)
    gateway.close()


if __name__ == "__main__":
    main()
