"""The benchmark report: measured figures, given figures, written files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import retrieval
from benchmarks.bootstrap import Difference
from benchmarks.pages import losing, page
from benchmarks.ranking import View
from benchmarks.report import Plan, measure, read_given
from benchmarks.systems import Origin, SetReport, System, Versus, against, best_of
from gateway.errors import ConfigError
from gateway.testing import HashingEmbedder

FIXTURE = Path(__file__).parent / "fixture"


class Log:
    """A log that stores its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)


def system(name: str, recall: float, view: View = "matches", origin: Origin = "baseline") -> System:
    figures = {"recall@5": recall}
    return System(
        name=name,
        view=view,
        origin=origin,
        figures=figures,
        typos={"recall@5": recall / 2},
        by_language={"en": figures, "hi": {"recall@5": recall / 4}},
        next_figures={},
        recalls=(recall, recall),
    )


def report_of(*systems: System, name: str = "set") -> SetReport:
    return SetReport(
        name=name,
        tools=1200,
        languages={"en": 1, "hi": 1},
        systems=systems,
        versus=tuple(against(systems)),
    )


def test_report_has_rows_for_every_strategy_and_baseline(tmp_path: Path) -> None:
    """`auto` has both views, and baselines follow the given edges in their view."""
    plan = Plan(strategies=("auto", "graph"), embedder=HashingEmbedder())
    log = Log()

    result = measure(FIXTURE, plan, given={}, log=log)

    ours = [(system.name, system.view) for system in result.systems if system.origin == "ours"]
    assert [("auto", "matches"), ("auto", "shown"), ("graph", "matches")] == ours
    assert {"BM25", "char n-grams", "dense", "BM25 + dense"} == {
        system.name
        for system in result.systems
        if system.origin == "baseline" and system.view == "matches"
    }
    assert ({"de": 2, "en": 3}, 5) == (result.languages, result.queries)
    assert ["matches", "shown"] == [system.ours.view for system in result.versus]
    assert all(5 == system.better + system.same + system.worse for system in result.versus)
    assert 3 == len(log.lines)


def test_figures_given_by_others_are_marked_and_not_resampled(tmp_path: Path) -> None:
    """Only their mean is known, so no queries can be drawn."""
    path = tmp_path / "given.json"
    path.write_text(json.dumps({"fixture": {"other": {"recall@5": 0.5}}}), encoding="utf-8")
    plan = Plan(strategies=("graph",))

    result = measure(FIXTURE, plan, given=read_given(path), log=Log())
    text = page([result], method="")

    assert "| other (given) | matches | – | 50.0 |" in text  # noqa: RUF001  (a dash)
    assert "| 50.0 other |" in text
    assert "other" not in [comparison.floor.name for comparison in result.versus]


def test_percentage_in_given_figures_is_converted_to_a_share(tmp_path: Path) -> None:
    """Otherwise a baseline of 8,100 % could not be beaten."""
    path = tmp_path / "given.json"
    path.write_text(json.dumps({"set": {"other": {"recall@5": 81.0}}}), encoding="utf-8")

    with pytest.raises(ConfigError, match="set, other: figures must be shares of 1"):
        read_given(path)
    assert {} == read_given(None)


def test_gateway_is_compared_with_the_best_measured_baseline_of_the_view() -> None:
    """The gateway's row is the first of its rows."""
    rows = [
        system("auto", 0.5, origin="ours"),
        system("graph", 0.9, origin="ours"),
        system("weak", 0.3),
        system("strong", 0.6),
        system("edges", 0.8, "shown"),
        system("told", 1.0, origin="given"),
    ]

    (result,) = against(rows)

    assert ("auto", "strong") == (result.ours.name, result.floor.name)
    assert "loses" == result.difference.verdict
    assert (0, 0, 2) == (result.better, result.same, result.worse)
    assert [] == list(against(rows[2:]))
    assert None is best_of([], "matches")


def test_rows_of_the_report_that_lose_are_named() -> None:
    """A view without a baseline is included."""
    result = report_of(
        system("auto", 0.6, origin="ours"),
        system("auto", 0.6, "shown", origin="ours"),
        system("graph", 0.4, origin="ours"),
        system("dense", 0.5),
    )

    assert ["graph matches -10.0 on dense"] == list(losing(result))
    assert [] == list(losing(report_of(*result.systems[:3])))


def test_report_is_equal_if_it_is_written_twice(tmp_path: Path) -> None:
    words = ["report", "--data", FIXTURE, "--out", tmp_path / "page.md", "--embedder", "none"]
    words += ["--limit-queries", 4]

    def written() -> str:
        result = CliRunner().invoke(retrieval.app, [str(word) for word in words])
        assert 0 == result.exit_code, result.output
        return (tmp_path / "page.md").read_text(encoding="utf-8")

    first = written()

    assert first == written()
    assert "A sample of 4 queries a set." in first
    assert "No embedder." in first


def test_verdict_requires_that_the_whole_interval_is_better() -> None:
    """Otherwise the result is a tie."""
    one = system("a", 0.5)
    tie = Difference(mean=0.1, low=-0.1, high=0.2)
    item = replace(
        report_of(one),
        versus=(Versus(ours=one, floor=one, difference=tie, better=1, same=0, worse=1),),
    )

    assert "+10.0 [-10.0, +20.0] points, 1 queries better and 1 worse: it ties." in page(
        [item], method=""
    )
