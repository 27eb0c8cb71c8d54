"""Searches without components that a gateway always has, and with a slow vector database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from gateway.index import Candidates, Mask, Snapshot, VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.search import Search, SearchArguments, prepare, suggest_next_steps
from gateway.testing import HashingEmbedder
from gateway.types import Filters, SearchResult
from tests.core.search.conftest import Catalog, auto, run, snapshot_of
from tests.fakes import codes, entity, names


@pytest.mark.requirement("edge:no-graph-keeps-vectors")
def test_search_without_a_graph_finds_matches_by_vectors(catalog: Catalog) -> None:
    """The matches are the same as with a graph. Supplements are missing, and a diagnostic
    reports it.
    """
    embedder = HashingEmbedder()
    with_graph = snapshot_of([entity(definition) for definition in catalog], embedder)
    without_graph = replace(with_graph, graph=None)

    result = run(auto(embedder), without_graph, "send an e-mail")

    assert ("hybrid", ["graph_unavailable"]) == (result.mode, codes(result)[:1])
    assert names(run(auto(embedder), with_graph, "send an e-mail")) == names(result)
    assert ((), (), ()) == (result.related, result.next_steps, result.prerequisites)


def test_search_without_vectors_and_graph_is_empty_with_diagnostics(catalog: Catalog) -> None:
    """The diagnostics differ from those of a search that finds no match."""
    snapshot = replace(snapshot_of([entity(definition) for definition in catalog]), graph=None)
    search = Search(options=SearchOptions(), strategy="auto")

    result = run(search, snapshot, "send an e-mail")

    assert ["embedder_missing", "graph_fallback", "graph_unavailable"] == codes(result)
    assert ("graph", ()) == (result.mode, result.matches)


def test_search_without_eligible_entities_is_empty(catalog: Catalog) -> None:
    embedder = HashingEmbedder()
    entities = [replace(entity(definition), status="draft") for definition in catalog]

    result = run(auto(embedder), snapshot_of(entities, embedder), "send an e-mail")

    assert ((), ["no_match"], 0) == (result.matches, codes(result), result.counts.window)


def test_empty_result_contains_the_nearest_match_unmatched_words_and_servers(
    catalog: Catalog,
) -> None:
    search = Search(options=SearchOptions(no_match_confidence=1.0), strategy="graph")

    result = run(
        search, snapshot_of([entity(definition) for definition in catalog]), "send a zebra"
    )

    assert ((), (), ()) == (result.matches, result.related, result.next_steps)
    assert ["no_match"] == codes(result)
    assert result.nearest is not None
    assert 0 < result.nearest.confidence < 1
    assert ("zebra",) == result.unmatched
    assert ("srv",) == result.servers


class SlowVectors(VectorIndex):
    """Vectors in a simulated database that answers only once the gate is open."""

    started, gate = threading.Event(), threading.Event()

    @property
    def blocking(self) -> bool:
        return True

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        self.started.set()
        assert self.gate.wait(30)
        return super().search(query, mask=mask, count=count)


@pytest.fixture
def slow_snapshot(catalog: Catalog) -> Iterator[Snapshot]:
    SlowVectors.started.clear()
    SlowVectors.gate.clear()
    snapshot = snapshot_of([entity(definition) for definition in catalog], HashingEmbedder())
    vectors = snapshot.vectors
    assert vectors is not None
    matrix = vectors.rows(np.arange(vectors.size))
    yield replace(snapshot, vectors=SlowVectors(matrix=matrix, mean=vectors.mean))
    SlowVectors.gate.set()


async def test_slow_vector_database_does_not_block_the_event_loop(
    slow_snapshot: Snapshot, catalog: Catalog
) -> None:
    """A task on the same loop opens the gate. Next steps query the database, too."""
    search = auto(HashingEmbedder())

    async def open_gate() -> None:
        await asyncio.to_thread(SlowVectors.started.wait, 30)
        SlowVectors.gate.set()

    result, _ = await asyncio.gather(search_mail(search, slow_snapshot), open_gate())
    SlowVectors.started.clear()
    SlowVectors.gate.clear()
    steps, _ = await asyncio.gather(
        suggest_next_steps(
            search,
            slow_snapshot,
            [catalog[0].name],
            query="send an e-mail",
            filters=Filters(),
            limit=3,
        ),
        open_gate(),
    )

    assert isinstance(slow_snapshot.vectors, VectorIndex)
    near = replace(slow_snapshot, vectors=VectorIndex(matrix=slow_snapshot.vectors.matrix))
    expected = await search_mail(search, near)
    assert ("hybrid", names(expected)) == (result.mode, names(result))
    assert 3 == len(steps)


async def search_mail(search: Search, snapshot: Snapshot) -> SearchResult:
    request, notes = prepare(SearchArguments("send an e-mail", limit=5), search.options)
    return await search(snapshot, request, notes)


async def test_graph_ranks_if_the_vector_database_answers_late(slow_snapshot: Snapshot) -> None:
    """The result must not contain any data of the late answer."""
    result = await search_mail(auto(HashingEmbedder(), query_timeout_s=0.05), slow_snapshot)
    SlowVectors.gate.set()

    assert ("graph", True) == (result.mode, result.degraded)
    assert ["vectors_unavailable", "graph_fallback"] == codes(result)[:2]
    assert "longer than 0.05 s" in result.diagnostics[0].detail
    assert "send_email" == names(result)[0]
