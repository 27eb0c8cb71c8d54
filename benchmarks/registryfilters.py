"""How much of the eligible set a search finds: held against exact search over those alone.

    python -m benchmarks.registryfilters --json

* Who is eligible is said by a tag that a fixed share of an invented catalog has, drawn by the hash
  of each id.
* The reference looks at every eligible entity and at nobody else: cosines of all rows, BM25F of all
  documents, ranks in both. A recall below 1 means that a filter came too late, or that the scan
  lost somebody.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic import queries, servers
from gateway.embed.cache import MemoryVectorStore, QueryRows
from gateway.embed.protocol import Embedder
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.options import IndexOptions, Options, SearchOptions
from gateway.runtime.vectors import Matrix, Vector, deviations
from gateway.search.pipeline import Search
from gateway.search.rank.parameters import RRF_K
from gateway.search.rank.policies import informative_matches
from gateway.search.rank.server_groups import ServerBoost, ServerGroups
from gateway.search.request import prepare
from gateway.testing import HashingEmbedder
from gateway.types import Filters, Hints, RankingPolicy, SearchResult, Strategy

COUNTS = (100, 1000, 10_000)
DENSITIES = (0.01, 0.1, 0.5, 1.0)
LIMITS = (10, 50)
QUERIES = 16
OPTIONS = SearchOptions(no_match_confidence=0, max_limit=max(LIMITS), spelling=False)
WAYS: Mapping[str, tuple[Strategy, RankingPolicy]] = {
    "embeddings": ("embeddings", "strategy"),
    "hybrid": ("auto", "hybrid"),
    "lexical": ("auto", "lexical"),
}
Positions = NDArray[np.intp]


def tag(density: float) -> str:
    """Give the tag that a share *density* of the catalog has."""
    return f"share-{density}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One catalog with one filter."""

    snapshot: Snapshot
    eligible: Positions
    """Who has the tag, as their hints say it."""
    filters: Filters


def exact(case: Case, way: str, query: str, row: Vector, *, limit: int) -> list[int]:
    """Rank the eligible by looking at each of them: positions, best first, ties by name."""
    spots = case.eligible
    vectors = case.snapshot.vectors
    if vectors is None:
        raise ValueError("the catalog has no vectors")
    cosines = vectors.rows(spots) @ row
    words = case.snapshot.lexical.scores(query)[spots]
    if way == "hybrid":
        near, held = (
            _first(spots, cosines, OPTIONS.pool(limit)),
            _telling(case, query) & (words > 0),
        )
        lists = [
            _ranked(spots[who], _lifted(case, spots[who], deviations(scores)[who]))
            for who, scores in ((near, cosines), (held, words))
        ]
        return _fused(lists, limit=limit)
    who, scores = (cosines > -np.inf, cosines) if way == "embeddings" else (words > 0, words)
    found: list[int] = _ranked(spots[who], scores[who])[:limit].tolist()
    return found


def _first(spots: Positions, scores: Vector, count: int) -> NDArray[np.bool_]:
    """Say who of *spots* is among the best *count*."""
    return np.isin(spots, _ranked(spots, scores)[:count])


def _lifted(case: Case, spots: Positions, scores: Vector) -> Vector:
    """Add what servers say; see `gateway.search.rank.server_groups`. No query here is long."""
    snapshot = case.snapshot
    groups = ServerGroups.of(snapshot.server_ids)
    if groups is None:
        return scores
    boost = ServerBoost(groups=groups, eligibility=snapshot.eligibility, entities=snapshot.entities)
    return boost.boost(spots, scores)


def _telling(case: Case, query: str) -> NDArray[np.bool_]:
    """Say whose words are no chance, of the eligible; see `informative_matches`."""
    index = case.snapshot.lexical
    shares = index.coverage(query)[case.eligible]
    everybody = np.ones(len(shares), dtype=np.bool_)
    return informative_matches(shares, everybody, weight=index.read(query).weight, size=index.size)


def _ranked(spots: Positions, scores: Vector) -> Positions:
    return spots[np.lexsort((spots, -scores))]


def _fused(lists: Sequence[Positions], *, limit: int) -> list[int]:
    scores: dict[int, np.float32] = {}
    for ranked in lists:
        for rank, spot in enumerate(ranked[: OPTIONS.pool(limit)].tolist(), start=1):
            term = np.float32(1) / np.float32(RRF_K + rank)
            scores[spot] = scores.get(spot, np.float32(0)) + term
    return sorted(scores, key=lambda spot: (-scores[spot], spot))[:limit]


class Measured(TypedDict):
    """What `measure` gives."""

    recall: dict[str, dict[str, float]]
    lowest: float
    strangers: int
    full: float


def measure(
    *,
    counts: Sequence[int] = COUNTS,
    densities: Sequence[float] = DENSITIES,
    limits: Sequence[int] = LIMITS,
    asked: int = QUERIES,
    embedder: Embedder | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Search invented catalogs under filters of several densities.

    Args:
        counts: How many entities.
        densities: Which share of them is eligible, in (0, 1]; at least one is.
        limits: How many matches are wanted, at most 50.
        asked: How many queries a case.
        embedder: None is one without a model.
        say: Told of each catalog.

    Returns:
        ``recall``: of each way of ranking, catalog, density and limit, the mean share of the
        exact ranking that was found; ``lowest``: the least of them; ``strangers``: how many were
        found who are not eligible; ``full``: the share of pages as long as the exact ones.
    """
    recall: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    strangers, full = 0, []
    for count in counts:
        say(f"{count} entities")
        for name, shares, lengths, foreign in asyncio.run(
            _measured(count, densities, limits, asked, embedder or HashingEmbedder())
        ):
            way, _, place = name.partition(" ")
            recall[way][place] = round(float(np.mean(shares)), 6)
            strangers += foreign
            full += lengths
    lowest = min(share for shares in recall.values() for share in shares.values())
    return {
        "recall": recall,
        "lowest": lowest,
        "strangers": strangers,
        "full": round(float(np.mean(full)), 6),
    }


_Row = tuple[str, list[float], list[bool], int]
"""A case by its name: each query's recall, whether its page was full, and who was a stranger."""


async def _measured(
    count: int,
    densities: Sequence[float],
    limits: Sequence[int],
    asked: int,
    embedder: Embedder,
) -> list[_Row]:
    snapshot = await _snapshot(count, densities, embedder)
    texts = queries(asked)
    rows = (await embedder.embed(texts, role="query")).vectors
    found: list[_Row] = []
    for density, way, limit in product(densities, WAYS, limits):
        spots = (at for at, each in enumerate(snapshot.entities) if tag(density) in each.hints.tags)
        case = Case(
            snapshot=snapshot,
            eligible=np.fromiter(spots, np.intp),
            filters=Filters(tags=frozenset({tag(density)})),
        )
        place = f"{way} {count}/{density}/{limit}"
        found.append((place, *await _compared(case, way, texts, rows, limit=limit)))
    return found


async def _snapshot(count: int, densities: Sequence[float], embedder: Embedder) -> Snapshot:
    """Index an invented catalog with tags."""
    with TemporaryDirectory() as folder:
        options = Options(
            index=IndexOptions(saved=False), catalog_store_path=Path(folder) / "catalog.sqlite3"
        )
        gateway = Gateway(
            strategy="auto", embedder=embedder, vector_store=MemoryVectorStore(), options=options
        )
        async with gateway:
            listed = [(each, (await each.list_tools()).tools) for each in servers(count)]
            ids = [f"{source.server}/{tool.name}" for source, tools in listed for tool in tools]
            tags = _drawn(ids, densities)
            for source, tools in listed:
                named = {tool.name: tags[f"{source.server}/{tool.name}"] for tool in tools}
                hints = {name: Hints(tags=found) for name, found in named.items()}
                gateway.add_source(source, hints=hints)
            return await gateway.snapshot(vectors=True)


def _drawn(ids: Sequence[str], densities: Sequence[float]) -> dict[str, tuple[str, ...]]:
    """Give each id its tags: a smaller share is a part of a larger one."""
    drawn = sorted(ids, key=lambda each: hashlib.sha256(each.encode()).digest())
    least = {density: max(1, round(density * len(ids))) for density in densities}
    return {
        key: tuple(tag(density) for density in densities if place < least[density])
        for place, key in enumerate(drawn)
    }


async def _compared(
    case: Case, way: str, texts: Sequence[str], rows: Matrix, *, limit: int
) -> tuple[list[float], list[bool], int]:
    shares, lengths, strangers = [], [], 0
    allowed = set(case.eligible.tolist())
    for text, row in zip(texts, rows, strict=True):
        wanted = exact(case, way, text, row, limit=limit)
        found = await _searched(case, way, text, row, limit=limit)
        spots = [case.snapshot.position(match.id) for match in found.matches]
        shares.append(len({*wanted} & {*spots}) / len(wanted) if wanted else 1.0)
        lengths.append(len(spots) == len(wanted))
        others = (*found.prerequisites, *found.related, *found.next_steps)
        every = {*spots, *(case.snapshot.position(each.id) for each in others)}
        strangers += len(every - allowed)
    return shares, lengths, strangers


async def _searched(case: Case, way: str, text: str, row: Vector, *, limit: int) -> SearchResult:
    strategy, ranking = WAYS[way]

    async def embed(texts: Sequence[str], *, dimensions: int | None) -> QueryRows:
        del dimensions
        return QueryRows(vectors=np.stack([row] * len(texts)))

    request, notes = prepare(
        text,
        queries=(),
        context=None,
        context_summary="",
        limit=limit,
        filters=case.filters,
        options=OPTIONS,
        ranking=ranking,
    )
    search = Search(options=OPTIONS, strategy=strategy, embed=embed)
    return await search(case.snapshot, request, notes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print.

    Args:
        arguments: Those of the command; None is the process's own.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="sizes of catalogs")
    parser.add_argument("--queries", type=int, default=QUERIES, help="queries a case")
    given = parser.parse_args(arguments)
    counts = [int(each) for each in given.counts.split(",")]
    told = (lambda _: None) if given.json else print
    found = measure(counts=counts, asked=given.queries, say=told)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for way, shares in found["recall"].items():
        for place, share in shares.items():
            print(f"{way:12} {place:16} {share:.4f}")
    print(f"lowest {found['lowest']}, strangers {found['strangers']}, full {found['full']}")


if __name__ == "__main__":
    main()
