"""Discovery for Anthropic's Messages API, by hand: what is sent, and what answers a search.

    python examples/adapters/anthropic_blocks.py

No service is asked: the call below is what a model would write.
"""

from __future__ import annotations

import asyncio
import json

from gateway import Gateway
from gateway.adapters.anthropic import definition, to_anthropic, tool_call, tool_result
from gateway.discovery.call_handler import handle_call
from gateway.discovery.meta_tools import catalog_digest, meta_names, meta_tools
from gateway.discovery.tool_list import ToolList

USE = {"type": "tool_use", "id": "toolu_1", "name": "search_tools", "input": {"query": "invoice"}}


def find_invoice(number: str) -> dict[str, object]:
    """Look up one invoice: the amount, and whether it is paid."""
    return {"number": number, "amount_eur": 480.5, "paid": False}


async def main() -> None:
    """Write the tools of a request, then answer a search."""
    async with Gateway(strategy="graph") as gateway:
        gateway.add_tool(find_invoice)
        options = gateway.options.discovery
        entities = await gateway.list_tools()
        names = meta_names(options, ())
        told = catalog_digest(entities, budget=options.digest_token_budget)
        search, _ = meta_tools(names, told)
        tools = [to_anthropic(search), *(definition(each, options) for each in entities)]
        print(json.dumps(tools, indent=2))
        done = await handle_call(gateway, ToolList(names=names), tool_call(USE))
        print(json.dumps(tool_result(done, options)))


if __name__ == "__main__":
    asyncio.run(main())
