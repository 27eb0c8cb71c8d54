"""Searches over a snapshot without a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest

from gateway.embed import text_key
from gateway.gateway import Gateway
from gateway.index import Snapshot, SnapshotCompiler
from gateway.options import GraphOptions, SearchOptions
from gateway.plugin_manager import load_plugins
from gateway.runtime.vectors import Vector
from gateway.search import Search, SearchArguments, all_rankings, prepare
from gateway.testing import HashingEmbedder
from gateway.types import Entity, Filters, RankingPolicy, SearchResult, ToolDefinition
from graphs import Document
from graphs.lexical import Hits
from tests.conftest import OpenGateway
from tests.fakes import compile_snapshot, plain_embed

Catalog = tuple[ToolDefinition, ...]
POLICIES = all_rankings(
    {name: make() for name, make in load_plugins(None).tables("register_rankings").items()}
)
"""Ranking policies of the core and of installed plugins, keyed by name."""
RANKINGS: tuple[RankingPolicy, ...] = tuple(
    each for each in get_args(RankingPolicy) if each == "strategy" or each in POLICIES
)


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
def gateway(open_gateway: OpenGateway, catalog: Catalog, embedder: HashingEmbedder) -> Gateway:
    """A gateway with a dozen tools."""
    return open_gateway(catalog, strategy="auto", embedder=embedder)


def snapshot_of(
    entities: Sequence[Entity],
    embedder: HashingEmbedder | None = None,
    *,
    documents: Sequence[Document] = (),
) -> Snapshot:
    """Compile a snapshot, with vectors if there is an embedder."""
    rows = rows_of(entities, embedder) if embedder is not None else {}
    return compile_snapshot(entities, rows=rows, documents=documents)


def rows_of(entities: Sequence[Entity], embedder: HashingEmbedder) -> dict[str, Vector]:
    """Return the vectors of all texts of *entities*, keyed by text key."""
    compiler = SnapshotCompiler(GraphOptions())
    compiler.prepare(entities)
    texts = compiler.vectors.missing_texts
    rows = zip(texts, embedder.vectors(texts), strict=True) if texts else ()
    return {text_key(text): row for text, row in rows}


def lexical_scores(words: Sequence[float], *, coverage: Sequence[float]) -> Hits:
    """Return hits with the BM25F score and the share of query words of each entity."""
    return Hits(
        terms=(), scores=np.asarray(words, np.float32), coverage=np.asarray(coverage, np.float32)
    )


def auto(embedder: HashingEmbedder, **options: float) -> Search:
    return Search(
        options=SearchOptions(**options),  # type: ignore[arg-type]  # floats for counts
        strategy="auto",
        embed=plain_embed(embedder),
    )


def run(
    search: Search,
    snapshot: Snapshot,
    query: str | None,
    *,
    queries: Sequence[str] = (),
    limit: int = 5,
    filters: Filters | None = None,
    ranking: RankingPolicy = "strategy",
    diversify: bool = False,
) -> SearchResult:
    """Check the arguments as a gateway does, and search once."""
    arguments = SearchArguments(
        query,
        queries=queries,
        limit=limit,
        filters=filters or Filters(),
        ranking=ranking,
        diversify=diversify,
    )
    request, notes = prepare(arguments, search.options)
    return asyncio.run(search(snapshot, request, notes))
