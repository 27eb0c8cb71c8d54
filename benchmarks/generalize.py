"""Whether what is fitted for ranking holds on sets of other people.

    python -m benchmarks.generalize --data DIR --data DIR --cache DIR

* Each group of origin is left out in turn: a candidate is fitted on the others and judged on it.
* The evidence of each set is computed once by the product's own functions and kept in the cache
  folder, so that a candidate is judged in seconds.
* Tables go to standard output, progress to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.bootstrap import Difference
from benchmarks.generalization.candidates import Candidate, baseline_candidates, grid_candidates
from benchmarks.generalization.evidence import Evidence, load_evidence
from benchmarks.generalization.protocol import CandidateResult, SetResult, check_sets, evaluate
from benchmarks.tables import print_figures, print_table
from gateway import Embedder
from gateway.options.environment import environment
from gateway.plugins.local.embedder import LocalEmbedder

_HEADS = {"plain": "plain", "left_out": "left out", "in_sample": "in sample"}

app = typer.Typer(add_completion=False)


@app.command()
def generalize(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    group: Annotated[
        list[str] | None, typer.Option(help="SET=GROUP: the group of origin; may be repeated.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Where the evidence is kept.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Candidates whose names begin so; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where every digit is written too, as JSON.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Fit ways to rank with each group of sets left out, and judge them on it."""
    embedder = LocalEmbedder()
    if embedder is None:
        raise typer.BadParameter("the local model is not installed")
    folder = cache or environment().cache_dir / "evidence"
    sets = load_sets(data, read_groups(group or []), embedder, folder)
    chosen = [each for each in candidates(sets) if _is_wanted(each.name, only)]
    log = Console(stderr=True, soft_wrap=True, highlight=False).print
    results = evaluate(sets, chosen, log)
    report = to_json(sets, results)
    if out:
        out.write_text(json.dumps(report, indent=2, ensure_ascii=False), encoding="utf-8")
    if as_json:
        print_figures(report, as_json=True)
    else:
        print_results(results)


def read_groups(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``SET=GROUP`` pairs.

    Raises:
        typer.BadParameter: A pair has no ``=``.
    """
    parts = [pair.partition("=") for pair in pairs]
    for name, mark, origin in parts:
        if not (name and mark and origin):
            raise typer.BadParameter(f"{name!r} is not SET=GROUP")
    return {name: origin for name, _, origin in parts}


def load_sets(
    folders: Sequence[Path], groups: Mapping[str, str], embedder: Embedder, cache: Path
) -> list[Evidence]:
    """Return the evidence of each folder.

    Raises:
        ConfigError: A folder is no set, or there are too few groups to leave one out.
    """
    log = Console(stderr=True).print
    sets = []
    for folder in folders:
        log(f"evidence of {folder.name}")
        origin = groups.get(folder.name, "")
        sets.append(load_evidence(folder, embedder=embedder, cache=cache, origin=origin))
    check_sets(sets)
    return sets


def candidates(sets: Sequence[Evidence]) -> Iterable[Candidate]:
    """Yield all candidates, the product's own ranking first."""
    yield from baseline_candidates()
    yield from grid_candidates(sets)


def _is_wanted(name: str, only: Sequence[str] | None) -> bool:
    return not only or any(name.startswith(prefix) for prefix in only)


# -- report ----------------------------------------------------------------------------------------


def print_results(results: Sequence[CandidateResult]) -> None:
    """Print one line a candidate, then each candidate set by set."""
    print_table("Mean over the sets", [_summary_row(each) for each in results])
    for result in results:
        print_table(
            f"{result.name}, set by set",
            [
                {
                    "set": each.name,
                    "origin": each.origin,
                    **_columns(_figures_json(each)),
                    **_interval(each.difference),
                }
                for each in result.sets
            ],
            caption=f"fitted on all sets: {result.parameters}" if result.parameters else "",
        )


def _summary_row(result: CandidateResult) -> dict[str, object]:
    worst = result.worst
    return {
        "candidate": result.name,
        **_columns(_mean_json([_figures_json(each) for each in result.sets])),
        **_interval(result.difference),
        "worst set": f"{worst.name} {100 * worst.difference.mean:+.2f}",
        "verdict": "taken" if result.is_taken else "not taken",
    }


def _columns(figures: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return percentages: recall@5 and nDCG@10, each of the product, left out and in sample."""
    return {
        f"{head} {_HEADS[column]}": f"{100 * figures[column][figure]:.2f}"
        for figure, head in (("recall@5", "r@5"), ("ndcg@10", "ndcg"))
        for column in figures
    }


def _interval(found: Difference) -> dict[str, str]:
    return {
        "gain": f"{100 * found.mean:+.2f}",
        "95 %": f"{100 * found.low:+.2f} to {100 * found.high:+.2f}",
    }


def to_json(sets: Sequence[Evidence], results: Sequence[CandidateResult]) -> dict[str, object]:
    """Return every figure as JSON values; shares of 1."""
    return {
        "sets": [
            {
                "set": evidence.name,
                "origin": evidence.origin,
                "tools": len(evidence.tool_ids),
                "queries": len(evidence.gold),
            }
            for evidence in sets
        ],
        "candidates": [_candidate_json(result) for result in results],
    }


def _candidate_json(result: CandidateResult) -> dict[str, object]:
    return {
        "candidate": result.name,
        "taken": result.is_taken,
        "parameters": result.parameters,
        "gain": _difference_json(result.difference),
        "worst": {"set": result.worst.name, "gain": result.worst.difference.mean},
        "mean": _mean_json([_figures_json(each) for each in result.sets]),
        "sets": [
            {
                "set": each.name,
                "parameters": each.parameters,
                "gain": _difference_json(each.difference),
                **_figures_json(each),
            }
            for each in result.sets
        ],
    }


def _figures_json(result: SetResult) -> dict[str, dict[str, float]]:
    columns = {"plain": result.plain, "left_out": result.left_out, "in_sample": result.in_sample}
    return {
        name: {"recall@5": figures.recall, "ndcg@10": figures.ndcg}
        for name, figures in columns.items()
    }


def _mean_json(rows: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            figure: sum(row[name][figure] for row in rows) / len(rows) for figure in rows[0][name]
        }
        for name in rows[0]
    }


def _difference_json(found: Difference) -> dict[str, float]:
    return {"mean": found.mean, "low": found.low, "high": found.high}


if __name__ == "__main__":
    app()
