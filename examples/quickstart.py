"""A conversation over two Python functions, without a key and without a network.

    python examples/quickstart.py

A scripted model stands in for a real one. With a key, leave it out: `OpenAI()` is the client.
"""

from __future__ import annotations

from openai import OpenAI

from gateway import AutoDiscoveryClient, Gateway
from gateway.testing import Call, ScriptedModel, Turn, script

PLAY = script(
    Turn(calls=(Call("search_tools", {"query": "Is invoice INV-2042 paid?"}),)),
    Turn(calls=(Call("find_invoice", {"number": "INV-2042"}),)),
    Turn("Invoice INV-2042 is still open: 480.50 EUR."),
)
"""What the stand-in says: it searches, calls what it found, and answers."""


def find_invoice(number: str) -> dict[str, object]:
    """Look up one invoice: the amount, and whether it is paid.

    Args:
        number: The invoice number, for instance INV-2042.
    """
    return {"number": number, "amount_eur": 480.5, "paid": False}


def convert_length(metres: float) -> float:
    """Convert a length from metres to feet."""
    return metres / 0.3048


def main() -> None:
    """Register the functions, then chat as with any OpenAI client."""
    gateway = Gateway(strategy="graph")
    gateway.add_tool(find_invoice)
    gateway.add_tool(convert_length)
    with ScriptedModel(PLAY) as model, OpenAI(base_url=model.base_url, api_key="unused") as openai:
        client = AutoDiscoveryClient(openai, gateway)
        reply = client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "Is INV-2042 paid?"}]
        )
        for request in model.requests:
            print("The model sees:", ", ".join(request.tool_names))
    print(reply.choices[0].message.content)
    gateway.close()


if __name__ == "__main__":
    main()
