"""Whether a catalog serves a request at all, judged by the best of its first matches. Pure.

* A request that nothing serves has a nearest tool too. What tells is how the request looks: how
  near it is to tools that are in no catalog, whether the first matches stand to these as it does,
  how it stands to this catalog, how long it is. How near the nearest is says nothing besides.
* The weights are a ridge logistic regression with all products of two signals, made by
  ``benchmarks.training`` out of its frozen signals; a test makes the packaged numbers again.
* It holds for the model that it was trained with, and for others there is `confidence` alone.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from gateway.runtime.vectors import NDArray

FIRST = 5
"""So many matches are looked at for the best."""
NEAREST = 5
"""So many of the cohort's tools are the nearest ones."""
FURTHER = 20
"""How far the nearest entity is ahead of the one in this place says how it stands out."""
BOUND = 3.0
"""No signal counts for more deviations: beyond, nothing was seen."""
_MOST_WORDS = 4.5
Numbers: TypeAlias = NDArray[np.float64]
_FILE = Path(__file__).with_name("served.json")


class Request(NamedTuple):
    """What is known of one request. Nearness is on the model's scale, see `Yardstick`, and of
    cosines by what they could be.
    """

    coverage: float
    """Share of the request's words that the best of the first matches holds, by rarity, 0 to 1."""
    unread: float
    """How much of the request the model cannot read, 0 to 1."""
    strangers: float
    """Mean nearness of the nearest of the cohort: tools that are none of the catalog's."""
    cohort: float
    """Mean nearness of the whole cohort."""
    words: float
    """Logarithm of how many words the request has, and one."""
    parts: float
    """Logarithm of how many parts the request has, and one: none of an undivided one."""
    ahead: float
    """How much nearer the nearest entity is than the twentieth, of all."""
    mean: float
    """Mean nearness of the entities that it is judged against: those of the first match's own
    server that may be found, or all; see `gateway.search.dense.home`."""
    spread: float
    """Standard deviation of the same."""
    alike: float
    """How alike it and one of the first matches stand to the cohort, -1 to 1."""
    most: float
    """The most of its words that one of the first matches holds, by rarity, 0 to 1."""
    unknown: float
    """Share of its words that none of them holds, by rarity, 0 to 1."""
    rarest: float
    """How rare the rarest of its words is that one of them holds, 0 to 1."""


class Weights(NamedTuple):
    """A quadratic form over signals in deviations."""

    means: Numbers
    deviations: Numbers
    bias: float
    linear: Numbers
    products: Numbers
    """Upper triangle, shape (s, s)."""

    def logit(self, request: Request) -> float:
        """Give the logarithm of the odds that the catalog serves *request*."""
        away = (np.array(request) - self.means) / self.deviations
        np.minimum(np.maximum(away, -BOUND, out=away), BOUND, out=away)
        return self.bias + float((self.linear + away @ self.products) @ away)


def words(count: int) -> float:
    """Give `Request.words` of so many words: beyond ninety, more of them say nothing."""
    return min(math.log1p(count), _MOST_WORDS)


def read(text: str) -> Weights:
    """Read weights as `written` writes them.

    Raises:
        ValueError: If they are of other signals.
    """
    told = json.loads(text)
    if told["signals"] != list(Request._fields):
        raise ValueError(f"the weights are of {told['signals']}, not of {list(Request._fields)}")
    return Weights(
        means=np.array(told["means"]),
        deviations=np.array(told["deviations"]),
        bias=told["bias"],
        linear=np.array(told["linear"]),
        products=np.array(told["products"]),
    )


def written(weights: Weights, *, digits: int = 4) -> str:
    """Write *weights* as JSON, each to so many digits behind the point."""
    found = {"signals": list(Request._fields)} | {
        name: np.round(value, digits).tolist() for name, value in weights._asdict().items()
    }
    rows = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    return "{\n" + ",\n".join(rows).replace("], [", "],\n    [") + "\n}\n"


@cache
def packaged() -> Weights:
    """Give the weights of the package, read once."""
    return read(_FILE.read_text(encoding="utf-8"))
