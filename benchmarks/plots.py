"""Pictures of a report: where ours stands on each set, what typing errors cost, and languages.

* One colour means ours; every other system is grey, and the best of the others is named.
* Figures stand beside their dots, so nothing must be read off an axis.
* The same report gives the same SVG, byte for byte: no date, fixed ids, text kept as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.pages import interval, typo_means
from benchmarks.systems import FIGURE, SetReport, System, Versus

OURS, BEST, OTHER, FAINT, LOST = "#0b6bcb", "#404040", "#a8a8a8", "#e4e4e4", "#b3261e"
_WIDTH = 8.0
"""Inches; 100 dots an inch make a picture of 800."""
_DOTS = 100
_NOTES = 0.36
"""Room at the right for notes, as a share of the axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a dot plot."""

    label: str
    ours: float
    """Shares of 1, as all figures here."""
    best: float
    best_name: str
    others: tuple[float, ...]
    note: str
    lost: bool


def draw(sets: Sequence[SetReport], folder: Path, *, png: bool = False) -> list[tuple[str, Path]]:
    """Draw all pictures that *sets* have figures for.

    Args:
        sets: What was measured.
        folder: Where the pictures go; made if it is not there.
        png: Whether to write PNG beside SVG.

    Returns:
        What each picture shows, and its SVG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[tuple[str, Path]] = []
    pictures: tuple[tuple[str, str, Callable[[Sequence[SetReport]], Figure | None]], ...] = (
        ("Recall@5 of ours and of the baselines on each set", "recall", by_set),
        ("Recall@5 with and without typing errors", "typos", by_typos),
        ("Recall@5 by language", "languages", by_language),
    )
    for text, name, make in pictures:
        with _style():
            figure = make(sets)
            if figure is None:
                continue
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            if png:
                figure.savefig(path.with_suffix(".png"), dpi=_DOTS, metadata={"Software": None})
            drawn.append((text, path))
    return drawn


def _style() -> AbstractContextManager[None]:
    return rc_context(
        {
            "svg.hashsalt": "benchmarks",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
            "font.size": 10.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,
            "axes.spines.bottom": False,
            "xtick.color": OTHER,
            "ytick.left": False,
        }
    )


def by_set(sets: Sequence[SetReport]) -> Figure | None:
    """Draw a line a set, the best one first; None if nothing has a floor."""
    found = [(each, one) for each in sets for one in each.versus]
    lines = [_versus_line(each, one) for each, one in found]
    lines.sort(key=lambda line: (-line.ours, line.label))
    return _dots(lines, "Are the right tools among the first five?", "ours less best, 95 %")


def _versus_line(each: SetReport, one: Versus) -> Line:
    rest = [
        system.recall
        for system in each.systems
        if system.origin == "baseline" and system.view == one.ours.view and system is not one.floor
    ]
    shown = f", {one.ours.view}" if one.ours.view != "matches" else ""
    return Line(
        label=f"{each.name}{shown}",
        ours=one.ours.recall,
        best=one.floor.recall,
        best_name=one.floor.name,
        others=tuple(rest),
        note=interval(one),
        lost=one.difference.high < 0,
    )


def by_language(sets: Sequence[SetReport]) -> Figure | None:
    """Draw a line for each language of each set, grouped by language; None for a single one."""
    lines = [line for each in sets for line in _language_lines(each)]
    spoken = {line.label.partition(",")[0] for line in lines}
    if len(spoken) < 2:
        return None
    lines.sort(key=lambda line: (line.label.partition(",")[0], -line.ours))
    return _dots(lines, "Does it understand the language?", "queries")


def _language_lines(each: SetReport) -> Iterator[Line]:
    ours = next((one for one in each.systems if one.origin == "ours"), None)
    floors = [one for one in each.systems if one.origin == "baseline" and one.view == "matches"]
    for language, count in each.languages.items():
        rivals = sorted(floors, key=lambda one: -_spoken(one, language))
        if ours and rivals:
            own, best = _spoken(ours, language), _spoken(rivals[0], language)
            yield Line(
                label=f"{language}, {each.name}",
                ours=own,
                best=best,
                best_name=rivals[0].name,
                others=tuple(_spoken(one, language) for one in rivals[1:]),
                note=f"{count:,}",
                lost=False,
            )


def _spoken(system: System, language: str) -> float:
    return system.by_language[language][FIGURE]


def _dots(lines: Sequence[Line], title: str, head: str) -> Figure | None:
    if not lines:
        return None
    figure = Figure(figsize=(_WIDTH, 1.25 + 0.46 * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    least = min(min(line.ours, line.best, *line.others) for line in lines)
    low = max(0.0, 100 * least - 9)
    right = 100 + (100 - low) * _NOTES
    axes.set_xlim(low, right)
    axes.set_ylim(len(lines) - 0.45, -1.0)
    axes.set_yticks(range(len(lines)), [line.label for line in lines])
    ticks = [tick for tick in range(0, 101, 20) if tick >= low]
    axes.set_xticks(ticks)
    axes.set_xlabel("recall@5, %", color=OTHER, loc="left")
    axes.vlines(ticks, -0.4, len(lines) - 0.6, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_title(title, loc="left", fontweight="bold", pad=10)
    _legend(axes, low, right)
    axes.text(right, -0.78, head, color=OTHER, va="center", ha="right", fontsize=9.5)
    for at, line in enumerate(lines):
        _dot_line(axes, at, line)
        axes.text(right, at, line.note, color=LOST if line.lost else BEST, fontsize=9,
                  va="center", ha="right")  # fmt: skip
    return figure


def _legend(axes: Axes, low: float, right: float) -> None:
    at, span = -0.78, right - low
    for share, colour, text in (
        (0.01, OURS, "ours"),
        (0.11, BEST, "best baseline"),
        (0.32, OTHER, "other baselines"),
    ):
        axes.plot(low + span * share, at, "o", color=colour, markersize=6)
        axes.text(low + span * (share + 0.015), at, text, color=colour, va="center", fontsize=9.5)


def _dot_line(axes: Axes, at: int, line: Line) -> None:
    ours, best = 100 * line.ours, 100 * line.best
    axes.plot([best, ours], [at, at], color=OURS, linewidth=2, alpha=0.35, zorder=1)
    axes.plot([100 * each for each in line.others], [at] * len(line.others), "o", color=OTHER,
              markersize=5, zorder=2, alpha=0.8)  # fmt: skip
    axes.plot(best, at, "o", color=BEST, markersize=7, zorder=3)
    axes.plot(ours, at, "o", color=OURS, markersize=9, zorder=4)
    name = f"{line.best_name} {best:.1f}"
    reached = f"{ours:.1f}"
    if ours >= best:
        axes.text(ours + 1.4, at, reached, color=OURS, fontweight="bold", va="center")
    else:  # below its dot: beside it lie others
        axes.text(ours, at + 0.2, reached, color=OURS, fontweight="bold", va="top", ha="center",
                  fontsize=9)  # fmt: skip
    axes.text(best, at - 0.2, name, color=BEST, fontsize=8, va="bottom", ha="center")


def by_typos(sets: Sequence[SetReport]) -> Figure | None:
    """Draw a slope a system, from clean to misspelt, as means over the sets."""
    ours = {(one.name, one.view) for each in sets for one in each.systems if one.origin == "ours"}
    rows = [row for row in typo_means(sets) if row[1] == "matches"]
    if not rows:
        return None
    figure = Figure(figsize=(_WIDTH, 4.6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_title(
        f"What typing errors cost: mean recall@5 over {len(sets)} sets, %",
        loc="left", fontweight="bold", pad=10,
    )  # fmt: skip
    axes.set_xlim(-0.62, 1.75)
    chief = rows[0][0]
    every = [100 * value for row in rows for value in row[2:4]]
    height = max(max(every) - min(every), 1.0)
    left = apart([100 * row[2] for row in rows], height / 17)
    right = apart([100 * row[3] for row in rows], height / 17)
    for row, before, after in zip(rows, left, right, strict=True):
        name, view, clean, typed, share = row
        own = (name, view) in ours
        colour = OURS if own else OTHER
        weight = "bold" if name == chief else "normal"
        dark = OURS if own else BEST
        axes.plot([0, 1], [100 * clean, 100 * typed], "-o", color=colour, markersize=5,
                  linewidth=2.6 if name == chief else 1.4)  # fmt: skip
        axes.text(-0.04, before, f"{name}  {100 * clean:.1f}", color=dark, ha="right", va="center",
                  fontweight=weight)  # fmt: skip
        axes.text(1.04, after, f"{100 * typed:.1f}  keeps {100 * share:.1f} %", color=dark,
                  ha="left", va="center", fontweight=weight)  # fmt: skip
    top = max(*left, *right) + height / 12
    axes.set_ylim(min(*left, *right) - height / 20, top + height / 12)
    axes.text(0, top, "clean", ha="center", color=OTHER)
    axes.text(1, top, "with typing errors", ha="center", color=OTHER)
    return figure


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Move places apart until neighbours are *gap* from each other, in the same order.

    Labels that would lie on each other share the room around their middle.
    """
    order = sorted(range(len(places)), key=lambda at: (places[at], at))
    groups: list[list[int]] = []
    middles: list[float] = []
    for at in order:
        groups.append([at])
        middles.append(places[at])
        while len(groups) > 1 and middles[-1] - middles[-2] < gap * (
            (len(groups[-1]) + len(groups[-2])) / 2
        ):
            merged = groups[-2] + groups[-1]
            groups[-2:] = [merged]
            middles[-2:] = [sum(places[each] for each in merged) / len(merged)]
    moved = list(places)
    for group, middle in zip(groups, middles, strict=True):
        for place, at in enumerate(group):
            moved[at] = middle + (place - (len(group) - 1) / 2) * gap
    return moved
