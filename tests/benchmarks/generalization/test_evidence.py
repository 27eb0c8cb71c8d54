"""The evidence of a set, held against searches through the public API."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from benchmarks.data import read
from benchmarks.generalization.evidence import POOL, Evidence, load_evidence
from benchmarks.generalization.scoring import judge, rankings
from benchmarks.metrics import summary
from benchmarks.ranking import query_texts, rank
from gateway.testing import HashingEmbedder


def test_the_products_scores_rank_as_the_public_api_does(
    sets: list[Evidence], folders: list[Path], embedder: HashingEmbedder
) -> None:
    """Query by query, and so in recall@5; exact names, clauses and spelling are in it."""
    for evidence, folder in zip(sets, folders, strict=True):
        benchmark = read(folder)
        searched = asyncio.run(
            rank(
                benchmark, query_texts(benchmark), strategy="auto", edges="given", embedder=embedder
            )
        )
        figures = summary(benchmark.queries, [each.line("matches") for each in searched]).figures
        wanted = [each.matches for each in searched if each.id != "none"]

        assert wanted == [tuple(found) for found in rankings(evidence, evidence.product)]
        assert figures["recall@5"] == judge(evidence, evidence.product).recall
        assert figures["ndcg@10"] == judge(evidence, evidence.product).ndcg


def test_evidence_has_a_row_for_each_query_with_a_relevant_tool(sets: list[Evidence]) -> None:
    """A long request has clauses, a misspelt one a second form, a name its position."""
    large = sets[0]
    queries, tools = large.product.shape

    assert (21, 216) == (queries, tools)
    assert tools > POOL == np.isfinite(large.product[0]).sum()
    assert ("large", "ours") == (large.name, large.origin)
    assert 2 == np.bincount(large.text_queries)[19]
    assert {20} == set(large.clause_queries.tolist())
    assert 6 < large.clause_counts[20] == len(large.clauses)
    assert "list-invoice" == large.tool_ids[large.exact_names[18][0]]
    assert large.words.clauses[20].any()
    assert not large.words.clauses[:20].any()


def test_words_are_scored_by_other_weights_of_the_fields(sets: list[Evidence]) -> None:
    """Some weights are changed, or one field stands alone."""
    large = sets[0]

    assert {
        "name x 2",
        "server x 2, parameters x 2",
        "description alone",
    } < large.field_words.keys()
    assert not np.array_equal(large.words.scores, large.field_words["name x 2"].scores)


def test_evidence_is_kept_until_the_set_or_the_model_changes(
    folders: list[Path], sets: list[Evidence], cache: Path
) -> None:
    """What is kept is not embedded again, and equal to what was computed."""
    same, other = HashingEmbedder(48), HashingEmbedder(32)

    again = load_evidence(folders[1], embedder=same, cache=cache, origin="mine")
    assert 0 == same.calls
    assert ("mine", sets[1].gold) == (again.origin, again.gold)
    assert np.array_equal(sets[1].product, again.product)
    changed = load_evidence(folders[1], embedder=other, cache=cache / "other", origin="")
    assert 32 == changed.tools.shape[1]
    again = load_evidence(folders[1], embedder=same, cache=cache / "other", origin="")
    assert 48 == again.tools.shape[1]
