"""One pass of a gateway over the queries of a benchmark, through the public API."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rich.console import Console
from rich.progress import track

from benchmarks.data import Benchmark, Row, edge_documents, sources
from benchmarks.metrics import STEPS, next_gold
from benchmarks.typos import noisy
from gateway import Embedder, Gateway, Match, Options
from gateway.options import GraphOptions
from gateway.search.normalize import Normalizer
from gateway.types import RankingPolicy, Strategy
from graphs import write

View = Literal["matches", "shown"]
Edges = Literal["given", "derived", "none"]
Way = Strategy | Literal["hybrid"]
"""A strategy, or `auto` with reciprocal rank fusion for its ranking."""
STRATEGIES: tuple[Way, ...] = (*get_args(Strategy), "hybrid")
"""The ways to search that the gateway knows."""
RANKED = 10
"""How many tools a ranking holds for a query: the scorer looks no further."""
NO_EDGES = GraphOptions(
    groups=False,
    phases=False,
    suppliers=False,
    calendar=False,
    checks=False,
    sign_in=False,
    connection=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the gateway said to one query, in the ids of the data."""

    id: str
    matches: tuple[str, ...]
    shown: tuple[str, ...]
    """All lists as one, 10 in all."""
    prerequisites: tuple[str, ...]
    """What must be used before one of the matches."""
    suggested: tuple[str, ...] | None
    """What to use after the first tool of the task; None if the data knows no first tool."""

    def line(self, view: View) -> dict[str, object]:
        """Return the line of a run."""
        found = self.shown if view == "shown" else self.matches
        line: dict[str, object] = {"id": self.id, "ranked": list(found)}
        if self.suggested is not None:
            line["next"] = list(self.suggested)
        return line


def query_texts(benchmark: Benchmark, *, noise: float = 0.0, seed: int = 7) -> dict[str, str]:
    """Return the text of each query, misspelt in a share *noise* of its words."""
    texts = {str(query["id"]): str(query["query"]) for query in benchmark.queries}
    if not noise:
        return texts
    return {key: noisy(text, rate=noise, seed=seed, key=key) for key, text in texts.items()}


async def rank(
    benchmark: Benchmark,
    texts: Mapping[str, str],
    *,
    strategy: Way,
    edges: Edges,
    embedder: Embedder | Literal["local"] = "local",
    normalizer: Normalizer | None = None,
) -> list[Answered]:
    """Ask every query.

    Args:
        benchmark: The catalog and the queries.
        texts: What is asked, by the query's id.
        strategy: How the gateway searches; ``graph`` needs no model.
        edges: ``given``: those of the data as Markdown-LD, with the derived ones beside them;
            ``derived``: only what the gateway finds out; ``none``: no edge at all.
        embedder: Whose vectors are compared, where the strategy takes any.
        normalizer: Rewrites the queries; None leaves them as they are.
    """
    async with opened(
        benchmark, strategy=strategy, edges=edges, embedder=embedder, normalizer=normalizer
    ) as gateway:
        policy: RankingPolicy = "hybrid" if strategy == "hybrid" else "strategy"
        progress = track(
            benchmark.queries,
            description=f"{benchmark.name} {strategy} {edges}",
            console=Console(stderr=True),
            transient=True,
        )
        return [
            await _answered(gateway, benchmark, query, texts[str(query["id"])], policy)
            for query in progress
        ]


@asynccontextmanager
async def opened(
    benchmark: Benchmark,
    *,
    strategy: Way,
    edges: Edges = "given",
    embedder: Embedder | Literal["local"] = "local",
    normalizer: Normalizer | None = None,
) -> AsyncIterator[Gateway]:
    """Open a gateway over the catalog of *benchmark*, its index built; see `rank`."""
    with tempfile.TemporaryDirectory() as folder:
        given = edges == "given" and bool(benchmark.edges)
        if given:
            write(edge_documents(benchmark), Path(folder))
        async with Gateway(
            strategy="auto" if strategy == "hybrid" else strategy,
            embedder=None if strategy == "graph" else embedder,
            normalizer=normalizer,
            graph=Path(folder) if given else None,
            options=Options(graph=NO_EDGES) if edges == "none" else None,
        ) as gateway:
            for source in sources(benchmark):
                gateway.add_source(source)
            await gateway.report()
            yield gateway


async def _answered(
    gateway: Gateway, benchmark: Benchmark, query: Row, text: str, policy: RankingPolicy
) -> Answered:
    result = await gateway.search(text, limit=RANKED, ranking=policy)

    def own(found: tuple[Match, ...]) -> tuple[str, ...]:
        return tuple(benchmark.tool_ids[match.id] for match in found)

    after = next_gold(query)
    suggested: tuple[str, ...] | None = None
    if after and after.first in benchmark.entity_ids:
        first = benchmark.entity_ids[after.first]
        suggested = own(await gateway.next_steps([first], query=text, limit=STEPS))
    return Answered(
        id=str(query["id"]),
        matches=own(result.matches[:RANKED]),
        shown=own(result.shown[:RANKED]),
        prerequisites=own(result.prerequisites),
        suggested=suggested,
    )
