"""A linear adapter of the vectors, fitted on queries and their relevant tools. Pure.

* A query and its tool differ in directions that say nothing of which tool it is: the adapter
  shrinks these. W = (S + ridge x mean eigenvalue x I)^(-1/2), where S is the covariance of the
  query's vector less the tool's over the training pairs.
* With a rank, only those directions stay in which the tools of the training sets differ most after
  that. Together this is linear discriminant analysis: Fisher (1936), Rao (1948).
* Each training set has the same weight. Adapted vectors have unit length.
* In blocks, the covariances between encoders count as 0. Beside, the adapted cosine, with that
  of the best clause, is added to the product's score and changes nothing else.
* Two simpler ones: the adapter of the searched catalog's own covariance, which is fitted on no
  query; and shares of the encoders, chosen from a grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.generalization.candidates import Candidate, best_choice, choose_left_out, plain
from benchmarks.generalization.evidence import Evidence
from benchmarks.generalization.scoring import Vectors, deviations, fused, strengths
from gateway.errors import ConfigError
from gateway.runtime.vectors import Matrix, unit_rows

Encoders = tuple[int, ...]
"""The numbers of the encoders whose parts of the vectors count, from 0."""
Covariance = NDArray[np.float64]
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
RANKS = (128, 256, 512)
"""Beside all directions."""
_FEW_RIDGES = (1.0, 3.0, 10.0)
"""The ridges that are tried in all other ways."""
_BESIDE = (0.25, 0.5, 1.0)
_CATALOG_RIDGES = (1.0, 3.0, 10.0, 30.0)
SHARES = tuple(
    (first, 1.0, third)
    for first, third in product((1.0, 0.25, 0.5, 2.0, 4.0), (1.0, 0.0, 0.5, 2.0, 4.0))
)
"""What the share of each encoder is multiplied by; the first choice is the product's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an adapter is fitted with."""

    encoders: Encoders
    ridge: float
    """In mean eigenvalues of the covariance."""
    rank: int = 0
    """How many directions stay; 0 for all."""
    blocks: bool = False
    """Whether each encoder is adapted by itself."""
    single: bool = False
    """Whether it is fitted on queries with one relevant tool alone: a request of several steps is
    far from each of its tools."""
    beside: float = 0.0
    """What the adapted strength adds to the product's score, in deviations; 0 puts the adapted
    vectors in the place of the product's."""

    @property
    def name(self) -> str:
        """A name in a report."""
        rank = f" rank {self.rank}" if self.rank else ""
        blocks = " in blocks" if self.blocks else ""
        single = " single" if self.single else ""
        beside = f" beside x {self.beside:g}" if self.beside else ""
        name = f"whitening {encoder_names(self.encoders)} ridge {self.ridge:g}"
        return f"{name}{rank}{blocks}{single}{beside}"


def encoder_names(encoders: Encoders) -> str:
    """Return the encoders by their numbers from 1, in the order of the vectors: ``1+3``."""
    return "+".join(str(number + 1) for number in encoders)


def parts(rows: Matrix, widths: Sequence[int], encoders: Encoders) -> Matrix:
    """Return the parts of *rows* that *encoders* made, as unit rows."""
    if len(encoders) == len(widths):
        return rows
    ends = np.cumsum(widths)
    chosen = [rows[:, ends[number] - widths[number] : ends[number]] for number in encoders]
    return unit_rows(np.concatenate(chosen, axis=1))


@lru_cache(maxsize=32)
def parts_of(evidence: Evidence, encoders: Encoders) -> Vectors:
    """Return the vectors of a set with the parts of *encoders* alone."""
    return Vectors(
        tools=parts(evidence.tools, evidence.widths, encoders),
        texts=parts(evidence.texts, evidence.widths, encoders),
        clauses=parts(evidence.clauses, evidence.widths, encoders),
    )


def pairs(evidence: Evidence, *, single: bool = False) -> tuple[list[int], list[int]]:
    """Return the row of a query's first form and the position of a relevant tool, pair by pair.

    Relevant tools that the catalog lacks are left out. With *single* so are queries with several
    groups of relevant tools.
    """
    positions = {key: at for at, key in enumerate(evidence.tool_ids)}
    first = np.searchsorted(evidence.text_queries, np.arange(len(evidence.gold))).tolist()
    found = [
        (row, positions[key])
        for row, gold in zip(first, evidence.gold, strict=True)
        if len(gold) == 1 or not single
        for key in sorted(frozenset[str]().union(*gold))
        if key in positions
    ]
    return [row for row, _ in found], [at for _, at in found]


@lru_cache(maxsize=64)
def _difference_covariance(
    evidence: Evidence, encoders: Encoders, *, single: bool
) -> Covariance | None:
    """Return the covariance of query less tool over a set's pairs; None without pairs."""
    vectors = parts_of(evidence, encoders)
    rows, positions = pairs(evidence, single=single)
    return _covariance(vectors.texts[rows] - vectors.tools[positions]) if rows else None


@lru_cache(maxsize=64)
def _tool_covariance(evidence: Evidence, encoders: Encoders) -> Covariance:
    return _covariance(parts_of(evidence, encoders).tools)


def _covariance(rows: Matrix) -> Covariance:
    centred = rows - rows.mean(axis=0)
    found: Covariance = (centred.T @ centred / max(len(rows), 1)).astype(np.float64)
    return found


@lru_cache(maxsize=256)
def _eigen(
    train: tuple[Evidence, ...], encoders: Encoders, *, blocks: bool, single: bool
) -> tuple[Covariance, Matrix]:
    """Return the eigenvalues of the mean covariance of the differences, and its directions.

    Raises:
        ConfigError: No training set has a pair.
    """
    every = (_difference_covariance(each, encoders, single=single) for each in train)
    found = [each for each in every if each is not None]
    if not found:
        raise ConfigError("no query of the training sets has a relevant tool to be fitted on")
    mean = np.mean(found, axis=0)
    if blocks:
        owners = np.repeat(encoders, [train[0].widths[number] for number in encoders])
        mean = np.where(owners[:, None] == owners, mean, 0.0)
    return _eigen_of(mean)


def _eigen_of(covariance: Covariance) -> tuple[Covariance, Matrix]:
    values, directions = np.linalg.eigh(covariance)
    return np.maximum(values, 0.0), directions.astype(np.float32)


@lru_cache(maxsize=32)
def _tool_directions(train: tuple[Evidence, ...], shape: Shape) -> Matrix:
    """Return the directions in which whitened tools differ, those of the largest first."""
    whitening = _whitening(train, shape)
    mean = np.mean([_tool_covariance(each, shape.encoders) for each in train], axis=0)
    return _eigen_of(whitening @ mean @ whitening)[1][:, ::-1]


def _whitening(train: tuple[Evidence, ...], shape: Shape) -> Matrix:
    found = _eigen(train, shape.encoders, blocks=shape.blocks, single=shape.single)
    return _power(*found, shape.ridge)


def _power(values: Covariance, directions: Matrix, ridge: float) -> Matrix:
    """Return (S + ridge x mean eigenvalue x I)^(-1/2) by the eigenvalues and directions of S."""
    scales = ((values + ridge * values.mean()) ** -0.5).astype(np.float32)
    found: Matrix = directions * scales @ directions.T
    return found


def fit_adapter(train: Sequence[Evidence], shape: Shape) -> Matrix:
    """Return the adapter, shape (d, r): a row of d numbers times it is the adapted row."""
    sets = tuple(train)
    adapter = _whitening(sets, shape)
    if shape.rank:
        directions = _tool_directions(sets, replace(shape, rank=0))
        adapter = adapter @ directions[:, : shape.rank]
    return adapter


def adapt(evidence: Evidence, encoders: Encoders, adapter: Matrix) -> Vectors:
    """Return the adapted vectors of a set."""
    vectors = parts_of(evidence, encoders)
    return Vectors(
        tools=unit_rows(vectors.tools @ adapter),
        texts=unit_rows(vectors.texts @ adapter),
        clauses=unit_rows(vectors.clauses @ adapter)
        if len(vectors.clauses)
        else np.zeros((0, adapter.shape[1]), dtype=np.float32),
    )


def adapted(shape: Shape, evidence: Evidence, adapter: Matrix) -> Matrix:
    """Score by the product's formula with adapted vectors, or with their strength beside."""
    vectors = adapt(evidence, shape.encoders, adapter)
    if not shape.beside:
        return fused(evidence, vectors=vectors)
    scores: Matrix = np.float32(shape.beside) * deviations(strengths(evidence, vectors))
    return scores + evidence.product


def vectors_beside(weight: float, evidence: Evidence, _: object = None) -> Matrix:
    """Add the product's own strength to its score: what an adapter beside must beat."""
    scores: Matrix = np.float32(weight) * deviations(strengths(evidence))
    return scores + evidence.product


def encoders_alone(encoders: Encoders, evidence: Evidence, _: object = None) -> Matrix:
    """Score by the product's formula with some encoders' parts of the vectors."""
    return fused(evidence, vectors=parts_of(evidence, encoders))


@lru_cache(maxsize=32)
def _catalog_eigen(evidence: Evidence) -> tuple[Covariance, Matrix]:
    return _eigen_of(_covariance(evidence.tools))


def catalog_adapted(ridge: float, evidence: Evidence, _: object = None) -> Matrix:
    """Score by the product's formula, adapted by the covariance of the catalog's own vectors."""
    encoders = tuple(range(len(evidence.widths)))
    adapter = _power(*_catalog_eigen(evidence), ridge)
    return fused(evidence, vectors=adapt(evidence, encoders, adapter))


def shared(evidence: Evidence, shares: tuple[float, ...]) -> Matrix:
    """Score by the product's formula with the part of each encoder times a number."""
    scales = np.repeat(np.sqrt(shares), evidence.widths).astype(np.float32)
    vectors = Vectors(
        tools=unit_rows(evidence.tools * scales),
        texts=unit_rows(evidence.texts * scales),
        clauses=unit_rows(evidence.clauses * scales) if len(evidence.clauses) else evidence.clauses,
    )
    return fused(evidence, vectors=vectors)


# -- candidates ------------------------------------------------------------------------------------


def adapter_candidates(widths: Sequence[int]) -> Iterable[Candidate]:
    """Yield shares, the catalog's own adapter, each set of encoders, and each adapter of these."""
    if len(widths) == len(SHARES[0]):
        yield Candidate(name="shares", score=shared, fit=best_choice(SHARES, shared))
    for weight in _BESIDE:
        yield Candidate(name=f"vectors beside x {weight:g}", score=partial(vectors_beside, weight))
    for ridge in _CATALOG_RIDGES:
        name = f"catalog whitening ridge {ridge:g}"
        yield Candidate(name=name, score=partial(catalog_adapted, ridge))
    for encoders in encoder_sets(len(widths)):
        if len(encoders) < len(widths):
            name = f"encoders {encoder_names(encoders)}"
            yield Candidate(name=name, score=partial(encoders_alone, encoders))
        yield from map(_adapter_candidate, _shapes(encoders, widths))
    yield choose_left_out("whitening chosen", _choices(widths))


def _adapter_candidate(shape: Shape) -> Candidate:
    return Candidate(
        name=shape.name,
        score=partial(adapted, shape),
        fit=partial(fit_adapter, shape=shape),
        describe=lambda adapter: {"directions": int(adapter.shape[1])},
    )


def _choices(widths: Sequence[int]) -> list[Candidate]:
    """Return the product's ranking and the adapters of which one is chosen."""
    encoders = tuple(range(len(widths)))
    shapes = [Shape(encoders=encoders, ridge=ridge, beside=0.5) for ridge in _FEW_RIDGES[1:]]
    return [Candidate(name="plain", score=plain), *map(_adapter_candidate, shapes)]


def _shapes(encoders: Encoders, widths: Sequence[int]) -> Iterable[Shape]:
    """Yield the adapters that are tried with *encoders*; those of all encoders have more forms."""
    size = sum(widths[number] for number in encoders)
    if len(encoders) < len(widths):
        yield from (Shape(encoders=encoders, ridge=ridge) for ridge in _FEW_RIDGES)
        yield from (Shape(encoders=encoders, ridge=ridge, beside=0.5) for ridge in _FEW_RIDGES)
        return
    yield from (Shape(encoders=encoders, ridge=ridge) for ridge in RIDGES)
    for ridge, rank in product(_FEW_RIDGES, RANKS):
        if rank < size:
            yield Shape(encoders=encoders, ridge=ridge, rank=rank)
    yield from (Shape(encoders=encoders, ridge=ridge, blocks=True) for ridge in RIDGES)
    for single, ridge, beside in product((False, True), _FEW_RIDGES, _BESIDE):
        yield Shape(encoders=encoders, ridge=ridge, beside=beside, single=single)
    yield from (Shape(encoders=encoders, ridge=ridge, single=True) for ridge in _FEW_RIDGES)


def encoder_sets(count: int) -> list[Encoders]:
    """Return all encoders, then each two, then each one; of one encoder that alone."""
    if count < 2:
        return [(0,)]
    every = tuple(range(count))
    two = [tuple(other for other in every if other != number) for number in reversed(every)]
    return list(dict.fromkeys([every, *two, *((number,) for number in every)]))
