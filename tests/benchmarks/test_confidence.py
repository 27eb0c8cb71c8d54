"""Whether the gateway knows what it cannot do."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import confidence
from benchmarks.confidence import Told, auroc, judge, measure
from benchmarks.data import read
from benchmarks.ranking import opened
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


def told(confidence: float, *, emptied: bool = False, flagged: bool = False) -> Told:
    return Told(confidence=confidence, emptied=emptied, flagged=flagged)


def test_what_a_threshold_could_reach_is_told() -> None:
    """It loses three in a hundred of the answerable, no more."""
    good = [told(0.5 + each / 1000) for each in range(100)]
    bad = [told(0.501), told(0.0, emptied=True, flagged=True), told(0.55), told(0.4, flagged=True)]

    found = judge("a", "b", good, bad)

    assert 0.75 == found.reachable
    assert 0.502 == pytest.approx(found.threshold)
    assert (0.25, 0.5, 0.0, 0.0) == (found.emptied, found.flagged, found.lost, found.doubted)
    assert not found.met
    assert judge("a", "b", good, [told(0.0, emptied=True)]).met
    assert not judge("a", "b", [*good, *[told(0.0, emptied=True)] * 9], bad[1:2]).met


async def test_an_empty_result_and_a_doubted_one_are_told_apart() -> None:
    """Nothing to give is not the same as nothing likely."""
    async with opened(read(FIXTURE), strategy="graph") as gateway:
        good = await confidence.told(gateway, "transfer money between two accounts")
        none = await confidence.told(gateway, "zzqqxx")

    assert (False, False) == (good.emptied, good.flagged)
    assert Told(confidence=0.0, emptied=True, flagged=True) == none
    assert not good.right
    assert good.confidence > 0.35


async def test_every_pair_is_judged_and_all_together(tmp_path: Path) -> None:
    """Own queries are never unanswerable; related sets are left apart."""
    one = written(tmp_path, "one", nomatch=row("zzqq xxyy"))
    two, three = written(tmp_path, "two"), written(tmp_path, "three")
    (two / "queries.jsonl").write_text(row("bake sourdough bread"), encoding="utf-8")

    found = await measure(
        [one, two, three],
        strategy="auto",
        related=[frozenset({"one", "three"})],
        embedder=HashingEmbedder(),
    )

    assert [
        ("one", "nomatch"), ("one", "two"),
        ("two", "one"), ("two", "three"),
        ("three", "two"),
        ("all", "all"),
    ] == [(each.catalog, each.asked) for each in found]  # fmt: skip
    assert (5 + 1 + 5, 1 + 1 + 5 + 5 + 1) == (found[-1].answerable, found[-1].unanswerable)
    assert 1.0 == found[0].auroc


def test_the_command_tells_pairs_and_goals(tmp_path: Path) -> None:
    """As JSON and as a table."""
    folder = written(tmp_path, "one", nomatch=row("zzqq") + row("transfer money", "m"))
    words = ["--data", str(folder), "--strategy", "graph"]

    found = json.loads(CliRunner().invoke(confidence.app, [*words, "--json"]).stdout)
    table = CliRunner().invoke(confidence.app, words).stdout

    assert ("graph", ["nomatch"]) == (found["strategy"], [each["asked"] for each in found["pairs"]])
    assert (5, 2, 0.5) == tuple(
        found["overall"][name] for name in ("answerable", "unanswerable", "emptied")
    )
    assert all(word in table for word in ("nomatch", "5 / 2", "50.0", "MISSED"))


def test_one_set_without_unanswerable_requests_is_refused() -> None:
    """There is nothing to tell apart."""
    result = CliRunner().invoke(
        confidence.app, ["--data", str(FIXTURE), "--strategy", "graph", "--related", "a,b"]
    )

    assert 2 == result.exit_code
    assert "nothing is unanswerable" in result.output
