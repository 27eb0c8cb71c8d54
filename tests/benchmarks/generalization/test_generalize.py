"""Parts of the command `benchmarks.generalize`, over small sets without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.protocol import evaluate
from benchmarks.generalize import candidates, load_sets, print_results, read_groups, to_json
from gateway.testing import HashingEmbedder


def test_report_of_generalize_lists_every_candidate_and_set(
    sets: list[Evidence], capsys: pytest.CaptureFixture[str]
) -> None:
    """Candidates that lose are listed too. The first one is "plain", which is the product itself
    and gains nothing.
    """
    chosen = [each for each in candidates(sets) if each.name != "weights"]
    results = evaluate(sets, chosen, lambda _: None)
    report = json.loads(json.dumps(to_json(sets, results)))
    print_results(results)
    printed = capsys.readouterr().out

    assert ["large", "small", "other"] == [each["set"] for each in report["sets"]]
    assert ("ours", 216, 21) == tuple(
        report["sets"][0][key] for key in ("origin", "tools", "queries")
    )
    names = [each["candidate"] for each in report["candidates"]]
    assert ["plain", "sum", "words", "vectors", "clauses", "fields"] == names[:6]
    assert {"mean": 0.0, "low": 0.0, "high": 0.0} == report["candidates"][0]["gain"]
    for candidate in report["candidates"]:
        assert ["large", "small", "other"] == [each["set"] for each in candidate["sets"]]
        means = [each["left_out"]["recall@5"] for each in candidate["sets"]]
        assert sum(means) / 3 == candidate["mean"]["left_out"]["recall@5"]
        assert candidate["mean"].keys() == {"plain", "left_out", "in_sample"}
        assert f"{candidate['candidate']}, set by set" in printed
    assert "not taken" in printed


def test_named_groups_replace_the_origins_of_data_sets(
    folders: list[Path], cache: Path, embedder: HashingEmbedder
) -> None:
    groups = read_groups(["small=theirs", "other=mine"])
    sets = load_sets(folders, groups, embedder, cache)

    assert ["ours", "theirs", "mine"] == [evidence.origin for evidence in sets]
    with pytest.raises(typer.BadParameter, match="SET=GROUP"):
        read_groups(["small"])
