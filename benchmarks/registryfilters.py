"""Recall under filters, against an exact search of the eligible entities alone.

    python -m benchmarks.registryfilters --json

A tag decides which share of an invented catalog is eligible, drawn by the hash of each id. The
reference scores every eligible entity and nothing else: by cosine for ``embeddings``, by BM25F for
``lexical``. A recall below 1 means that a filter came too late, or that the scan lost an entity.
Of ``hybrid`` only the number of ineligible results is counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Annotated, TypedDict

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.tables import print_figures
from gateway.embed.cache import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.options import IndexOptions, Options, SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, RankingPolicy, SearchResult

COUNTS = (100, 1000, 10_000)
DENSITIES = (0.01, 0.1, 0.5, 1.0)
LIMITS = (10, 50)
QUERIES = 16
POLICIES: tuple[RankingPolicy, ...] = ("strategy", "lexical", "hybrid")
"""The gateway's strategy is ``embeddings``."""


class Figures(TypedDict):
    """What `measure` returns."""

    recall: dict[str, dict[str, float]]
    """By ranking, then by ``entities/density/limit``: mean share of the exact ranking."""
    lowest: float
    strangers: int
    """How many results were not eligible."""


def measure(
    *,
    counts: Sequence[int] = COUNTS,
    densities: Sequence[float] = DENSITIES,
    limits: Sequence[int] = LIMITS,
    query_count: int = QUERIES,
) -> Figures:
    """Search invented catalogs under filters of several densities.

    Args:
        counts: Sizes of the catalogs.
        densities: Shares that are eligible, in (0, 1]; at least one entity is.
        limits: How many matches are wanted, at most 50.
        query_count: Queries per case.
    """
    figures = Figures(recall={"embeddings": {}, "lexical": {}}, lowest=1.0, strangers=0)
    for count in counts:
        with TemporaryDirectory() as folder:
            work = _measure(figures, Path(folder), count, densities, limits, query_count)
            asyncio.run(work)
    figures["lowest"] = min(
        share for shares in figures["recall"].values() for share in shares.values()
    )
    return figures


async def _measure(
    figures: Figures,
    folder: Path,
    count: int,
    densities: Sequence[float],
    limits: Sequence[int],
    query_count: int,
) -> None:
    embedder = HashingEmbedder()
    texts = synthetic.queries(query_count)
    rows = unit_rows((await embedder.embed(texts, role="query")).vectors)
    options = Options(
        index=IndexOptions(saved=False),
        search=SearchOptions(max_limit=max(limits), spelling=False),
        catalog_store_path=folder / "catalog.sqlite3",
    )
    async with Gateway(
        strategy="embeddings", embedder=embedder, vector_store=MemoryVectorStore(), options=options
    ) as gateway:
        await _register(gateway, count, densities)
        snapshot = await gateway.snapshot(vectors=True)
        for density, limit, policy in product(densities, limits, POLICIES):
            filters = Filters(tags=frozenset({_tag(density)}))
            eligible = snapshot.mask(filters)
            recalls = []
            for text, row in zip(texts, rows, strict=True):
                result = await gateway.search(text, limit=limit, filters=filters, ranking=policy)
                figures["strangers"] += _count_strangers(result, snapshot, eligible)
                positions = {snapshot.position(match.id) for match in result.matches}
                expected = _exact(snapshot, eligible, policy, text, row)[:limit]
                recalls.append(len(positions & {*expected}) / len(expected) if expected else 1.0)
            if policy != "hybrid":
                name = "embeddings" if policy == "strategy" else policy
                figures["recall"][name][f"{count}/{density}/{limit}"] = round(fmean(recalls), 6)


def _tag(density: float) -> str:
    return f"share-{density}"


async def _register(gateway: Gateway, count: int, densities: Sequence[float]) -> None:
    """Add an invented catalog whose entities carry the tags of the densities."""
    listings = [(source, (await source.list_tools()).tools) for source in synthetic.servers(count)]
    ids = [f"{source.server}/{tool.name}" for source, tools in listings for tool in tools]
    drawn = sorted(ids, key=lambda key: hashlib.sha256(key.encode()).digest())
    sizes = {density: max(1, round(density * len(ids))) for density in densities}
    tags = {
        key: tuple(_tag(density) for density in densities if rank < sizes[density])
        for rank, key in enumerate(drawn)
    }
    for source, tools in listings:
        hints = {tool.name: Hints(tags=tags[f"{source.server}/{tool.name}"]) for tool in tools}
        gateway.add_source(source, hints=hints)


def _exact(
    snapshot: Snapshot,
    eligible: NDArray[np.bool_],
    policy: RankingPolicy,
    text: str,
    row: NDArray[np.float32],
) -> list[int]:
    """Rank the eligible by scoring each of them; positions, best first, ties by position."""
    positions = np.flatnonzero(eligible)
    if policy == "lexical":
        scores = snapshot.lexical.match(text).scores[positions]
        positions, scores = positions[scores > 0], scores[scores > 0]
    elif policy == "strategy" and snapshot.vectors is not None:
        scores = snapshot.vectors.rows(positions) @ row
    else:
        return []
    ranked: list[int] = positions[np.lexsort((positions, -scores))].tolist()
    return ranked


def _count_strangers(result: SearchResult, snapshot: Snapshot, eligible: NDArray[np.bool_]) -> int:
    lists = (result.matches, result.prerequisites, result.related, result.next_steps)
    ids = {match.id for matches in lists for match in matches}
    return sum(not eligible[snapshot.position(key)] for key in ids)


def main(
    *,
    counts: Annotated[str, typer.Option(help="Sizes of catalogs, with commas.")] = "100,1000,10000",
    queries: Annotated[int, typer.Option(help="Queries a case.")] = QUERIES,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print."""
    figures = measure(counts=[int(count) for count in counts.split(",")], query_count=queries)
    print_figures(dict(figures), as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
