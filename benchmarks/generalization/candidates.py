"""Ways to rank that are compared, each a small function over a set's evidence. Pure.

A candidate is fitted on some sets and scores another. Those without parameters are fitted nowhere:
what they reach in sample and left out is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import (
    NOT_RANKED,
    Weights,
    deviations,
    fused,
    judge,
    product_cosines,
)
from gateway.runtime.vectors import Matrix

P = TypeVar("P")
_SUM_WORDS = 0.4
"""What words count in the sum that others are compared with."""
Fit = Callable[[Sequence[Evidence]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A way to rank."""

    name: str
    score: Callable[[Evidence, Any], Matrix]
    """The evidence of a set and parameters -> scores, shape (q, n); minus infinity is not ranked.
    """
    fit: Fit = lambda _train: None
    """The evidence of the training sets -> parameters; must not change what it reads."""
    describe: Callable[[Any], object] = lambda parameters: parameters
    """Parameters -> what a report says of them, a JSON value."""


def plain(evidence: Evidence, _: object = None) -> Matrix:
    """Return the product's own scores."""
    return evidence.product


def plain_sum(evidence: Evidence, _: object = None) -> Matrix:
    """Add vectors and words over the whole catalog, without clauses and server groups."""
    whole, _ = product_cosines(evidence)
    return deviations(whole) + np.float32(_SUM_WORDS) * deviations(evidence.words.scores)


def words_alone(evidence: Evidence, _: object = None) -> Matrix:
    """Score by BM25F; what holds no word is not ranked."""
    scores = evidence.words.scores
    return np.where(scores > 0, scores, NOT_RANKED)


def vectors_alone(evidence: Evidence, _: object = None) -> Matrix:
    """Score by the cosine of the whole query."""
    return product_cosines(evidence)[0]


def best_choice(choices: Sequence[P], score: Callable[[Evidence, P], Matrix]) -> Fit:
    """Return a fit that takes that of *choices* with the best mean recall@5 over training sets.

    Of equals it takes the first one. What a choice reaches on a set is computed once.
    """
    recalls: dict[tuple[str, int], float] = {}

    def recall(evidence: Evidence, number: int) -> float:
        key = evidence.name, number
        if key not in recalls:
            recalls[key] = judge(evidence, score(evidence, choices[number])).recall
        return recalls[key]

    def fit(train: Sequence[Evidence]) -> P:
        means = [
            np.mean([recall(evidence, number) for evidence in train])
            for number in range(len(choices))
        ]
        return choices[int(np.argmax(np.round(means, 9)))]

    return fit


WEIGHT_CHOICES = (
    Weights(),
    *(
        Weights(words=words, clause_words=clause_words, clause_cosine=clause_cosine)
        for words, clause_words, clause_cosine in product(
            (0.2, 0.3, 0.4, 0.5, 0.7, 1.0), (0.0, 0.2, 0.4, 0.7), (0.0, 0.35, 0.7, 1.4)
        )
    ),
)

_WORD_WEIGHTS = (Weights().words, 0.4, 0.55, 0.7)
_SERVER_WEIGHTS = (Weights().servers, *((least, 2.0) for least in (0.0, 1.0)), (0.0, 0.0))


def weighted(evidence: Evidence, weights: Weights) -> Matrix:
    """Score by the product's formula with other weights."""
    return fused(evidence, weights=weights)


def clause_weighted(evidence: Evidence, gain: float) -> Matrix:
    """Score by the product's formula with another gain of the tools nearest to clauses."""
    return fused(evidence, weights=Weights(clause_gain=gain))


def field_weighted(evidence: Evidence, label: str) -> Matrix:
    """Score by the product's formula with other weights of the fields; empty for its own."""
    return fused(evidence, words=evidence.field_words[label] if label else None)


def field_and_word_weighted(evidence: Evidence, choice: tuple[str, float]) -> Matrix:
    """Score by the product's formula with other weights of the fields and of all words."""
    return ranking_weighted(evidence, (*choice, Weights().servers))


def ranking_weighted(evidence: Evidence, choice: tuple[str, float, tuple[float, ...]]) -> Matrix:
    """Score by the product's formula with other weights of fields, words and servers."""
    label, words, servers = choice
    return fused(
        evidence,
        words=evidence.field_words[label] if label else None,
        weights=Weights(words=words, clause_words=words, servers=servers),
    )


def baseline_candidates() -> Iterable[Candidate]:
    """Yield the product's ranking, which all are compared with, and what has no parameters."""
    yield Candidate(name="plain", score=plain)
    yield Candidate(name="sum", score=plain_sum)
    yield Candidate(name="words", score=words_alone)
    yield Candidate(name="vectors", score=vectors_alone)


def grid_candidates(sets: Sequence[Evidence]) -> Iterable[Candidate]:
    """Yield what is chosen from a small grid."""
    yield Candidate(
        name="weights",
        score=weighted,
        fit=best_choice(WEIGHT_CHOICES, weighted),
        describe=lambda weights: {
            "words": weights.words,
            "clause_words": weights.clause_words,
            "clause_cosine": weights.clause_cosine,
        },
    )
    gains = (Weights().clause_gain, 0.0, 0.5, 1.5, 2.0)
    yield Candidate(name="clauses", score=clause_weighted, fit=best_choice(gains, clause_weighted))
    labels = ("", *sets[0].field_words)
    yield Candidate(name="fields", score=field_weighted, fit=best_choice(labels, field_weighted))
    yield Candidate(
        name="fields and words",
        score=field_and_word_weighted,
        fit=best_choice(tuple(product(labels, _WORD_WEIGHTS)), field_and_word_weighted),
    )
    yield Candidate(
        name="fields, words and servers",
        score=ranking_weighted,
        fit=best_choice(tuple(product(labels, _WORD_WEIGHTS, _SERVER_WEIGHTS)), ranking_weighted),
    )
