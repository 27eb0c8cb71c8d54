"""A report as Markdown: the summary over the sets first, then each set. Pure.

The report stands between two marks, so that what else a document says is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.systems import FIGURE, SetReport, Versus, best_of
from gateway.plugins.quality.metrics import Figures

BEGIN = "<!-- written by `python -m benchmarks.retrieval report`: begin -->"
END = "<!-- written by `python -m benchmarks.retrieval report`: end -->"
COLUMNS = ("hit@1", FIGURE, "recall@10", "ndcg@10", "comp@10", "map@10")
NEXT = "next_hit@5"
_NONE = "–"  # noqa: RUF001  (the dash of tables)
_SHOWN = 0.0005
"""Less than this is no loss that a table with one digit could show."""


def replace_report(document: str, written: str) -> str:
    """Put *written* between the marks of *document*, at its end if it has none."""
    whole = f"{BEGIN}\n\n{written.strip()}\n\n{END}"
    before, begun, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if begun and ended:
        return f"{before}{whole}{after}"
    return f"{document.rstrip()}\n\n{whole}\n".lstrip()


def page(sets: Sequence[SetReport], *, method: str) -> str:
    """Write a report.

    Args:
        sets: What was measured.
        method: How it was measured, as prose.
    """
    parts = ["## How well tools are found", method]
    if any(each.versus for each in sets):
        parts += ["### Against the best baseline of each set", _lines(_overview(sets))]
    parts += [part for each in sets for part in _set(each)]
    return "\n\n".join(parts) + "\n"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _table(*columns: str, texts: int) -> Iterator[str]:
    """Write the head of a table whose first *texts* columns are words."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * texts}{'--:|' * (len(columns) - texts)}"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _overview(sets: Sequence[SetReport]) -> Iterator[str]:
    yield from _table(
        "set", "view", "best baseline", "", "tools", "queries", "floor", "ours",
        "difference, 95 %", "better / same / worse", "best given",
        texts=4,
    )  # fmt: skip
    for each in sets:
        for one in each.versus:
            given = best_of(each.systems, one.ours.view, origin="given")
            yield _row(
                each.name,
                one.ours.view,
                one.floor.name,
                one.difference.verdict,
                f"{each.tools:,}",
                f"{each.queries:,}",
                percent(one.floor.recall),
                f"**{percent(one.ours.recall)}**",
                interval(one),
                f"{one.better} / {one.same} / {one.worse}",
                f"{percent(given.recall)} {given.name}" if given else _NONE,
            )


def interval(one: Versus) -> str:
    """Write a difference with its interval, in points."""
    found = one.difference
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def percent(value: float | None) -> str:
    """Write a share as a percentage with one digit; a dash for None."""
    return _NONE if value is None else f"{100 * value:.1f}"


def _set(each: SetReport) -> Iterator[str]:
    spoken = ", ".join(f"{language} {count:,}" for language, count in each.languages.items())
    yield f"### {each.name}"
    yield f"{each.tools:,} tools; {each.queries:,} queries ({spoken})."
    yield _lines(_systems(each))
    if len(each.languages) > 1:
        yield "Recall@5 by language:"
        yield _lines(_languages(each))
    for one in each.versus:
        yield (
            f"{one.ours.name}, {one.ours.view}, against {one.floor.name}: {interval(one)} points, "
            f"{one.better} queries better and {one.worse} worse: it {one.difference.verdict}."
        )
    lost = list(losing(each))
    yield f"Below the best baseline: {'; '.join(lost)}." if lost else "No row of ours is below."


def _systems(each: SetReport) -> Iterator[str]:
    steps = (NEXT,) if any(system.next_figures for system in each.systems) else ()
    heads = (*COLUMNS, *(name.replace("_", " ") for name in steps), "typos: recall@5", "kept")
    yield from _table("system", "view", *heads, texts=2)
    for system in each.systems:
        mark = {"ours": f"**{system.name}**", "given": f"{system.name} (given)"}
        yield _row(
            mark.get(system.origin, system.name),
            system.view,
            *(_figure(system.figures, name) for name in COLUMNS),
            *(_figure(system.next_figures, name) for name in steps),
            _figure(system.typos, FIGURE),
            percent(system.typo_share),
        )


def _figure(figures: Figures, name: str) -> str:
    return percent(figures.get(name))


def _languages(each: SetReport) -> Iterator[str]:
    yield from _table("system", "view", *each.languages, texts=2)
    for system in each.systems:
        if system.by_language:
            figures = (system.by_language[language] for language in each.languages)
            yield _row(system.name, system.view, *(_figure(one, FIGURE) for one in figures))


def losing(report: SetReport) -> Iterator[str]:
    """Name every row of ours that is below the best baseline, by recall@5."""
    for system in report.systems:
        best = best_of(report.systems, system.view) or best_of(report.systems, "matches")
        if system.origin == "ours" and best and best.recall - system.recall > _SHOWN:
            lost = 100 * (system.recall - best.recall)
            yield f"{system.name} {system.view} {lost:+.1f} on {best.name}"
