"""What a measured process of `benchmarks.starting` does; it loads nothing else."""

# ruff: noqa: E402  (what is loaded when is what is measured)

from __future__ import annotations

import time

_BEGAN = time.process_time()

import asyncio
import json
import sys
from collections.abc import Sequence
from hashlib import shake_128

import numpy as np

from gateway.embed.protocol import Embedded, EmbedderInfo, Role
from gateway.gateway import Gateway
from gateway.options import Options

_IMPORTED = time.process_time()
QUERY = "export the invoices of a customer as a spreadsheet"
_DIMENSIONS = 384


class DrawnEmbedder:
    """Gives each text a vector by chance, always the same one."""

    def __init__(self) -> None:
        self.info = EmbedderInfo(model_id="drawn", provider="none", dimensions=_DIMENSIONS)

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Draw one vector a text."""
        del role
        # Not by numpy's generators, which are a library of their own to load.
        drawn = b"".join(shake_128(text.encode()).digest(_DIMENSIONS) for text in texts)
        rows = np.frombuffer(drawn, dtype=np.uint8).reshape(len(texts), _DIMENSIONS)
        return Embedded(vectors=rows.astype(np.float32) - np.float32(127.5))


def address(number: int) -> str:
    """Say where the server of this number would be."""
    return f"http://127.0.0.1:9/{number}"


def opened(servers: int, strategy: str) -> Gateway:
    """Open a gateway over so many servers, whose lists were read before."""
    embedder = DrawnEmbedder() if strategy != "graph" else None
    gateway = Gateway(strategy=strategy, embedder=embedder, options=Options())  # type: ignore[arg-type]  # checked there
    for number in range(servers):
        gateway.add_server(f"server-{number}", url=address(number))
    return gateway


async def first(servers: int, strategy: str) -> dict[str, float]:
    """Return the CPU seconds of each part of the way to the first result."""
    began = time.process_time()
    gateway = opened(servers, strategy)
    registered = time.process_time()
    report = await gateway.report()
    loaded = time.process_time()
    found = await gateway.search(QUERY)
    done = time.process_time()
    if not found.matches and found.nearest is None:
        raise AssertionError("the index found nothing")
    await gateway.aclose()
    return {
        "import_s": _IMPORTED - _BEGAN,
        "register_s": registered - began,
        "load_s": loaded - registered,
        "first_search_s": done - loaded,
        "total_s": done,
        "tools": report.tools,
        "saved": float(report.saved),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(first(int(sys.argv[1]), sys.argv[2]))))
