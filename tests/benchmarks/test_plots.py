"""Plots of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.plots import draw
from benchmarks.ranking import View
from benchmarks.systems import Origin, SetReport, System, against


def system(
    name: str, recall: float, *languages: str, origin: Origin = "baseline", view: View = "matches"
) -> System:
    figures = {"recall@5": recall}
    return System(
        name=name,
        view=view,
        origin=origin,
        figures=figures,
        typos={"recall@5": recall * 0.9},
        by_language=dict.fromkeys(languages, figures),
        next_figures={},
        recalls=(recall,),
    )


def report_of(name: str, *languages: str, ours: float = 0.8) -> SetReport:
    systems = (
        system("auto", ours, *languages, origin="ours"),
        system("auto", ours, *languages, origin="ours", view="shown"),
        system("BM25", 0.7, *languages),
        system("dense", 0.71, *languages),
        system("dense + edges", 0.72, *languages, view="shown"),
    )
    counts = dict.fromkeys(languages, 1)
    return SetReport(
        name=name, tools=9, languages=counts, systems=systems, versus=tuple(against(systems))
    )


def test_equal_reports_draw_equal_plots(tmp_path: Path) -> None:
    """A committed plot changes only when a figure does."""
    sets = [report_of("one", "en", "hi"), report_of("two", "en", ours=0.6)]

    first = {path.name: path.read_bytes() for _, path in draw(sets, tmp_path / "a")}
    second = {path.name: path.read_bytes() for _, path in draw(sets, tmp_path / "b", png=True)}

    assert ["recall.svg", "languages.svg"] == list(first)
    assert first == second
    assert 2 == len(list((tmp_path / "b").glob("*.png")))


def test_figures_stand_in_the_plot_as_text(tmp_path: Path) -> None:
    """A reader can search for them, and a diff shows them."""
    plots = dict(draw([report_of("one", "en", "hi"), report_of("two", "en")], tmp_path))
    text = "".join(path.read_text(encoding="utf-8") for path in plots.values())

    assert all(word in text for word in (">one, shown<", ">dense 71.0<", ">80.0<", ">hi, one<"))


def test_sets_without_figures_are_not_drawn(tmp_path: Path) -> None:
    """A single language needs no plot, and without a baseline there is nothing to compare."""
    english = report_of("one", "en")
    both = report_of("one", "en", "hi")
    alone = replace(both, systems=both.systems[:1], versus=())

    assert ["recall.svg"] == [path.name for _, path in draw([english], tmp_path)]
    assert [] == draw([alone], tmp_path)
    assert [] == draw([], tmp_path)
