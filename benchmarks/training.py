"""The weights that say whether a catalog serves a request: `gateway.search.served`.

    python -m benchmarks.training --out gateway/search/served.json
    python -m benchmarks.training --out … --data DIR --data DIR --related NAME,NAME

* Without folders from the frozen signals beside this file; with folders those are made anew: every
  catalog, and parts of it (a drawn tool and its nearest), is asked its own requests and those of
  the other sets.
* Fitted on the requests whose id hashes even. The table says what that empties of the
  unanswerable at so many answerable lost: on the odd ones, and on each set by weights that saw
  neither its catalog nor its requests.
* Deterministic: Newton's method on a ridge regression, to four digits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.confidence import auroc
from benchmarks.hearing import Heard, listen
from gateway.options import SearchOptions
from gateway.search import served
from gateway.search.confidence import GRAPH_SHARE
from gateway.search.fusion import STEPS
from gateway.search.served import BOUND, Numbers, Request, Weights

FROZEN = Path(__file__).with_name("signals.npz")
LOST = 0.01
"""So many of the answerable requests of sets that nothing was learned from are lost at the default
threshold, as a mean over the sets; jobs, which are judged by their matches as well, are not told.
"""
RIDGE = 0.01
"""What a weight of one costs beside the mean loss of a request."""
UNREAD = 2.5
"""What the odds gain by a whole request that the model cannot read, set by hand: one set alone has
such, of one language, and in doubt the one who asks is right."""
PART = 0.25
"""What a part of a catalog counts beside a whole one."""
_STEPS = 60
_LOST = (0.01, 0.02, 0.025, 0.03, 0.05)


def fit(heard: Heard) -> Weights:
    """Fit weights to *heard*: every catalog counts alike, and in it both kinds of requests.

    Returns:
        Weights whose bias is such that of each set, by weights that did not see it, `LOST` of the
        served requests of the whole catalog would be below the threshold, as a mean.
    """
    weights = _learned(heard)
    told = heard.whole & heard.served & ~_jobs(heard)
    away = _unseen(heard, _learned)
    return weights._replace(bias=weights.bias + _shift(heard.at(told), away[told]))


def left_out(heard: Heard) -> Numbers:
    """Judge each set by weights fitted to what is even, of all other catalogs and requests."""
    return _unseen(heard, lambda others: fit(others.at(others.even)))


def _unseen(heard: Heard, learn: Callable[[Heard], Weights]) -> Numbers:
    odds = np.zeros(len(heard.served))
    for name in np.unique(heard.sets[heard.whole]):
        rows = heard.catalog == name
        others = heard.at((heard.sets != name) & (heard.asked != name))
        odds[rows] = logits(heard.at(rows), learn(others))
    return odds


def _jobs(heard: Heard) -> NDArray[np.bool_]:
    parts = heard.signals[:, Request._fields.index("parts")]
    return np.asarray(parts > math.log1p(STEPS[0] + 0.5))


def _learned(heard: Heard) -> Weights:
    means, deviations = heard.signals.mean(axis=0), heard.signals.std(axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    away = np.clip((heard.signals - means) / deviations, -BOUND, BOUND)
    upper = np.triu_indices(away.shape[1])
    design = np.column_stack([np.ones(len(away)), away, away[:, upper[0]] * away[:, upper[1]]])
    found = _newton(design, heard.served.astype(float), _counted(heard))
    products = np.zeros((away.shape[1], away.shape[1]))
    products[upper] = found[1 + away.shape[1] :]
    linear = found[1 : 1 + away.shape[1]]
    unread = Request._fields.index("unread")
    linear[unread] += UNREAD * deviations[unread]
    return Weights(
        means=means, deviations=deviations, bias=float(found[0]), linear=linear, products=products
    )


def logits(heard: Heard, weights: Weights) -> Numbers:
    """Judge each request, shape (n,)."""
    return np.array([weights.logit(Request(*row)) for row in heard.signals.tolist()])


def margins(heard: Heard, odds: Numbers, shift: float = 0.0) -> Numbers:
    """Say how far the confidence of each request is above what empties it, shape (n,)."""
    told = 1.0 / (1.0 + np.exp(-(odds + shift)))
    told += (1.0 - told) * GRAPH_SHARE * np.clip(heard.agreement, 0.0, 1.0)
    return told - SearchOptions().no_match_confidence * heard.narrowness


def _newton(design: Numbers, right: Numbers, counted: Numbers) -> Numbers:
    costs = np.full(design.shape[1], RIDGE)
    costs[0] = 0.0
    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        told = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -40, 40)))
        slope = design.T @ (counted * (told - right)) + costs * found
        bend = (design * (counted * told * (1 - told))[:, None]).T @ design + np.diag(costs)
        step = np.linalg.solve(bend + 1e-12 * np.eye(len(bend)), slope)
        found -= step
        if np.abs(step).max() < 1e-12:
            break
    return found


def _counted(heard: Heard) -> Numbers:
    counted = np.where(heard.whole, 1.0, PART)
    for catalog in np.unique(heard.catalog):
        for kind in (True, False):
            rows = (heard.catalog == catalog) & (heard.served == kind)
            counted[rows] /= max(int(rows.sum()), 1)
    return np.asarray(counted / counted.sum())


def _shift(heard: Heard, odds: Numbers) -> float:
    """Find what the odds gain so that `LOST` of *heard* are emptied, by halving."""
    low, high = -20.0, 20.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _mean_over(heard.sets, margins(heard, odds, middle) < 0) > LOST:
            low = middle
        else:
            high = middle
    return high


def _mean_over(groups: NDArray[np.str_], values: NDArray[np.bool_]) -> float:
    return float(np.mean([values[groups == group].mean() for group in np.unique(groups)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What weights reach, as means over sets and pairs of sets."""

    auroc: float
    lost: float
    emptied: float
    """At the default threshold."""
    curve: tuple[float, ...]
    """Emptied, if a threshold lost 1, 2, 2.5, 3 and 5 % of the answerable."""


def reached(heard: Heard, odds: Numbers) -> Reached:
    """Hold the answerable against the unanswerable of whole catalogs."""
    rows = heard.whole
    heard, odds = heard.at(rows), odds[rows]
    above = margins(heard, odds)
    # Confidence over what empties: one scale for narrow and for broad catalogs.
    scale = above / heard.narrowness
    good, bad = heard.served, ~heard.served
    pairs = np.array([f"{a} {b}" for a, b in zip(heard.catalog, heard.asked, strict=True)])
    order = np.argsort(scale[good])
    sets = heard.sets[good]
    share = np.array([1 / (sets == each).sum() for each in sets])[order].cumsum()
    share /= share[-1]
    bounds = [scale[good][order][np.searchsorted(share, lost)] for lost in _LOST]
    return Reached(
        auroc=auroc(scale[good].tolist(), scale[bad].tolist()),
        lost=_mean_over(sets, above[good] < 0),
        emptied=_mean_over(pairs[bad], above[bad] < 0),
        curve=tuple(_mean_over(pairs[bad], scale[bad] < bound) for bound in bounds),
    )


def among(heard: Heard, sets: Sequence[str]) -> Heard:
    """Give the rows of catalogs and requests of *sets*, and of requests that nothing serves."""
    known = [*sets, *(f"{name}-nomatch" for name in sets)]
    return heard.at(np.isin(heard.catalog, sets) & np.isin(heard.asked, known))


def main(
    *,
    out: Annotated[Path, typer.Option(help="Where the weights go, as JSON.")],
    data: Annotated[list[Path] | None, typer.Option(help="A folder; may be repeated.")] = None,
    related: Annotated[
        list[str] | None, typer.Option(help="Sets not to be paired, with commas; repeatable.")
    ] = None,
    judged: Annotated[str, typer.Option(help="Sets that the table is of; empty: all.")] = "",
    signals: Annotated[Path, typer.Option(help="The frozen signals.")] = FROZEN,
) -> None:
    """Fit the weights, and say what they reach."""
    if data:
        groups = [frozenset(each.split(",")) for each in related or []]
        asyncio.run(listen(data, related=groups)).save(signals)
    heard = Heard.load(signals)
    weights = fit(heard.at(heard.even))
    out.write_text(served.written(weights), encoding="utf-8")
    sets = judged.split(",") if judged else np.unique(heard.sets).tolist()
    Console(width=120).print(_table(heard, served.read(out.read_text(encoding="utf-8")), sets))


def _table(heard: Heard, weights: Weights, sets: Sequence[str]) -> Table:
    table = Table("requests", title="what a threshold empties, %")
    for name in ("auroc", "lost", "emptied", *(f"at {100 * lost:g} lost" for lost in _LOST)):
        table.add_column(name, justify="right")
    halves = {"even": among(heard.at(heard.even), sets), "odd": among(heard.at(~heard.even), sets)}
    told = {name: reached(half, logits(half, weights)) for name, half in halves.items()}
    every = among(heard, sets)
    rows = np.isin(heard.catalog, sets) & np.isin(heard.asked, np.unique(every.asked))
    told["left out"] = reached(every, left_out(heard)[rows])
    for name, each in told.items():
        numbers = (each.auroc, each.lost, each.emptied, *each.curve)
        table.add_row(name, *(f"{100 * number:.1f}" for number in numbers))
    return table


if __name__ == "__main__":
    typer.run(main)
