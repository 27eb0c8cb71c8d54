"""The commands, over the fixture folder and small synthetic data; no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import answers, costs, graph, quality, retrieval
from benchmarks.quality import Row
from benchmarks.ranking import Edges, View

FIXTURE = Path(__file__).parent / "fixture"
SMALL = ["--documents", "60", "--tools", "20,40", "--small", "20", "--repeats", "1", "--batch", "2"]


def called(app: object, *words: object) -> str:
    """Run a command that succeeds; give what it wrote."""
    result = CliRunner().invoke(app, [str(word) for word in words])  # type: ignore[arg-type]  # an app
    assert 0 == result.exit_code, result.output
    return result.stdout


def ranked(out: Path, *words: object) -> list[dict[str, object]]:
    """Rank the fixture without a model; give the run."""
    called(retrieval.app, "run", "--data", FIXTURE, "--strategy", "graph", "--out", out, *words)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_a_run_holds_every_query_and_is_judged(tmp_path: Path) -> None:
    """The round trip: ranked, written, read, scored."""
    out = tmp_path / "run.jsonl"
    run = ranked(out)

    report = json.loads(called(retrieval.app, "score", "--data", FIXTURE, "--run", out, "--json"))

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


def test_a_sample_and_typing_errors_can_be_asked_for(tmp_path: Path) -> None:
    """Both are fixed, so two runs are the same."""
    words = ("--limit-queries", "2", "--noise", "0.5")

    assert ranked(tmp_path / "one.jsonl", *words) == ranked(tmp_path / "two.jsonl", *words)
    assert 2 == len(ranked(tmp_path / "one.jsonl", *words))


@pytest.mark.parametrize("words", [("--strategy", "magic"), ("--view", "all"), ("--edges", "some")])
def test_an_unknown_word_is_refused(words: tuple[str, str], tmp_path: Path) -> None:
    """With the known ones."""
    given = ["run", "--data", str(FIXTURE), "--out", str(tmp_path / "run.jsonl"), *words]
    result = CliRunner().invoke(retrieval.app, given)

    assert 2 == result.exit_code
    assert "is not one of" in result.output


def test_a_person_reads_a_table() -> None:
    """Percentages, whole and by language, and the next steps below."""
    report = called(retrieval.app, "score", "--data", FIXTURE, "--run", FIXTURE / "run.jsonl")

    assert all(word in report for word in ("4 of 5", "ndcg@10", "43.7", "de 2", "next_hit@5 50.0"))


def test_small_catalogs_show_what_their_host_declares() -> None:
    """The same catalogs each time; a declared next step shows more often than none."""
    words = ("--small-catalogs", "--data", FIXTURE, "--strategies", "graph", "--json")
    first, again = (json.loads(called(graph.app, *words)) for _ in range(2))

    derived, declared = first["small"]
    assert first == again
    assert ("derived", "declared") == (derived["edges"], declared["edges"])
    assert derived["searches"] == declared["searches"] > 0
    assert declared["share"] >= derived["share"]


def test_the_graph_table_has_each_edge_source_in_both_views() -> None:
    """Losing rows are in it, not left out."""
    report = json.loads(
        called(graph.app, "--quality-only", "--data", FIXTURE, "--strategies", "graph", "--json")
    )
    rows = report["quality"]["rows"]

    assert "costs" not in report
    assert [
        (edges, view) for edges in ("given", "derived", "none") for view in ("matches", "shown")
    ] == [(row["edges"], row["view"]) for row in rows]
    assert {1.0, None} == {row["direct"] for row in rows}
    assert all("loses" in row for row in rows)


def test_quality_and_costs_are_read_as_tables() -> None:
    """Targets stand beside the figures."""
    report = called(graph.app, "--data", FIXTURE, "--strategies", "graph", *SMALL)

    assert all(word in report for word in ("derived", "ratio", "target", "Gateway.search over 20"))


def test_every_cost_stands_beside_its_target() -> None:
    """What decides is the ratio; the parts are there to be looked at."""
    report = json.loads(called(graph.app, "--costs-only", "--json", *SMALL))

    assert costs.COUNT == len(report["costs"])
    assert "quality" not in report
    assert all(each["met"] == (each["value"] <= each["target"]) for each in report["costs"])


@pytest.mark.parametrize("words", [(), ("--costs-only", "--quality-only")])
def test_a_command_that_would_measure_nothing_is_refused(words: tuple[str, ...]) -> None:
    """A folder is needed for quality."""
    assert 2 == CliRunner().invoke(graph.app, list(words)).exit_code


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


def test_the_tokens_of_answers_are_counted_in_both_modes() -> None:
    """What carries parameters takes more."""
    text = called(answers.app, "--data", FIXTURE, "--strategy", "graph", "--json")

    figures = json.loads(text)
    assert 5 == figures["queries"]
    assert 0 < figures["proxy.p50"] < figures["stable.p50"] <= figures["stable.p95"]
