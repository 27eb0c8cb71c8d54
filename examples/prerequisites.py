"""Prerequisites that a program declares: what must be called before a tool, transitively.

python examples/prerequisites.py
"""

from __future__ import annotations

import asyncio

from gateway import Gateway
from graphs import Document, Link

RULES = (
    Document(id="rule:1", title="send_invoice", requires=(Link(target="create_invoice"),)),
    Document(id="rule:2", title="create_invoice", requires=(Link(target="sign_in"),)),
)
"""Edges between tools by their names; a folder of Markdown files says the same."""


def sign_in(user: str) -> str:
    """Open a session of the accounting system."""
    return f"session of {user}"


def create_invoice(customer: str, amount: float) -> str:
    """Make an invoice for a customer."""
    return f"invoice of {amount} EUR for {customer}"


def send_invoice(number: str) -> str:
    """Send a finished invoice by e-mail."""
    return f"{number} sent"


async def main() -> None:
    """Find a tool, and what it needs first."""
    async with Gateway(strategy="graph", graph=RULES) as gateway:
        for tool in (sign_in, create_invoice, send_invoice):
            gateway.add_tool(tool)
        found = await gateway.search("send a finished invoice by e-mail", limit=1)
        print(f"found: {found.matches[0].name}")
        print(f"call before: {', '.join(match.name for match in found.prerequisites)}")


if __name__ == "__main__":
    asyncio.run(main())
