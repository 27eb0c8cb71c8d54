"""Evidence of a set, compared with searches through the public API."""

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


def test_evidence_ranks_tools_like_the_public_api(
    sets: list[Evidence], folders: list[Path], embedder: HashingEmbedder
) -> None:
    """Rankings are compared per query, including exact names, clauses and spelling."""
    for evidence, folder in zip(sets, folders, strict=True):
        benchmark = read(folder)
        searched = asyncio.run(
            rank(
                benchmark, query_texts(benchmark), strategy="auto", edges="given", embedder=embedder
            )
        )
        figures = summary(benchmark.queries, [run.line("matches") for run in searched]).figures
        expected = [run.matches for run in searched if run.id != "none"]

        assert expected == [tuple(result) for result in rankings(evidence, evidence.product)]
        assert figures["recall@5"] == judge(evidence, evidence.product).recall
        assert figures["ndcg@10"] == judge(evidence, evidence.product).ndcg


def test_evidence_has_a_row_per_query_with_a_relevant_tool(sets: list[Evidence]) -> None:
    """A long request has clauses, a misspelt request a corrected form, a name its position."""
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


def test_evidence_scores_words_with_other_field_weights(sets: list[Evidence]) -> None:
    large = sets[0]

    assert {
        "name x 2",
        "server x 2, parameters x 2",
        "description alone",
    } < large.field_words.keys()
    assert not np.array_equal(large.words.scores, large.field_words["name x 2"].scores)


def test_evidence_is_stored_until_the_set_or_model_changes(
    folders: list[Path], sets: list[Evidence], cache: Path
) -> None:
    """Stored evidence is equal and not embedded again."""
    same, other = HashingEmbedder(48), HashingEmbedder(32)

    again = load_evidence(folders[1], embedder=same, cache=cache, origin="mine")
    assert 0 == same.calls
    assert ("mine", sets[1].gold) == (again.origin, again.gold)
    assert np.array_equal(sets[1].product, again.product)
    changed = load_evidence(folders[1], embedder=other, cache=cache / "other", origin="")
    assert 32 == changed.tools.shape[1]
    again = load_evidence(folders[1], embedder=same, cache=cache / "other", origin="")
    assert 48 == again.tools.shape[1]
