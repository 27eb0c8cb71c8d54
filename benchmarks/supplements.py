"""What the graph adds to the matches in catalogs of 30 tools.

Each catalog holds the tools of some requests of a set, and others. The edges are derived, or
declared: a host that knows its tasks wrote down which tool follows which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from benchmarks.data import Benchmark, Row, sources
from benchmarks.metrics import strings
from gateway import Embedder, Gateway
from gateway.types import SearchResult, Strategy
from graphs import Document, Link

SIZE = 30
CATALOGS = 12
_WANTED = 20
"""Tools of a catalog that some request wants, at most; the others come at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRow:
    """What the searches of all small catalogs of a set had beside their matches."""

    edges: str
    """``derived`` or ``declared``."""
    searches: int
    share: float
    """Of the searches, those with a related tool or a next step."""
    precision: float | None
    """Of these tools, those that the request wants; None without any."""
    filled: float | None
    """Of the wanted tools that are no match, those among them; None if all match."""


def small_catalogs(benchmark: Benchmark) -> Iterator[Benchmark]:
    """Yield up to `CATALOGS` catalogs of `SIZE` tools, the same ones each time."""
    tools = {str(tool["id"]): tool for tool in benchmark.tools}
    left = sorted(benchmark.queries, key=lambda query: _hash(str(query["id"])))
    for number in range(CATALOGS):
        chosen: dict[str, None] = {}
        for query in left:
            wanted = dict.fromkeys(_wanted(query))
            if len(chosen | wanted) <= _WANTED and wanted.keys() <= tools.keys():
                chosen |= wanted
        others = sorted(tools, key=lambda tool: _hash(f"{number} {tool}"))
        held = dict.fromkeys([*chosen, *others][:SIZE])
        asked = [query for query in left if _wanted(query) and held.keys() >= {*_wanted(query)}]
        left = [query for query in left if query not in asked]
        if asked:
            kept = tuple(tool for key, tool in tools.items() if key in held)
            yield replace(benchmark, tools=kept, queries=tuple(asked))


async def measure(
    benchmark: Benchmark, *, strategy: Strategy, embedder: Embedder | None, declared: bool
) -> SmallRow:
    """Ask each small catalog of *benchmark* its requests."""
    documents = step_documents(benchmark) if declared else []
    with_any = added = right = missing = filled = searches = 0
    for small in small_catalogs(benchmark):
        async with Gateway(strategy=strategy, embedder=embedder, graph=documents) as gateway:
            for source in sources(small):
                gateway.add_source(source)
            await gateway.report()
            for query in small.queries:
                result = await gateway.search(str(query["query"]))
                wanted = {benchmark.entity_ids[tool] for tool in _wanted(query)}
                found = _added(result)
                missed = wanted - {match.id for match in result.matches}
                searches += 1
                with_any += bool(found)
                added += len(found)
                right += len(found & wanted)
                missing += len(missed)
                filled += len(found & missed)
    return SmallRow(
        edges="declared" if declared else "derived",
        searches=searches,
        share=with_any / searches if searches else 0.0,
        precision=right / added if added else None,
        filled=filled / missing if missing else None,
    )


def step_documents(benchmark: Benchmark) -> list[Document]:
    """Write down which tool follows which in the tasks of *benchmark*, as a host would."""
    after: dict[str, dict[str, None]] = {}
    for query in benchmark.queries:
        steps = dict.fromkeys(strings(query.get("sequence")) or _wanted(query))
        for first, second in pairwise(tool for tool in steps if tool in benchmark.entity_ids):
            after.setdefault(first, {})[second] = None
    ids = benchmark.entity_ids
    return [
        Document(
            id=f"urn:benchmark:{benchmark.name}:{first}",
            title=ids[first],
            next_steps=tuple(Link(target=ids[second]) for second in seconds),
        )
        for first, seconds in after.items()
    ]


def _added(result: SearchResult) -> set[str]:
    return {match.id for match in (*result.related, *result.next_steps)}


def _wanted(query: Row) -> list[str]:
    return strings(query.get("relevant"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
