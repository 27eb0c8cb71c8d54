"""What the graph costs: to build, to change, to search.

Process CPU of all threads, medians of several; both sides of a ratio in the same process.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from benchmarks.synthetic import documents, queries, servers
from gateway import Gateway
from graphs import GraphBuilder, GraphIndex, compile_facts, extract_facts, search_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the synthetic data is, and how often a thing is measured."""

    documents: int = 10_000
    few: int = 1_000
    """Tools of the smaller of two builds."""
    many: int = 10_000
    """Tools of the larger one."""
    small: int = 120
    """Tools of the catalog that is searched whole."""
    repeats: int = 5
    batch: int = 50
    """How many expansions or searches are timed as one: the clock is coarse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One figure and its target."""

    name: str
    value: float
    target: float
    unit: str
    """``ratio``, or ``ms``."""
    parts: Mapping[str, float]
    """What was measured, in milliseconds of process CPU."""

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target


def measure(sizes: Sizes) -> Iterator[Cost]:
    """Measure one figure after another, as they are asked for."""
    yield _changing(sizes)
    yield _building(sizes)
    yield _small(sizes)
    yield asyncio.run(_searching(sizes))


COUNT = 4
"""How many figures `measure` yields."""


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _search_all(index: GraphIndex, batch: Sequence[str]) -> None:
    for text in batch:
        search_text(index, text, limit=5)


def _changing(sizes: Sizes) -> Cost:
    written = list(documents(sizes.documents))
    builder = GraphBuilder()
    builder.build(written)
    spent: list[float] = []
    for repeat in range(sizes.repeats):
        written[repeat] = replace(written[repeat], summary=f"something new, {repeat}")
        spent.append(_cpu_ms(partial(builder.build, written)))
    name = f"one of {sizes.documents:,} documents changes"
    return Cost(
        name=name, value=median(spent), target=150.0, unit="ms", parts={"ours_ms": median(spent)}
    )


def _building(sizes: Sizes) -> Cost:
    asyncio.run(_build_ms(sizes.few))  # the first build warms what all builds share
    few: list[float] = []
    many: list[float] = []
    for _ in range((sizes.repeats + 1) // 2):
        few.append(asyncio.run(_build_ms(sizes.few)) / sizes.few)
        many.append(asyncio.run(_build_ms(sizes.many)) / sizes.many)
    parts = {"few_ms_a_tool": median(few), "many_ms_a_tool": median(many)}
    value = parts["many_ms_a_tool"] / parts["few_ms_a_tool"]
    name = f"build, a tool: {sizes.many:,} tools / {sizes.few:,}"
    return Cost(name=name, value=value, target=1.5, unit="ratio", parts=parts)


async def _build_ms(tools: int) -> float:
    async with Gateway(strategy="graph") as gateway:
        for source in servers(tools):
            gateway.add_source(source)
        began = time.process_time()
        await gateway.report()
        return (time.process_time() - began) * 1000


def _small(sizes: Sizes) -> Cost:
    index = compile_facts(extract_facts(documents(sizes.small)))
    texts = queries(sizes.repeats * sizes.batch)
    batches = [texts[at : at + sizes.batch] for at in range(0, len(texts), sizes.batch)]
    value = median(_cpu_ms(partial(_search_all, index, each)) / len(each) for each in batches)
    name = f"focused search over {sizes.small} documents"
    return Cost(name=name, value=value, target=2.0, unit="ms", parts={"ours_ms": value})


async def _searching(sizes: Sizes) -> Cost:
    texts = queries(sizes.repeats * sizes.batch)
    spent: list[float] = []
    async with Gateway(strategy="graph") as gateway:
        for source in servers(sizes.small):
            gateway.add_source(source)
        await gateway.search("warm")
        gc.collect()  # what the other figures left is not a search's to clear away
        for start in range(0, len(texts), sizes.batch):
            began = time.process_time()
            for text in texts[start : start + sizes.batch]:
                await gateway.search(text)
            spent.append((time.process_time() - began) * 1000 / sizes.batch)
    value = median(spent)
    name = f"Gateway.search over {sizes.small} tools"
    return Cost(name=name, value=value, target=2.0, unit="ms", parts={"ours_ms": value})
