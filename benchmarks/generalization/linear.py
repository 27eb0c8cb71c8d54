"""A linear model over what the product knows of each tool in its pool. Pure.

* Features: the product's score, the cosine with that of the best clause, BM25F, that of the best
  clause, BM25F of each field alone and the cosine of each encoder alone; all but the first in
  deviations over the catalog.
* It is fitted by a softmax over the pool: the relevant tools shall have the greatest scores. Each
  query has the same weight in its set, and each set has the same weight. After Cao et al.,
  *Learning to rank: from pairwise approach to listwise approach* (2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.generalization.adapters import parts_of
from benchmarks.generalization.candidates import Candidate
from benchmarks.generalization.evidence import Evidence, Numbers
from benchmarks.generalization.scoring import NOT_RANKED, deviations, strengths
from gateway.runtime.vectors import Matrix

Coefficients = NDArray[np.float64]
RIDGES = (0.01, 0.1, 0.3, 1.0)
"""What the square of a coefficient costs beside the mean loss."""
_STEPS = 12
"""Of Newton's method; the loss is convex."""
_START = 3.0
"""The coefficient of the product's score at the start."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """The pool of each query."""

    positions: Numbers
    """Shape (q, p)."""
    values: NDArray[np.float64]
    """Shape (q, p, f)."""
    targets: NDArray[np.float64]
    """1 / how many relevant tools the pool holds for each of these, else 0, shape (q, p)."""
    weights: NDArray[np.float64]
    """1 / how many queries have a relevant tool in their pool for each of these, else 0, shape
    (q,)."""


def feature_names(evidence: Evidence) -> list[str]:
    """Return the names of the features, in their order."""
    fields = [label for label in evidence.field_words if label.endswith(" alone")]
    encoders = [f"encoder {number + 1}" for number in range(len(evidence.widths))]
    return ["product", "cosine", "words", "clause words", *fields, *encoders]


@lru_cache(maxsize=64)
def features_of(evidence: Evidence) -> Features:
    """Return the features of a set."""
    pool = int(np.isfinite(evidence.product).sum(axis=1).min())
    positions = np.argsort(-evidence.product, axis=1, kind="stable")[:, :pool]
    tables = [
        evidence.product,
        *(
            deviations(table)
            for table in (strengths(evidence), evidence.words.scores, evidence.words.clauses)
        ),
        *(
            deviations(words.scores)
            for label, words in evidence.field_words.items()
            if label.endswith(" alone")
        ),
        *(
            deviations(strengths(evidence, parts_of(evidence, (number,))))
            for number in range(len(evidence.widths))
        ),
    ]
    chosen = [np.take_along_axis(table, positions, axis=1) for table in tables]
    relevant = np.zeros(evidence.product.shape, dtype=np.bool_)
    places = {key: at for at, key in enumerate(evidence.tool_ids)}
    for query, gold in enumerate(evidence.gold):
        keys = frozenset[str]().union(*gold)
        relevant[query, [places[key] for key in keys if key in places]] = True
    targets = np.take_along_axis(relevant, positions, axis=1).astype(np.float64)
    found = targets.sum(axis=1)
    return Features(
        positions=positions,
        values=np.stack(chosen, axis=-1).astype(np.float64),
        targets=targets / np.maximum(found, 1)[:, None],
        weights=(found > 0) / max(int((found > 0).sum()), 1),
    )


def fit_linear(train: Sequence[Evidence], ridge: float) -> Coefficients:
    """Return the coefficient of each feature."""
    sets = [features_of(evidence) for evidence in train]
    count = sets[0].values.shape[-1]
    found = np.zeros(count)
    found[0] = _START
    for _ in range(_STEPS):
        slope, curve = ridge * found, ridge * np.eye(count)
        for each in sets:
            more_slope, more_curve = _derivatives(each, found)
            slope, curve = slope + more_slope / len(sets), curve + more_curve / len(sets)
        step = np.linalg.solve(curve, slope)
        found = found - step / max(1.0, float(np.abs(step).max()))
    return found


def _derivatives(
    features: Features, coefficients: Coefficients
) -> tuple[Coefficients, NDArray[np.float64]]:
    """Return the gradient and the second derivatives of the mean loss of a set."""
    scores = features.values @ coefficients
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    mean = np.einsum("qp,qpf->qf", shares, features.values)
    wanted = np.einsum("qp,qpf->qf", features.targets, features.values)
    weighted = features.values * (shares * features.weights[:, None])[..., None]
    squares = np.tensordot(weighted, features.values, axes=([0, 1], [0, 1]))
    curve = squares - (mean * features.weights[:, None]).T @ mean
    return features.weights @ (mean - wanted), curve


def linear(evidence: Evidence, coefficients: Coefficients) -> Matrix:
    """Score the pool of each query; what the product does not rank stays out."""
    features = features_of(evidence)
    scores = np.full_like(evidence.product, NOT_RANKED)
    found = (features.values @ coefficients).astype(np.float32)
    np.put_along_axis(scores, features.positions, found, axis=1)
    return scores


def linear_candidates(evidence: Evidence) -> Iterable[Candidate]:
    """Yield the model with each ridge; *evidence* names the features."""
    names = feature_names(evidence)
    for ridge in RIDGES:
        yield Candidate(
            name=f"linear ridge {ridge:g}",
            score=linear,
            fit=partial(fit_linear, ridge=ridge),
            describe=lambda found: {
                name: round(float(value / found[0]), 3)
                for name, value in zip(names, found, strict=True)
            },
        )
