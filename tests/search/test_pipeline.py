"""The pipeline where a part is missing that a gateway always has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.options import SearchOptions
from gateway.search.pipeline import Search
from gateway.testing import HashingEmbedder
from tests.fakes import codes, entity, names
from tests.search.conftest import Catalog, auto, run, snapshot_of


@pytest.mark.requirement("edge:no-graph-keeps-vectors")
def test_without_a_graph_vectors_still_rank(catalog: Catalog) -> None:
    """Supplements are missing, the matches are the same, and the result says so."""
    embedder = HashingEmbedder()
    whole = snapshot_of([entity(each) for each in catalog], embedder)
    without = replace(whole, graph=None)

    found = run(auto(embedder), without, "send an e-mail")

    assert ("hybrid", ["graph_unavailable"]) == (found.mode, codes(found)[:1])
    assert names(run(auto(embedder), whole, "send an e-mail")) == names(found)
    assert ((), (), ()) == (found.related, found.next_steps, found.prerequisites)


def test_without_vectors_and_graph_nothing_is_found_and_nothing_raises(catalog: Catalog) -> None:
    """Could not look is another value than nothing found."""
    snapshot = replace(snapshot_of([entity(each) for each in catalog]), graph=None)
    search = Search(options=SearchOptions(), strategy="auto")

    found = run(search, snapshot, "send an e-mail")

    assert ["embedder_missing", "graph_fallback", "graph_unavailable"] == codes(found)
    assert ("graph", ()) == (found.mode, found.matches)


def test_with_nobody_eligible_nothing_is_found_by_any_way(catalog: Catalog) -> None:
    """An empty mask is no special case."""
    embedder = HashingEmbedder()
    entities = [replace(entity(each), status="draft") for each in catalog]

    found = run(auto(embedder), snapshot_of(entities, embedder), "send an e-mail")

    assert ((), ["no_match"], 0) == (found.matches, codes(found), found.counts.window)


def test_an_emptied_result_names_what_might_help(catalog: Catalog) -> None:
    """The nearest tool, the words that nobody holds, and the servers there are."""
    search = Search(options=SearchOptions(no_match_confidence=1.0), strategy="graph")

    found = run(search, snapshot_of([entity(each) for each in catalog]), "send a zebra")

    assert ((), (), ()) == (found.matches, found.related, found.next_steps)
    assert ["no_match"] == codes(found)
    assert found.nearest is not None
    assert 0 < found.nearest.confidence < 1
    assert ("zebra",) == found.unmatched
    assert ("srv",) == found.servers
