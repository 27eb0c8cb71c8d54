"""Confidence for unanswerable requests, and the fit of its coefficients."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import confidence
from benchmarks.confidence import auroc, collect, evaluate, fit_row, judge, pairings
from gateway.search import ANY_MODEL, WORDS
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"


def written(folder: Path, name: str, **files: str) -> Path:
    """Return a copy of the fixture with additional files."""
    created = folder / name
    created.mkdir()
    for file in ("catalog.jsonl", "queries.jsonl"):
        (created / file).write_bytes((FIXTURE / file).read_bytes())
    for file, text in files.items():
        (created / f"{file}.jsonl").write_text(text, encoding="utf-8")
    return created


def row(query: str, name: str = "n") -> str:
    return json.dumps({"id": name, "query": query, "relevant": ["t1"], "lang": "en"}) + "\n"


def test_area_under_the_curve_is_the_chance_of_a_higher_value() -> None:
    """Equal values count half; without values there is no area."""
    assert 1.0 == auroc([0.9, 0.8], [0.1])
    assert 0.0 == auroc([0.1], [0.2, 0.3])
    assert 0.625 == auroc([0.5, 0.7], [0.5, 0.6])
    assert isnan(auroc([], [0.5]))
    assert isnan(auroc([0.5], []))


def test_requests_with_a_confidence_below_the_threshold_are_flagged() -> None:
    result = judge("a", [0.9, 0.4], [0.1, 0.2, 0.6, 0.3])

    assert (0.75, 0.5) == (result.flagged, result.flagged_answerable)
    assert 0.875 == result.auroc


async def test_queries_of_related_sets_are_not_used_as_unanswerable(tmp_path: Path) -> None:
    one = written(tmp_path, "one", nomatch=row("zzqq xxyy"))
    two, three = written(tmp_path, "two"), written(tmp_path, "three")
    (two / "queries.jsonl").write_text(row("bake sourdough bread"), encoding="utf-8")

    related = [frozenset({"one", "three"})]
    pairs = list(pairings([one, two, three], limit=0, others=0, related=related))
    result = await evaluate(pairs, strategy="auto", embedder=HashingEmbedder())

    assert [(5, 2), (1, 10), (5, 1), (11, 13)] == [
        (item.answerable, item.unanswerable) for item in result
    ]
    assert ["one", "two", "three", "all"] == [item.catalog for item in result]


@pytest.mark.parametrize("key", [ANY_MODEL, WORDS])
async def test_similarity_and_words_raise_the_confidence(tmp_path: Path, key: str) -> None:
    """The fitted coefficients are positive."""
    folder = written(tmp_path, "one", nomatch=row("zzqq user xxyy") + row("bake city bread", "m"))

    samples = await collect(list(pairings([folder], limit=0, others=0)), HashingEmbedder())
    result = fit_row(samples, key)

    assert result.coverage + result.strength > 0
    assert (result.similarity != 0) == (key != WORDS)


def test_confidence_command_prints_json_and_a_table(tmp_path: Path) -> None:
    folder = written(tmp_path, "one", nomatch=row("zzqq") + row("transfer money", "m"))
    words = ["measure", "--data", str(folder), "--strategy", "graph"]

    result = json.loads(CliRunner().invoke(confidence.app, [*words, "--json"]).stdout)
    table = CliRunner().invoke(confidence.app, words).stdout

    assert ("graph", ["one"]) == (result["strategy"], [each["catalog"] for each in result["sets"]])
    assert (5, 2) == (result["overall"]["answerable"], result["overall"]["unanswerable"])
    assert "5 / 2" in table
