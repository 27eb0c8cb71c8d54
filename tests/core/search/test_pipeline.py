"""The pipeline without parts that a gateway always has, and with a slow vector database."""

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
def test_vectors_rank_without_a_graph(catalog: Catalog) -> None:
    """Supplements are missing, the matches are the same, and a diagnostic reports it."""
    embedder = HashingEmbedder()
    whole = snapshot_of([entity(each) for each in catalog], embedder)
    without = replace(whole, graph=None)

    found = run(auto(embedder), without, "send an e-mail")

    assert ("hybrid", ["graph_unavailable"]) == (found.mode, codes(found)[:1])
    assert names(run(auto(embedder), whole, "send an e-mail")) == names(found)
    assert ((), (), ()) == (found.related, found.next_steps, found.prerequisites)


def test_search_without_vectors_and_graph_is_empty_with_diagnostics(catalog: Catalog) -> None:
    """The diagnostics differ from a search without matches."""
    snapshot = replace(snapshot_of([entity(each) for each in catalog]), graph=None)
    search = Search(options=SearchOptions(), strategy="auto")

    found = run(search, snapshot, "send an e-mail")

    assert ["embedder_missing", "graph_fallback", "graph_unavailable"] == codes(found)
    assert ("graph", ()) == (found.mode, found.matches)


def test_search_without_eligible_entities_is_empty(catalog: Catalog) -> None:
    embedder = HashingEmbedder()
    entities = [replace(entity(each), status="draft") for each in catalog]

    found = run(auto(embedder), snapshot_of(entities, embedder), "send an e-mail")

    assert ((), ["no_match"], 0) == (found.matches, codes(found), found.counts.window)


def test_empty_result_contains_nearest_match_unmatched_words_and_servers(catalog: Catalog) -> None:
    search = Search(options=SearchOptions(no_match_confidence=1.0), strategy="graph")

    found = run(search, snapshot_of([entity(each) for each in catalog]), "send a zebra")

    assert ((), (), ()) == (found.matches, found.related, found.next_steps)
    assert ["no_match"] == codes(found)
    assert found.nearest is not None
    assert 0 < found.nearest.confidence < 1
    assert ("zebra",) == found.unmatched
    assert ("srv",) == found.servers


class Distant(VectorIndex):
    """Vectors in a database that answers when the gate opens."""

    started, gate = threading.Event(), threading.Event()

    @property
    def blocking(self) -> bool:
        return True

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        self.started.set()
        assert self.gate.wait(30)
        return super().search(query, mask=mask, count=count)


@pytest.fixture
def distant(catalog: Catalog) -> Iterator[Snapshot]:
    Distant.started.clear()
    Distant.gate.clear()
    snapshot = snapshot_of([entity(each) for each in catalog], HashingEmbedder())
    vectors = snapshot.vectors
    assert vectors is not None
    matrix = vectors.rows(np.arange(vectors.size))
    yield replace(snapshot, vectors=Distant(matrix=matrix, mean=vectors.mean))
    Distant.gate.set()


async def test_database_search_does_not_block_the_event_loop(
    distant: Snapshot, catalog: Catalog
) -> None:
    """The gate is opened by a task on the same loop. Next steps search the database, too."""
    search = auto(HashingEmbedder())

    async def let_in() -> None:
        await asyncio.to_thread(Distant.started.wait, 30)
        Distant.gate.set()

    found, _ = await asyncio.gather(look_for_mail(search, distant), let_in())
    Distant.started.clear()
    Distant.gate.clear()
    steps, _ = await asyncio.gather(
        suggest_next_steps(
            search, distant, [catalog[0].name], query="send an e-mail", filters=Filters(), limit=3
        ),
        let_in(),
    )

    assert isinstance(distant.vectors, VectorIndex)
    near = replace(distant, vectors=VectorIndex(matrix=distant.vectors.matrix))
    expected = await look_for_mail(search, near)
    assert ("hybrid", names(expected)) == (found.mode, names(found))
    assert 3 == len(steps)


async def look_for_mail(search: Search, snapshot: Snapshot) -> SearchResult:
    request, notes = prepare(SearchArguments("send an e-mail", limit=5), search.options)
    return await search(snapshot, request, notes)


async def test_late_database_answer_falls_back_to_the_graph(distant: Snapshot) -> None:
    """The result must not contain anything from the late answer."""
    found = await look_for_mail(auto(HashingEmbedder(), query_timeout_s=0.05), distant)
    Distant.gate.set()

    assert ("graph", True) == (found.mode, found.degraded)
    assert ["vectors_unavailable", "graph_fallback"] == codes(found)[:2]
    assert "longer than 0.05 s" in found.diagnostics[0].detail
    assert "send_email" == names(found)[0]
