"""The baselines, compared with figures that were computed by hand."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines import bm25, followed, fused, run_baselines, text_of
from benchmarks.data import read
from benchmarks.metrics import summary
from benchmarks.ranking import query_texts
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"


def test_baselines_read_a_tool_as_one_text() -> None:
    """Names are split, and missing parts leave no gap."""
    tool = {
        "name": "sendMail",
        "server": "post_office",
        "description": "Send a letter.",
        "input_schema": {"properties": {"toAddress": {}}},
    }

    assert "send mail. Send a letter. post office to address" == text_of(tool)
    assert "x." == text_of({"name": "x", "input_schema": None})


def test_bm25_weighs_rare_words_and_short_documents_more() -> None:
    weights = bm25(["red apple", "red pear pear plum"])

    scores = weights.scores({"pear": 1.0, "red": 2.0, "unknown": 1.0})

    idf_pear, idf_red = log(1 + 1.5 / 1.5), log(1 + 0.5 / 2.5)
    short, long = (1.5 * (0.25 + 0.75 * length / 3) for length in (2, 4))
    assert [
        pytest.approx(2 * idf_red / (1 + short)),
        pytest.approx(idf_pear * 2 / (2 + long) + 2 * idf_red / (1 + long)),
    ] == scores.tolist()


def test_fusion_of_two_rankings_adds_reciprocal_ranks() -> None:
    table = fused(np.array([[3.0, 2.0, 0.0]]), np.array([[0.0, 2.0, 1.0]]))

    assert [1 / 61, 1 / 62 + 1 / 61, 1 / 62] == pytest.approx(table[0].tolist())


def test_prerequisites_of_the_first_tool_are_ranked_after_it() -> None:
    """Direct prerequisites come first, each once, even in a cycle."""
    needs = {"a": ["b", "c"], "b": ["d"], "d": ["a"], "x": ["y"]}

    assert ["a", "b", "c", "d", "x"] == followed(["a", "x", "d"], needs)
    assert [] == followed([], needs)


async def test_every_baseline_answers_every_query() -> None:
    benchmark = read(FIXTURE)
    ways = [query_texts(benchmark), query_texts(benchmark, noise=1.0)]

    clean, typed = await run_baselines(benchmark, ways, embedder=HashingEmbedder())

    names = ["BM25", "char n-grams", "dense", "BM25 + dense"]
    assert {name + edges for name in names for edges in ("", " + edges")} == clean.keys()
    assert clean.keys() == typed.keys()
    for name in names:
        result = summary(benchmark.queries, clean[name])
        assert (5, 1.0) == (result.answered, result.figures["hit@1"]), name
    assert clean != typed


async def test_baselines_without_an_embedder_use_no_vectors(tmp_path: Path) -> None:
    for name in ("catalog.jsonl", "queries.jsonl"):
        (tmp_path / name).write_bytes((FIXTURE / name).read_bytes())
    benchmark = read(tmp_path)

    (result,) = await run_baselines(benchmark, [query_texts(benchmark)], embedder=None)

    assert ["BM25", "char n-grams"] == list(result)
