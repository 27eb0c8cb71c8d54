"""Pictures of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.plots import apart, draw
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


def test_pictures_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    """What is committed changes only when a figure does."""
    sets = [report_of("one", "en", "hi"), report_of("two", "en", ours=0.6)]

    first = {path.name: path.read_bytes() for _, path in draw(sets, tmp_path / "a")}
    again = {path.name: path.read_bytes() for _, path in draw(sets, tmp_path / "b", png=True)}

    assert ["recall.svg", "typos.svg", "languages.svg"] == list(first)
    assert first == again
    assert 3 == len(list((tmp_path / "b").glob("*.png")))


def test_figures_stand_in_the_picture_as_text(tmp_path: Path) -> None:
    """A reader may search for them, and a diff shows them."""
    found = dict(draw([report_of("one", "en", "hi"), report_of("two", "en")], tmp_path))
    text = "".join(path.read_text(encoding="utf-8") for path in found.values())

    assert all(
        word in text
        for word in (">one, shown<", ">dense 71.0<", ">80.0<", ">hi, one<", "keeps 90.0 %")
    )


def test_what_has_no_figures_is_not_drawn(tmp_path: Path) -> None:
    """One language needs no picture; no baseline leaves none at all."""
    (first, *_), few = draw([report_of("one", "en")], tmp_path), draw([], tmp_path)

    assert "recall.svg" == first[1].name
    assert ["recall.svg", "typos.svg"] == [
        path.name for _, path in draw([report_of("one", "en")], tmp_path)
    ]
    assert [] == few


def test_languages_without_a_baseline_are_not_drawn(tmp_path: Path) -> None:
    """There would be nothing to stand beside."""
    full = report_of("one", "en", "hi")
    alone = replace(full, systems=full.systems[:1], versus=())

    assert ["typos.svg"] == [path.name for _, path in draw([alone], tmp_path)]


def test_labels_are_moved_apart_around_their_middle() -> None:
    """In the same order; those with room stay."""
    assert [1.0, 5.0] == apart([1.0, 5.0], 2.0)
    assert [6.0, 4.0] == apart([5.0, 5.0], 2.0)[::-1]
    assert [10.0, -1.0, 1.0, 3.0] == pytest.approx(apart([10.0, 0.9, 1.0, 1.1], 2.0))
    assert [] == apart([], 1.0)
