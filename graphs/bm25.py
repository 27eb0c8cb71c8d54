"""BM25F: what each word is worth in each document, in one vectorised pass.

After Robertson, Zaragoza and Taylor, *Simple BM25 extension to multiple weighted fields* (2004):
fields are summed before saturation, each with its own length normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The words of all documents, field by field, before they are weighed."""

    rows: np.ndarray
    """The term of each word: document by document, field by field, int64."""
    lengths: np.ndarray
    """How many words each document has in each field, int64, (documents, fields)."""
    k1: float
    """How soon repetitions stop to count, >= 0."""
    b: float
    """How much a long field discounts its words, in [0, 1]."""

    def weigh(self, weights: np.ndarray) -> tuple[np.ndarray, ...]:
        """Give term, document, saturated weight and chief field of each posting."""
        size, fields = self.lengths.shape
        cells = np.repeat(np.arange(size * fields), self.lengths.ravel())
        keys, counts = np.unique(self.rows * (size * fields) + cells, return_counts=True)
        cell = keys % (size * fields) if keys.size else keys
        pair, field = keys // max(fields, 1), cell % max(fields, 1)
        share = counts * weights[field] / self._norms().ravel()[cell]
        order = np.lexsort((-share, pair))
        starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
        frequency = np.add.reduceat(share[order], starts) if keys.size else share
        chief = field[order][starts]
        term, document = np.divmod(pair[order][starts], max(size, 1))
        return term, document, frequency * (self.k1 + 1) / (self.k1 + frequency), chief

    def _norms(self) -> np.ndarray:
        filled = np.maximum((self.lengths > 0).sum(axis=0), 1)
        average = np.maximum(self.lengths.sum(axis=0) / filled, 1e-9)
        norms: np.ndarray = 1 - self.b + self.b * self.lengths / average
        return norms
