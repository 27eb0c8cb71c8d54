"""Each command that has no file of its own, on a small input; no time is asserted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from benchmarks import (
    answers,
    attacks,
    costs,
    graph,
    indexing,
    memory,
    poisoning,
    quality,
    retrieval,
    tuning,
)
from benchmarks.data import read
from benchmarks.quality import Row
from benchmarks.ranking import Edges, View
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"
COSTS = ["--documents", 60, "--tools", "20,40", "--small", 20, "--repeats", 1, "--batch", 2]


def called(main: Callable[..., None] | typer.Typer, *words: object) -> str:
    """Run a command that succeeds; return its output."""
    app = main if isinstance(main, typer.Typer) else typer.Typer()
    if app is not main:
        app.command()(main)
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert 0 == result.exit_code, result.output
    return result.stdout


def figures_of(main: Callable[..., None] | typer.Typer, *words: object) -> Any:
    """Return the figures that a command prints as JSON."""
    return json.loads(called(main, *words, "--json"))


def ranked(out: Path, *words: object) -> list[dict[str, object]]:
    """Rank the fixture without a model; give the run."""
    called(retrieval.app, "run", "--data", FIXTURE, "--strategy", "graph", "--out", out, *words)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_a_run_holds_every_query_and_is_judged(tmp_path: Path) -> None:
    """The round trip: ranked, written, read, scored."""
    out = tmp_path / "run.jsonl"
    run = ranked(out)

    report = figures_of(retrieval.app, "score", "--data", FIXTURE, "--run", out)

    assert ["q1", "q2", "q3", "q4", "q5"] == [line["id"] for line in run]
    assert ["q1", "q2"] == [line["id"] for line in run if "next" in line]
    assert (5, 5, 8, 2) == (
        report["queries"],
        report["answered"],
        report["tools"],
        report["next"]["n"],
    )
    assert 1.0 == report["hit@1"]


def test_shown_lists_given_prerequisites_after_their_match(tmp_path: Path) -> None:
    """The edges of the folder are used, and only if they are asked for."""
    shown = ranked(tmp_path / "run.jsonl", "--view", "shown")[0]["ranked"]
    none = ranked(tmp_path / "none.jsonl", "--view", "shown", "--edges", "none")[0]["ranked"]

    assert isinstance(shown, list)
    assert ("t3", {"t1", "t2"}) == (shown[0], set(shown[1:3]))
    assert none != shown


def test_small_catalogs_show_what_their_host_declares() -> None:
    """The same catalogs each time; a declared next step shows more often than none."""
    words = ("--small-catalogs", "--data", FIXTURE, "--strategies", "graph")
    first, again = (figures_of(graph.app, *words) for _ in range(2))

    derived, declared = first["small"]
    assert first == again
    assert ("derived", "declared") == (derived["edges"], declared["edges"])
    assert derived["searches"] == declared["searches"] > 0
    assert declared["share"] >= derived["share"]


def test_the_graph_table_has_each_edge_source_in_both_views() -> None:
    """Losing rows are in it, not left out."""
    report = figures_of(graph.app, "--quality-only", "--data", FIXTURE, "--strategies", "graph")
    rows = report["quality"]["rows"]

    assert "costs" not in report
    assert [
        (edges, view) for edges in ("given", "derived", "none") for view in ("matches", "shown")
    ] == [(row["edges"], row["view"]) for row in rows]
    assert {1.0, None} == {row["direct"] for row in rows}
    assert all("loses" in row for row in rows)


def row(edges: Edges, view: View, recall: float) -> Row:
    figures = {"recall@5": recall, "recall@10": recall, "next_hit@5": 0.8, "direct": None}
    return Row(strategy="auto", edges=edges, view=view, figures=figures)


def test_a_row_that_loses_names_what_it_loses() -> None:
    """Half a point is allowed; with given edges `shown` has another purpose."""
    rows = [
        row("given", "matches", 0.896),
        row("given", "shown", 0.5),
        row("derived", "matches", 0.88),
        row("derived", "shown", 0.87),
        row("none", "matches", 0.9),
        row("none", "shown", 0.896),
    ]

    assert [
        "",
        "",
        "-2.0 recall@5 on no edges",
        "-1.0 recall@10 on matches",
        "",
        "",
    ] == quality.losses(rows)
    assert [""] == quality.losses(rows[:1])


def test_every_cost_stands_beside_its_target() -> None:
    """What decides is the ratio; the parts are there to be looked at."""
    report = figures_of(graph.app, "--costs-only", *COSTS)

    assert costs.COUNT == len(report["costs"])
    assert "quality" not in report
    assert all(each["met"] == (each["value"] <= each["target"]) for each in report["costs"])


def test_the_tokens_of_answers_are_counted_in_both_modes() -> None:
    """What carries parameters takes more."""
    figures = figures_of(answers.app, "--data", FIXTURE, "--strategy", "graph")

    assert 5 == figures["queries"]
    assert 0 < figures["proxy.p50"] < figures["stable.p50"] <= figures["stable.p95"]


def test_each_attack_has_its_recall() -> None:
    (line,) = figures_of(attacks.main, "--data", FIXTURE)

    assert {"none", "words", "stuffed", "tools", "renamed", "requests"} == line["recall@5"].keys()


def test_flagged_shares_have_the_number_of_their_definitions() -> None:
    """Own cases, poisoned and honest, and a set of honest definitions."""
    figures = figures_of(poisoning.app, "--data", FIXTURE)

    assert min(figures["poisoned.count"], figures["hard.count"]) > 100
    assert 8 == figures["honest.fixture.count"]
    assert figures["honest.fixture"] == figures["honest.all"]


def test_a_scan_of_vectors_is_measured_at_each_share_of_the_rows() -> None:
    figures = indexing.vectors(2000, 16, neighbours=20)

    for share in ("", "_of_10_percent", "_of_1_percent"):
        assert f"vectors_2000x16{share}_ratio_to_numpy" in figures
    assert 1.0 == figures["vectors_2000x16_recall_at_10"]


def test_an_entity_has_its_memory() -> None:
    figures = figures_of(memory.app, "--entities", 200, "--dimensions", 16)

    assert {"rss_kb_per_entity", "all_bytes"} < figures.keys()
    assert 1.0 == figures["filter_100_percent_recall_at_10"]


async def test_tuning_on_few_requests_is_judged_and_not_kept() -> None:
    benchmark = read(FIXTURE)
    fit, judged = benchmark.queries[:3], benchmark.queries[3:]

    before, after, tuned = await tuning.measure(benchmark, fit, judged, HashingEmbedder())

    assert (before, False, len(fit)) == (after, tuned.kept, tuned.requests)
