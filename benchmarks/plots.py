"""Plots of a report: recall@5 of the gateway and of the baselines, by set and by language.

* One colour is the gateway; the baselines are grey, the best one darker and named.
* The same report gives the same SVG, byte for byte: no date, fixed ids, text kept as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from benchmarks.systems import FIGURE, SetReport, System

OURS, BEST, OTHER = "#0b6bcb", "#404040", "#a8a8a8"
_DPI = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a dot plot; recalls are shares of 1."""

    label: str
    ours: float
    best: float
    best_name: str
    others: tuple[float, ...]


def draw(sets: Sequence[SetReport], folder: Path, *, png: bool = False) -> list[tuple[str, Path]]:
    """Draw the plots that *sets* have figures for.

    Args:
        sets: The measured sets.
        folder: Where the plots go; created if missing.
        png: Whether to write PNG beside SVG.

    Returns:
        The caption of each plot and its SVG; empty without baselines.
    """
    plots = (
        ("Recall@5 of ours and of the baselines on each set", "recall", _set_rows(sets)),
        ("Recall@5 by language", "languages", _language_rows(sets)),
    )
    drawn = []
    for caption, name, rows in plots:
        if not rows:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.svg"
        with _style():
            figure = _dot_plot(rows, caption)
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            if png:
                figure.savefig(path.with_suffix(".png"), dpi=_DPI, metadata={"Software": None})
        drawn.append((caption, path))
    return drawn


def _style() -> AbstractContextManager[None]:
    return rc_context(
        {
            "svg.hashsalt": "benchmarks",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )


def _set_rows(sets: Sequence[SetReport]) -> list[Row]:
    """Return a row for each comparison of each set, the best set first."""
    rows = []
    for report in sets:
        for versus in report.versus:
            view = versus.ours.view
            others = (
                system.recall
                for system in report.systems
                if system.origin == "baseline"
                and system.view == view
                and system is not versus.floor
            )
            rows.append(
                Row(
                    label=report.name if view == "matches" else f"{report.name}, {view}",
                    ours=versus.ours.recall,
                    best=versus.floor.recall,
                    best_name=versus.floor.name,
                    others=tuple(others),
                )
            )
    return sorted(rows, key=lambda row: (-row.ours, row.label))


def _language_rows(sets: Sequence[SetReport]) -> list[Row]:
    """Return a row for each language of each set; empty if only one language is measured."""
    if len({language for report in sets for language in report.languages}) < 2:
        return []
    rows = [row for report in sets for row in _languages_of(report)]
    return sorted(rows, key=lambda row: (row.label.partition(",")[0], -row.ours))


def _languages_of(report: SetReport) -> Iterator[Row]:
    ours = next((system for system in report.systems if system.origin == "ours"), None)
    baselines = [
        system
        for system in report.systems
        if system.origin == "baseline" and system.view == "matches"
    ]
    if ours is None or not baselines:
        return
    for language in report.languages:
        ranked = sorted(baselines, key=lambda system: -_recall(system, language))
        yield Row(
            label=f"{language}, {report.name}",
            ours=_recall(ours, language),
            best=_recall(ranked[0], language),
            best_name=ranked[0].name,
            others=tuple(_recall(system, language) for system in ranked[1:]),
        )


def _recall(system: System, language: str) -> float:
    return system.by_language[language][FIGURE]


def _dot_plot(rows: Sequence[Row], title: str) -> Figure:
    figure = Figure(figsize=(8.0, 1.25 + 0.46 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("recall@5, %")
    for y, row in enumerate(rows):
        ours, best = 100 * row.ours, 100 * row.best
        axes.plot([100 * other for other in row.others], [y] * len(row.others), "o", color=OTHER)
        axes.plot(best, y, "o", color=BEST, markersize=7)
        axes.plot(ours, y, "o", color=OURS, markersize=9)
        axes.annotate(f"{row.best_name} {best:.1f}", (best, y), (0, 7), textcoords="offset points",
                      color=BEST, fontsize=8, ha="center")  # fmt: skip
        axes.annotate(f"{ours:.1f}", (ours, y), (0, -14), textcoords="offset points",
                      color=OURS, fontweight="bold", ha="center")  # fmt: skip
    return figure
