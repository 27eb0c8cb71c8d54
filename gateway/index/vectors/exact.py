"""The vectors of a catalog, and the scan that finds the nearest of them. Pure.

* A small catalog is scored row by row, whole. A large one is looked at first: along its chief axes,
  or, if it is very long or its rows are short, by compact codes. Who looks near is then scored by
  the same arithmetic, so that every cosine that anybody sees is exact.
* Each row's cosine is computed by itself, in one thread: equal rows get equal scores to the last
  bit, wherever they stand and whoever else is looked at.
* Who may be found is a part of the scan: what the mask leaves out takes nobody's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gateway.index.eligibility import Mask, everybody
from gateway.index.vectors.codes import Coder, Codes, chosen
from gateway.index.vectors.scatter import Scatter
from gateway.index.vectors.segments import Mean, Positions, drawn, joined, lots, merged
from gateway.index.vectors.sketch import Sketched, worth
from gateway.runtime.vectors import Matrix, NDArray, Vector, best_cosine, moments, top

DENSE_NUMBERS = 2_500_000
"""A matrix of so many numbers is read whole sooner than it is looked at and rows are gathered."""
SAMPLE_LEAST = 128
_GATHERED = 128
"""Rows at a time where they are gathered and scored."""
_MOST_STORED = 1.5
"""So many rows are stored for each one that is there, tombstones among them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorQuery:
    """The vectors of one query."""

    texts: Matrix
    """The original query and its English form, unit rows, shape (t, d)."""
    clauses: Matrix
    """Parts of a long request, unit rows, shape (c, d); may be empty."""
    clause_weight: float = 0.0
    """How much the best clause adds to the whole request's cosine."""

    def score(self, rows: Matrix) -> tuple[Vector, Vector]:
        """Give the exact cosines and strengths of *rows*, shape (n,) each; see `ScanResult`."""
        cosines = best_cosine(rows, self.texts)
        if not len(self.clauses):
            return cosines, cosines
        return cosines, cosines + self.clause_weight * best_cosine(rows, self.clauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The eligible catalog as the query sees it."""

    mean: float
    spread: float
    """Mean and standard deviation of the strengths."""
    cosine_mean: float
    cosine_spread: float
    """The same of the cosines."""

    @classmethod
    def of(cls, cosines: Vector, strengths: Vector) -> Moments:
        """Measure *cosines* and *strengths*, which may be one and the same array."""
        cosine_mean, cosine_spread = moments(cosines)
        same = strengths is cosines
        mean, spread = (cosine_mean, cosine_spread) if same else moments(strengths)
        return cls(mean=mean, spread=spread, cosine_mean=cosine_mean, cosine_spread=cosine_spread)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanResult:
    """What a scan found."""

    pool: Positions
    """The best eligible positions by strength, best first, ties by position."""
    cosines: Vector
    """Exact best cosine over the texts, one for each of the pool, -1 to 1."""
    strengths: Vector
    """What ranks: the cosines, for a long request with its best clause's added."""
    moments: Moments
    eligible: int
    """How many positions the mask lets pass."""
    scored: int
    """How many rows were scored exactly."""
    dense: tuple[Vector, Vector] | None = None
    """Cosines and strengths by position, where all of them were computed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Large:
    """What a large catalog has besides its rows."""

    codes: Codes | Sketched
    """Tells who looks near."""
    lots: NDArray[np.uint64]
    """What each row draws by its numbers: who draws least stands for all, whenever it came."""
    slots: Positions
    """Where the rows of the sample stand."""
    sample: Matrix
    """Rows that stand for all, side by side in memory."""
    scatter: Scatter
    """What the sample tells of all, and their mean."""

    @classmethod
    def of(cls, rows: Matrix, mean: Mean) -> Large:
        """Look at *rows*, whose mean is given, and draw the sample."""
        tickets = lots(rows)
        slots = drawn(tickets, np.arange(len(rows), dtype=np.intp))
        sample = rows[slots]
        return cls(
            codes=_looks(rows),
            lots=tickets,
            slots=slots,
            sample=sample,
            scatter=Scatter.of(sample, mean.over(len(rows))),
        )

    def changed(self, added: Matrix, sizes: Sequence[int], index: VectorIndex) -> Large:
        """Give the same with *added* behind it.

        Args:
            added: The new rows.
            sizes: How many rows each segment has then.
            index: The rows as they are then.
        """
        tickets = np.concatenate([self.lots, lots(added)])
        slots = drawn(tickets, index.slots)
        sample, mean = index.stored(slots), index.mean.over(index.size)
        same = np.array_equal(sample, self.sample)
        return replace(
            self,
            codes=self.codes.joined(added, sizes),
            lots=tickets,
            slots=slots,
            sample=sample,
            scatter=replace(self.scatter, mean=mean) if same else Scatter.of(sample, mean),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where rows stand that were not all added at once."""

    slots: Positions
    """The row of each position."""
    positions: Positions
    """The position of each row; -1 for a tombstone."""

    def allowed(self, mask: Mask) -> Mask:
        """Turn a mask of positions into one of rows; no tombstone passes."""
        found = np.zeros(len(self.positions), dtype=np.bool_)
        found[self.slots] = mask
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorIndex:
    """One row a position. Immutable."""

    segments: tuple[Matrix, ...]
    """Unit rows, shape (m, d) each, that were added together; zeros for an entity without one."""
    mean: Mean
    """Of the rows that are no zeros."""
    layout: Layout | None = None
    """None if there is one segment, in the order of positions."""
    large: Large | None = None
    """None for a small catalog, which is scored whole."""
    dense_numbers: int = DENSE_NUMBERS
    """So many numbers are read whole sooner than codes are scanned and rows gathered."""

    @classmethod
    def of(cls, matrix: Matrix, *, dense_numbers: int = DENSE_NUMBERS) -> VectorIndex:
        """Index *matrix*.

        Args:
            matrix: Unit rows, shape (n, d); a row of zeros is an entity without a vector.
            dense_numbers: A matrix of more numbers than this gets codes.
        """
        mean = Mean.of(matrix)
        large = Large.of(matrix, mean) if matrix.size > dense_numbers else None
        return cls(segments=(matrix,), mean=mean, large=large, dense_numbers=dense_numbers)

    def changed(self, kept: Positions, added: Matrix, order: Positions) -> VectorIndex:
        """Give the index without some rows and with others, without touching those that stay.

        What is no longer there stays as a tombstone until the index is made anew; what is new is a
        segment of its own, coded as the others are.

        Args:
            kept: The positions that stay, ascending.
            added: The new rows, shape (m, d); may be empty.
            order: Which of the kept rows, then of the added ones, stands at each position.
        """
        gone = np.ones(self.size, dtype=np.bool_)
        gone[kept] = False
        mean = self.mean.changed(self.rows(np.flatnonzero(gone)), added)
        stored = sum(len(rows) for rows in self.segments)
        if stored + len(added) > _MOST_STORED * len(order):
            rows = np.concatenate([self.rows(kept), added])[order]
            return VectorIndex.of(rows, dense_numbers=self.dense_numbers)
        old = kept if self.layout is None else self.layout.slots[kept]
        slots = np.concatenate([old, np.arange(stored, stored + len(added))])[order]
        positions = np.full(stored + len(added), -1, dtype=np.intp)
        positions[slots] = np.arange(len(slots))
        sizes = merged([*map(len, self.segments), len(added)])
        found = replace(
            self,
            segments=joined((*self.segments, added), sizes, axis=0),
            mean=mean,
            layout=Layout(slots=slots, positions=positions),
        )
        if self.large is not None:
            return replace(found, large=self.large.changed(added, sizes, found))
        grown = len(order) * self.dimensions > self.dense_numbers
        return VectorIndex.of(found.rows(np.arange(len(order)))) if grown else found

    @property
    def size(self) -> int:
        """How many positions there are."""
        return len(self.segments[0]) if self.layout is None else len(self.layout.slots)

    @property
    def dimensions(self) -> int:
        """How long the rows are."""
        return int(self.segments[0].shape[1])

    @property
    def slots(self) -> Positions:
        """Where the row of each position is stored."""
        return np.arange(self.size) if self.layout is None else self.layout.slots

    def rows(self, spots: Positions) -> Matrix:
        """Give the rows at *spots*, shape (len(spots), d)."""
        return self.stored(spots if self.layout is None else self.layout.slots[spots])

    def score(self, question: VectorQuery) -> tuple[Vector, Vector]:
        """Give every position's exact cosine and strength, shape (n,) each."""
        scored = [question.score(rows) for rows in self.segments]
        if self.layout is None:
            return scored[0]
        cosines, strengths = (np.concatenate(part) for part in zip(*scored, strict=True))
        return cosines[self.layout.slots], strengths[self.layout.slots]

    def search(self, question: VectorQuery, *, mask: Mask, count: int) -> ScanResult:
        """Find the *count* best eligible positions.

        Args:
            question: At least one text.
            mask: Who may be found, shape (n,).
            count: How many at most. Of a large catalog, the last of them are as good as the codes;
                the first are who scoring every row would give.
        """
        if self.large is None:
            return self._whole(question, mask, count)
        eligible = int(np.count_nonzero(mask))
        wanted = self.large.codes.wide(count)
        if eligible * self.dimensions <= self.dense_numbers or eligible <= wanted:
            return self._of(question, np.flatnonzero(mask), count, eligible)
        allowed: Mask | None = None
        if self.layout is not None:
            allowed = self.layout.allowed(mask)
        elif eligible < len(mask):
            allowed = mask
        near = _nearest(self.large.codes, question, allowed, wanted)
        spots = near if self.layout is None else np.sort(self.layout.positions[near])
        about = self._moments(self.large, question, None if eligible == self.size else allowed)
        return self._of(question, spots, count, eligible, about)

    def _whole(self, question: VectorQuery, mask: Mask, count: int) -> ScanResult:
        cosines, strengths = self.score(question)
        seen, told, spots = cosines, strengths, None
        if not everybody(mask):
            spots = np.flatnonzero(mask)
            seen = cosines[spots]
            told = seen if strengths is cosines else strengths[spots]
        best = top(told, count)
        near = seen[best]
        return ScanResult(
            pool=best if spots is None else spots[best],
            cosines=near,
            strengths=near if told is seen else told[best],
            moments=Moments.of(seen, told),
            eligible=len(seen),
            scored=len(cosines),
            dense=(cosines, strengths),
        )

    def _of(
        self,
        question: VectorQuery,
        spots: Positions,
        count: int,
        eligible: int,
        about: Moments | None = None,
    ) -> ScanResult:
        """Score the rows at *spots*, ascending, and no others."""
        cosines, strengths = self._scored(question, spots)
        best = top(strengths, count)
        near = cosines[best]
        return ScanResult(
            pool=spots[best],
            cosines=near,
            strengths=near if strengths is cosines else strengths[best],
            moments=about or Moments.of(cosines, strengths),
            eligible=eligible,
            scored=len(spots),
        )

    def _scored(self, question: VectorQuery, spots: Positions) -> tuple[Vector, Vector]:
        """Score the rows at *spots*, so few at a time that copies stay in the processor's cache."""
        if len(spots) <= _GATHERED:
            return question.score(self.rows(spots))
        starts = range(0, len(spots), _GATHERED)
        parts = [question.score(self.rows(spots[start : start + _GATHERED])) for start in starts]
        cosines = np.concatenate([each for each, _ in parts])
        if not len(question.clauses):
            return cosines, cosines
        return cosines, np.concatenate([each for _, each in parts])

    def _moments(self, large: Large, question: VectorQuery, allowed: Mask | None) -> Moments:
        """Estimate the moments of the eligible rows, by how all scatter or from a few of them."""
        if allowed is None and len(question.texts) == 1 and not len(question.clauses):
            mean, spread = large.scatter.moments(question.texts[0])
            return Moments(mean=mean, spread=spread, cosine_mean=mean, cosine_spread=spread)
        rows = large.sample
        if allowed is not None:
            inside = allowed[large.slots]
            if not inside.all():
                rows = rows[inside]
            if len(rows) < SAMPLE_LEAST:
                rows = self.stored(drawn(large.lots, np.flatnonzero(allowed)))
        return Moments.of(*question.score(rows))

    def stored(self, slots: Positions) -> Matrix:
        """Give the rows that are stored in *slots*, shape (len(slots), d)."""
        if len(self.segments) == 1:
            return self.segments[0].take(slots, axis=0)
        found = np.empty((len(slots), self.dimensions), dtype=np.float32)
        start = 0
        for rows in self.segments:
            inside = (slots >= start) & (slots < start + len(rows))
            found[inside] = rows[slots[inside] - start]
            start += len(rows)
        return found


def _looks(rows: Matrix) -> Codes | Sketched:
    """Give what tells of *rows* who looks near."""
    if worth(rows):
        return Sketched.of(rows)
    coder = Coder.of(rows)
    return Codes(coder=coder, planes=(coder.encode(rows),))


def _nearest(
    codes: Codes | Sketched, question: VectorQuery, allowed: Mask | None, count: int
) -> Positions:
    """Choose *count* of those *allowed* that seem nearest, ascending; who ties comes along."""
    if isinstance(codes, Sketched):
        parts = question.clauses
        return codes.nearest(
            question.texts, allowed, count, clauses=parts, weight=question.clause_weight
        )
    if not len(question.clauses):
        return codes.nearest(question.texts, allowed, count)
    near = codes.likeness(question.texts) + question.clause_weight * codes.likeness(
        question.clauses
    )
    return chosen(near, allowed, count)
