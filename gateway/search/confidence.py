"""How likely a match is what was asked for, 0 to 1, comparable between queries and modes. Pure.

* Whether the catalog serves the request at all says `gateway.search.served` where it can, and what
  follows says how its matches stand to each other; elsewhere it says all.
* One scale, three ways to it, by what is known: what the model's cosines mean; only how a match
  stands out of its catalog; no vectors at all.
* The weights are logistic regressions on requests that a catalog serves against requests of other
  catalogs (eight public sets; fitted on the half of the requests whose id hashes even, looked at
  on the other half). Another model needs no other weights.
* What decides is how the least of the served requests look, not the average one: where the model
  half knows the query's language its cosines are small, and that is no sign of a stranger.
* The graph's agreement moves the number, never the rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

GRAPH_SHARE = 0.15
"""How much of the remaining doubt the graph's full agreement takes away."""
_FEW = 8
"""Of so few entities the spread says little: deviations from it count half."""


class Signals(NamedTuple):
    """What is known of one match and its query."""

    coverage: float
    """Share of the query's words that it holds, by rarity, 0 to 1."""
    unmatched: float
    """Share of the query's words that nobody holds, 0 to 1."""
    eligible: int
    """Of how many it is one, >= 1: the best of many is near by chance."""
    standing: float | None = None
    """How far its cosine lies above the catalog's mean, in the catalog's deviations; None without
    vectors."""
    nearness: float | None = None
    """Where its cosine lies between a stranger's, 0, and a weak match's, 1; None if nobody measured
    the model. See `gateway.embed.yardstick`."""
    unread: float = 0.0
    """How much of the query the model cannot read, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    bias: float
    coverage: float
    unmatched: float
    eligible: float
    standing: float = 0.0
    nearness: float = 0.0
    unread: float = 0.0


_BY_MODEL = _Weights(
    bias=-5.5, coverage=4.8, unmatched=0.0, eligible=-0.15, nearness=2.9, unread=2.6
)
_BY_CATALOG = _Weights(bias=-1.53, coverage=9.3, unmatched=-0.22, eligible=-0.36, standing=0.58)
_BY_WORDS = _Weights(bias=-1.85, coverage=12.2, unmatched=0.26, eligible=0.0)


def judge(signals: Signals) -> float:
    """Judge a match."""
    return share(weigh(signals))


def weigh(signals: Signals) -> float:
    """Give the logarithm of the odds that a match is what was asked for."""
    near = signals.standing if signals.nearness is None else signals.nearness
    return weigh_each(signals, [signals.coverage], [near or 0.0])[0]


def weigh_each(query: Signals, coverages: Sequence[float], near: Sequence[float]) -> list[float]:
    """Give what `weigh` gives of several matches of one query.

    Args:
        query: What they have in common, with the kind of what is known: its own coverage,
            standing and nearness are not read.
        coverages: The coverage of each.
        near: The nearness of each; where there is none, the standing; without vectors anything.
    """
    if query.standing is None:
        weights, weight = _BY_WORDS, 0.0
    elif query.nearness is None:
        weights, weight = _BY_CATALOG, _BY_CATALOG.standing
    else:
        weights, weight = _BY_MODEL, _BY_MODEL.nearness
    bias, share = weights.bias, weights.coverage
    unmatched = weights.unmatched * query.unmatched
    eligible = weights.eligible * math.log(query.eligible)
    unread = weights.unread * query.unread
    return [
        bias + share * coverage + unmatched + eligible + weight * each + unread
        for coverage, each in zip(coverages, near, strict=True)
    ]


def standings(cosines: Sequence[float], *, mean: float, spread: float, count: int) -> list[float]:
    """Measure cosines against those of their catalog.

    Args:
        cosines: The best cosine of each match.
        mean: Mean cosine of the eligible catalog.
        spread: Standard deviation of the same.
        count: How many entities that is.
    """
    if spread <= 0:
        return [0.0] * len(cosines)
    few = count + _FEW
    return [(cosine - mean) / spread * count / few for cosine in cosines]


def with_graph(confidence: float, agreement: float | None) -> float:
    """Raise *confidence* by how much of the query the entity's graph node holds, 0 to 1."""
    if agreement is None:
        return confidence
    return confidence + (1.0 - confidence) * GRAPH_SHARE * min(max(agreement, 0.0), 1.0)


def share(value: float) -> float:
    """Give the confidence of which *value* is the logarithm of the odds."""
    return 1.0 / (1.0 + math.exp(-max(min(value, 60.0), -60.0)))
