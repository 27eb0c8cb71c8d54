"""Search by meaning in any language, then call what was found; all of it asynchronously.

    python examples/async_search.py

Needs the embedded model: pip install ".[local]".
"""

from __future__ import annotations

import asyncio

from gateway import Gateway, Hints
from gateway.embed.cache import MemoryVectorStore

STOCK = {"bolts": 120, "nuts": 0}


async def count_stock(item: str) -> int:
    """Say how many pieces of an item lie in the warehouse."""
    return STOCK.get(item, 0)


async def order_item(item: str, pieces: int) -> str:
    """Order more pieces of an item from the supplier."""
    return f"{pieces} {item} ordered"


async def main() -> None:
    """Ask in German, call the best match."""
    # Without a store of its own, vectors are kept in the user's cache folder.
    vectors = MemoryVectorStore()
    async with Gateway(strategy="auto", embedder="local", vector_store=vectors) as gateway:
        gateway.add_tool(count_stock, hints=Hints(read_only=True))
        gateway.add_tool(order_item, hints=Hints(destructive=True))
        # The model is loaded and the tools are embedded.
        await gateway.report()
        found = await gateway.search("Wie viele Schrauben liegen noch im Lager?", limit=1)
        best = found.matches[0]
        print(f"{best.id}, confidence {best.confidence:.2f}, ranked by {found.mode}")
        answer = await gateway.invoke(best.id, {"item": "bolts"})
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main())
