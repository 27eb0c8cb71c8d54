"""Benchmark commands without a test module of their own, on small inputs. No time is asserted."""

from __future__ import annotations

import asyncio
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
    steps,
    tuning,
)
from benchmarks.data import read
from benchmarks.quality import Row
from benchmarks.ranking import Edges, View
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"
COSTS = ["--documents", 60, "--tools", "20,40", "--small", 20, "--repeats", 1, "--batch", 2]


def run_command(main: Callable[..., None] | typer.Typer, *words: object) -> str:
    """Run a command that succeeds; return its output."""
    app = main if isinstance(main, typer.Typer) else typer.Typer()
    if app is not main:
        app.command()(main)
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert 0 == result.exit_code, result.output
    return result.stdout


def figures_of(main: Callable[..., None] | typer.Typer, *words: object) -> Any:
    """Return the figures that a command prints as JSON."""
    return json.loads(run_command(main, *words, "--json"))


def rank_fixture(out: Path, *words: object) -> list[dict[str, object]]:
    """Rank the fixture's queries without a model, with the command's options *words*; return the
    run.
    """
    run_command(
        retrieval.app, "run", "--data", FIXTURE, "--strategy", "graph", "--out", out, *words
    )
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_run_contains_every_query_and_is_scored(tmp_path: Path) -> None:
    """The run is written, read and scored."""
    out = tmp_path / "run.jsonl"
    run = rank_fixture(out)

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


def test_tool_is_followed_by_its_prerequisites_from_given_edges(tmp_path: Path) -> None:
    """Edges in the folder of the data set are used only on request."""
    output = rank_fixture(tmp_path / "run.jsonl", "--view", "shown")[0]["ranked"]
    none = rank_fixture(tmp_path / "none.jsonl", "--view", "shown", "--edges", "none")[0]["ranked"]

    assert isinstance(output, list)
    assert ("t3", {"t1", "t2"}) == (output[0], set(output[1:3]))
    assert none != output


def test_steps_of_a_request_are_compared_with_its_text() -> None:
    benchmark = read(FIXTURE)
    (wanted,) = [tool["name"] for tool in benchmark.tools if tool["id"] == "t1"]

    rows = asyncio.run(steps.measure(benchmark, {"q1": [str(wanted)]}, None))

    assert ["text", "steps"] == [row["searched by"] for row in rows]
    assert all(0 <= float(str(row["recall@5"])) <= 100 for row in rows)
    assert {"mcp_bench": 80, "nestful": 80} == {
        name: len(steps.written_steps(name)) for name in ("mcp_bench", "nestful")
    }


def test_small_catalogs_show_declared_next_steps() -> None:
    """The catalogs are always the same."""
    words = ("--small-catalogs", "--data", FIXTURE, "--strategies", "graph")
    first, again = (figures_of(graph.app, *words) for _ in range(2))

    derived, declared = first["small"]
    assert first == again
    assert ("derived", "declared") == (derived["edges"], declared["edges"])
    assert derived["searches"] == declared["searches"] > 0
    assert declared["share"] >= derived["share"]


def test_graph_table_has_a_row_for_each_source_of_edges_in_both_views() -> None:
    """Sources of edges that lose are listed too."""
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


def test_row_of_the_graph_table_that_loses_names_its_loss() -> None:
    """Half a point is allowed. With given edges, `shown` has another purpose."""
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


def test_costs_of_the_gateway_are_listed_with_their_targets() -> None:
    """The ratio decides; the parts are for information."""
    report = figures_of(graph.app, "--costs-only", *COSTS)

    assert costs.COUNT == len(report["costs"])
    assert "quality" not in report
    assert all(cost["met"] == (cost["value"] <= cost["target"]) for cost in report["costs"])


def test_tokens_of_answers_are_counted_in_both_modes() -> None:
    """Answers with parameters need more tokens."""
    figures = figures_of(answers.app, "--data", FIXTURE, "--strategy", "graph")

    assert 5 == figures["queries"]
    assert 0 < figures["proxy.p50"] < figures["stable.p50"] <= figures["stable.p95"]


def test_recall_of_searches_is_reported_for_each_attack() -> None:
    (line,) = figures_of(attacks.main, "--data", FIXTURE)

    assert {"none", "words", "stuffed", "tools", "renamed", "requests"} == line["recall@5"].keys()


def test_shares_of_flagged_definitions_are_reported_with_their_number() -> None:
    """The definitions are own cases (poisoned and honest) and a set of honest ones."""
    figures = figures_of(poisoning.app, "--data", FIXTURE)

    assert min(figures["poisoned.count"], figures["hard.count"]) > 100
    assert 8 == figures["honest.fixture.count"]
    assert figures["honest.fixture"] == figures["honest.all"]


def test_time_of_a_vector_scan_is_measured_at_each_share_of_rows() -> None:
    figures = indexing.vectors(2000, 16, neighbours=20)

    for share in ("", "_of_10_percent", "_of_1_percent"):
        assert f"vectors_2000x16{share}_ratio_to_numpy" in figures
    assert 1.0 == figures["vectors_2000x16_recall_at_10"]


def test_memory_per_entity_is_measured() -> None:
    figures = figures_of(memory.app, "--entities", 200, "--dimensions", 16)

    assert {"rss_kb_per_entity", "all_bytes"} < figures.keys()
    assert 1.0 == figures["filter_100_percent_recall_at_10"]


async def test_tuning_on_few_requests_is_evaluated_but_not_kept() -> None:
    benchmark = read(FIXTURE)
    fit, judged = benchmark.queries[:3], benchmark.queries[3:]

    before, after, tuned = await tuning.measure(benchmark, fit, judged, HashingEmbedder())

    assert (before, False, len(fit)) == (after, tuned.kept, tuned.requests)
