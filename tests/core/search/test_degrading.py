"""Searches with a failing embedder: each reports how it ranked, and the next search tries again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from gateway.testing import HashingEmbedder, ManualClock
from gateway.types import RankingPolicy, SearchResult, Strategy
from tests.conftest import PATIENT, OpenGateway
from tests.core.search.conftest import RANKINGS, Catalog
from tests.fakes import codes, names, until

COMBINATIONS = list(product(get_args(Strategy), RANKINGS))
QUERIES = ("list the invoices", "book a flight", "send an e-mail")


def expected_mode(strategy: Strategy, ranking: RankingPolicy, *, vectors: bool) -> str:
    """Return the ranking mode that the documentation states for these options."""
    if ranking == "lexical":
        return "lexical"
    if ranking != "strategy":
        return "hybrid" if vectors and strategy != "graph" else "lexical"
    if strategy == "graph" or not vectors:
        return "graph"
    return "vector" if strategy == "embeddings" else "hybrid"


def check_mode(result: SearchResult) -> str:
    """Check that the result's mode agrees with the evidence of its matches, and return the mode."""
    evidence = [match.evidence for match in result.matches]
    near = {match_evidence.vector is not None for match_evidence in evidence}
    assert {result.mode in {"vector", "hybrid"}} == near
    return result.mode


@pytest.mark.parametrize(("strategy", "ranking"), COMBINATIONS)
async def test_each_search_reports_its_ranking_mode(
    open_gateway: OpenGateway, catalog: Catalog, strategy: Strategy, ranking: RankingPolicy
) -> None:
    """The embedder fails for one query and then works again, while the gateway stays open."""
    embedder = HashingEmbedder()
    gateway = open_gateway(catalog, strategy=strategy, embedder=embedder)
    await gateway.report()
    modes = []
    for query, down in [*zip(QUERIES, (False, True, False), strict=True), (QUERIES[1], False)]:
        embedder.fail_with = TimeoutError() if down else None
        result = await gateway.search(query, ranking=ranking)
        modes.append((check_mode(result), result.degraded, result.cached))

    loses_vectors = strategy != "graph" and ranking != "lexical"
    usual_mode, fallback_mode = (
        expected_mode(strategy, ranking, vectors=vectors) for vectors in (True, False)
    )
    is_always_degraded = ranking not in {"strategy", "lexical"} and strategy == "graph"
    assert [
        (usual_mode, is_always_degraded, False),
        (fallback_mode, loses_vectors or is_always_degraded, False),
    ] == modes[:2]
    assert [
        (usual_mode, is_always_degraded, False),
        (usual_mode, is_always_degraded, not (loses_vectors or is_always_degraded)),
    ] == modes[2:]


@pytest.mark.requirement("auto:rule-5")
@pytest.mark.parametrize("ranking", [each for each in RANKINGS if each != "lexical"])
async def test_index_built_without_vectors_gets_them_later(
    open_gateway: OpenGateway, catalog: Catalog, ranking: RankingPolicy
) -> None:
    """The embedder fails while the index is built. Words rank until it works again."""
    embedder, clock = HashingEmbedder(fail_with=ConnectionError()), ManualClock()
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, clock=clock)

    async def search_once() -> SearchResult:
        return await gateway.search("list the invoices", ranking=ranking)

    async def has_recovered() -> bool:
        return (await search_once()).mode == "hybrid"

    before = await search_once()
    embedder.fail_with = None
    soon = await search_once()
    calls = embedder.calls
    clock.tick(PATIENT.upstream.retry_after_s)
    await until(has_recovered)
    after = await search_once()

    assert check_mode(before) == check_mode(soon) == expected_mode("auto", ranking, vectors=False)
    assert ["embedding_failed", "vectors_incomplete"] == codes(before)[:2]
    assert (1, 2) == (calls, gateway.index_builds)
    assert ("hybrid", False) == (check_mode(after), after.degraded)
    assert "list_invoices" in names(after)


@pytest.mark.parametrize("ranking", RANKINGS)
async def test_vectors_rank_if_no_entity_contains_a_word_of_the_query(
    open_gateway: OpenGateway, catalog: Catalog, ranking: RankingPolicy
) -> None:
    embedder = HashingEmbedder(meanings={"facturas": "invoices", "abiertas": "open"})
    options = replace(PATIENT, search=replace(PATIENT.search, no_match_confidence=0))
    gateway = open_gateway(catalog, strategy="auto", embedder=embedder, options=options)

    result = await gateway.search("facturas abiertas", ranking=ranking)

    expected_count = {"lexical": 0, "legacy": 3}.get(ranking, 5)
    assert expected_count == len(result.matches)
    assert ["list_invoices"] == names(result)[:1] or ranking == "lexical"
