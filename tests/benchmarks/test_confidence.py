"""Whether the gateway knows what it cannot do, and where its coefficients come from."""

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
    """The fixture, with more files."""
    made = folder / name
    made.mkdir()
    for file in ("catalog.jsonl", "queries.jsonl"):
        (made / file).write_bytes((FIXTURE / file).read_bytes())
    for file, text in files.items():
        (made / f"{file}.jsonl").write_text(text, encoding="utf-8")
    return made


def row(query: str, name: str = "n") -> str:
    return json.dumps({"id": name, "query": query, "relevant": ["t1"], "lang": "en"}) + "\n"


def test_the_area_is_the_chance_to_be_above() -> None:
    """Equals count half; of nothing there is no chance."""
    assert 1.0 == auroc([0.9, 0.8], [0.1])
    assert 0.0 == auroc([0.1], [0.2, 0.3])
    assert 0.625 == auroc([0.5, 0.7], [0.5, 0.6])
    assert isnan(auroc([], [0.5]))
    assert isnan(auroc([0.5], []))


def test_requests_below_the_threshold_are_flagged() -> None:
    """The default threshold of the gateway."""
    found = judge("a", [0.9, 0.4], [0.1, 0.2, 0.6, 0.3])

    assert (0.75, 0.5) == (found.flagged, found.flagged_answerable)
    assert 0.875 == found.auroc


async def test_own_queries_are_never_unanswerable(tmp_path: Path) -> None:
    """Nor are those of related sets."""
    one = written(tmp_path, "one", nomatch=row("zzqq xxyy"))
    two, three = written(tmp_path, "two"), written(tmp_path, "three")
    (two / "queries.jsonl").write_text(row("bake sourdough bread"), encoding="utf-8")

    related = [frozenset({"one", "three"})]
    pairs = list(pairings([one, two, three], limit=0, others=0, related=related))
    found = await evaluate(pairs, strategy="auto", embedder=HashingEmbedder())

    assert [(5, 2), (1, 10), (5, 1), (11, 13)] == [
        (each.answerable, each.unanswerable) for each in found
    ]
    assert ["one", "two", "three", "all"] == [each.catalog for each in found]


@pytest.mark.parametrize("key", [ANY_MODEL, WORDS])
async def test_what_is_nearer_and_holds_more_words_is_likelier(tmp_path: Path, key: str) -> None:
    """The fitted coefficients are positive."""
    folder = written(tmp_path, "one", nomatch=row("zzqq user xxyy") + row("bake city bread", "m"))

    samples = await collect(list(pairings([folder], limit=0, others=0)), HashingEmbedder())
    found = fit_row(samples, key)

    assert found.coverage + found.strength > 0
    assert (found.similarity != 0) == (key != WORDS)


def test_the_command_measures(tmp_path: Path) -> None:
    """As JSON and as a table."""
    folder = written(tmp_path, "one", nomatch=row("zzqq") + row("transfer money", "m"))
    words = ["measure", "--data", str(folder), "--strategy", "graph"]

    found = json.loads(CliRunner().invoke(confidence.app, [*words, "--json"]).stdout)
    table = CliRunner().invoke(confidence.app, words).stdout

    assert ("graph", ["one"]) == (found["strategy"], [each["catalog"] for each in found["sets"]])
    assert (5, 2) == (found["overall"]["answerable"], found["overall"]["unanswerable"])
    assert "5 / 2" in table
