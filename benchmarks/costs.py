"""What the graph costs, against what the same answer costs elsewhere, in one run.

* Process CPU of all threads, medians of several; both sides of a ratio in the same process.
* A ratio says more than a time: it holds on another machine.
* SPARQL is asked as text, since seeds and words differ each time; without its parsing it is
  measured too, and reported as ``prepared_ms``. An index that has expanded nothing
  before takes ``first_ms``.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TypeAlias

from rdflib import Graph
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.sparql import Query

from benchmarks.synthetic import documents, node, queries, servers
from gateway import Gateway
from graphs import (
    GraphBuilder,
    GraphIndex,
    Role,
    compile_facts,
    expand,
    extract_facts,
    search_text,
    to_turtle,
)

SEEDS = 10
CANDIDATES = 5
"""How many candidates there are to a seed, itself among them."""
ROLES: tuple[Role, ...] = ("related", "next_step", "prerequisite")
_PREFIXES = """
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX schema: <https://schema.org/>
PREFIX tg: <https://w3id.org/tool-gateway/ns#>
"""
_MOVES: Mapping[Role, tuple[str, ...]] = {
    "related": (
        "?seed tg:relatedTo ?node",
        "?node tg:relatedTo ?seed",
        "?seed tg:memberOf ?group . ?node tg:memberOf ?group",
    ),
    "next_step": (
        "?seed tg:nextStep ?node",
        "?seed schema:result ?data . ?node schema:object ?data",
    ),
    "prerequisite": (
        "?seed dcterms:requires ?node",
        "?seed schema:object ?data . ?node schema:result ?data",
    ),
}
_Asked: TypeAlias = tuple[list[str], frozenset[str] | None]


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
    written = documents(sizes.documents)
    index = compile_facts(extract_facts(written))
    text = to_turtle(index.facts)
    rdf = parsed(text)
    yield _expansion(index, rdf, sizes, bounded=True)
    yield _expansion(index, rdf, sizes, bounded=False)
    yield _focused(index, rdf, sizes)
    del written, index, text, rdf
    yield _changing(sizes)
    yield _building(sizes)
    yield _small(sizes)
    yield asyncio.run(_searching(sizes))


COUNT = 7
"""How many figures `measure` gives."""


def parsed(text: str) -> Graph:
    """Parse Turtle with rdflib."""
    return Graph().parse(data=text, format="turtle")


def expanded(
    index: GraphIndex, seeds: Sequence[str], within: frozenset[str] | None = None
) -> set[tuple[str, str]]:
    """Give role and node of every neighbour, one hop away, among those of *within*."""
    return {
        (role, neighbour.node)
        for role in ROLES
        for neighbour in expand(
            index, seeds, role=role, within=within, limit=len(index.network)
        ).neighbours
    }


def neighbour_query(seeds: Sequence[str], within: frozenset[str] | None = None) -> str:
    """Write the SPARQL that answers what `expanded` answers."""
    values = " ".join(f"<{seed}>" for seed in seeds)
    others = ", ".join(f"<{seed}>" for seed in seeds)
    inside = ", ".join(f"<{each}>" for each in sorted(within or ()))
    only = "" if within is None else f"FILTER(?node IN ({inside}))"
    branches = " UNION ".join(
        f'{{ VALUES ?seed {{ {values} }} {move} . BIND("{role}" AS ?role) }}'
        for role, moves in _MOVES.items()
        for move in moves
    )
    return (
        f"{_PREFIXES} SELECT DISTINCT ?role ?node WHERE {{ {branches} "
        f"FILTER(?node NOT IN ({others})) {only} }}"
    )


def contains_query(text: str) -> str:
    """Write the SPARQL that looks for the words of *text* in every name and description."""
    tests = " || ".join(f'CONTAINS(LCASE(?text), "{word}")' for word in text.split())
    return (
        f"{_PREFIXES} SELECT DISTINCT ?node WHERE {{ "
        f"{{ ?node schema:name ?text }} UNION {{ ?node schema:description ?text }} "
        f"FILTER({tests}) }}"
    )


def answered(rdf: Graph, query: str | Query) -> set[tuple[str, ...]]:
    """Answer *query* to the last row."""
    return {tuple(map(str, row)) for row in rdf.query(query) if isinstance(row, tuple)}


def _cpu_ms(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _ratio(name: str, target: float, ours: Sequence[float], theirs: Sequence[float]) -> Cost:
    parts = {"ours_ms": median(ours), "theirs_ms": median(theirs)}
    value = parts["ours_ms"] / parts["theirs_ms"] if parts["theirs_ms"] else float("inf")
    return Cost(name=name, value=value, target=target, unit="ratio", parts=parts)


def _expansion(index: GraphIndex, rdf: Graph, sizes: Sizes, *, bounded: bool) -> Cost:
    ours: list[float] = []
    theirs: list[float] = []
    prepared: list[float] = []
    first: list[float] = []
    for repeat in range(sizes.repeats):
        batch = [
            _asked(repeat + each, sizes.documents, bounded=bounded) for each in range(sizes.batch)
        ]
        ours.append(_cpu_ms(partial(_expand_all, index, batch)) / len(batch))
        # An index remembers the members of its concepts: this one has read none.
        first.append(_cpu_ms(partial(_expand_all, replace(index), batch)) / len(batch))
        query = neighbour_query(*batch[0])
        theirs.append(_cpu_ms(partial(answered, rdf, query)))
        prepared.append(_cpu_ms(partial(answered, rdf, prepareQuery(query))))
    where = f"within {SEEDS * CANDIDATES} candidates" if bounded else "everywhere"
    cost = _ratio(f"expand {SEEDS} seeds {where} / SPARQL", 1 / 200, ours, theirs)
    parts = {**cost.parts, "first_ms": median(first), "prepared_ms": median(prepared)}
    return replace(cost, parts=parts)


def _asked(start: int, among: int, *, bounded: bool) -> _Asked:
    """Give seeds, and as candidates those that stand next to them."""
    starts = [start * 97 + 31 * at for at in range(SEEDS)]
    near = (node((one + step) % among) for one in starts for step in range(CANDIDATES))
    return [node(one % among) for one in starts], frozenset(near) if bounded else None


def _expand_all(index: GraphIndex, batch: Sequence[_Asked]) -> None:
    for seeds, within in batch:
        for role in ROLES:
            expand(index, seeds, role=role, within=within, limit=len(index.network))


def _focused(index: GraphIndex, rdf: Graph, sizes: Sizes) -> Cost:
    ours: list[float] = []
    theirs: list[float] = []
    texts = queries(sizes.repeats * sizes.batch)
    for start in range(0, len(texts), sizes.batch):
        batch = texts[start : start + sizes.batch]
        ours.append(_cpu_ms(partial(_search_all, index, batch)) / len(batch))
        theirs.append(_cpu_ms(partial(answered, rdf, contains_query(batch[0]))))
    return _ratio("focused search / FILTER CONTAINS", 1 / 50, ours, theirs)


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
