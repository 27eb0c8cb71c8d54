"""What policies and the audit log cost a call and a search.

    python -m benchmarks.auditing --json

The same gateway is measured with nothing, with 20 policies, and with the audit log on as well:
calls of a function in this process, one after another and eight at once, and searches of 3,000
tools whose results no cache holds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from benchmarks.tables import print_figures
from gateway.gateway import Gateway
from gateway.options import AccessPolicy, AuditOptions, CacheOptions, Options
from gateway.types import Caller

TOOLS = 3_000
POLICIES = tuple(
    AccessPolicy(action="deny", tools=(f"*/tool_{at}_*",), users=(f"team{at}_*",))
    for at in range(20)
)
CALLER = Caller(user="team7_ada", tenant="acme")


def main(
    *,
    calls: Annotated[int, typer.Option(help="Of each kind.")] = 400,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    print_figures(asyncio.run(measure(calls)), as_json=as_json)


async def measure(count: int) -> Mapping[str, float]:
    """Return milliseconds for a call and for a search, by what is on."""
    figures: dict[str, float] = {}
    plain = Options(cache=CacheOptions(result_items=0))
    policed = replace(plain, policies=POLICIES)
    audited = replace(policed, audit=AuditOptions(record="on"))
    for name, options in {"plain": plain, "policies": policed, "audited": audited}.items():
        with tempfile.TemporaryDirectory() as folder:
            placed = replace(options, catalog_store_path=Path(folder) / "catalog.sqlite3")
            async with Gateway(strategy="graph", options=placed) as gateway:
                figures |= {
                    f"{name}_{key}": each for key, each in (await _one(gateway, count)).items()
                }
    return {key: round(value, 3) for key, value in figures.items()}


async def _one(gateway: Gateway, count: int) -> Mapping[str, float]:
    for at in range(TOOLS):
        gateway.add_tool(_echo, name=f"tool_{at % 40}_{at}", description=f"Handle the thing {at}.")
    await gateway.report()

    async def call() -> None:
        await gateway.invoke("local/tool_1_1", {"text": "x"}, caller=CALLER)

    async def search() -> None:
        await gateway.search("handle the thing", caller=CALLER)

    async def eight() -> None:
        await asyncio.gather(*(call() for _ in range(8)))

    return {
        "call_ms": await _median_ms(call, count),
        "eight_calls_ms": await _median_ms(eight, count // 8),
        "search_ms": await _median_ms(search, count // 4),
    }


async def _median_ms(work: Callable[[], Awaitable[None]], count: int) -> float:
    await work()
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        seconds.append(time.perf_counter() - began)
    return 1000 * median(seconds)


async def _echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    typer.run(main)
