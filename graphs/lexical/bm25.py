"""BM25F: what each word is worth in each document, in one vectorised pass.

After Robertson, Zaragoza and Taylor, *Simple BM25 extension to multiple weighted fields* (2004):
fields are summed before saturation, each with its own length normalisation.

A field's mean length is read in small steps: one document more seldom moves it, and as long as it
stays, no other document's words are worth anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

_STEPS = 32
"""Steps of a mean length from one power of two to the next: it is right to 1.1 %."""
_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How words are weighed."""

    fields: tuple[str, ...]
    """The names of the fields, in the order of their numbers."""
    weights: tuple[float, ...]
    """What a word counts in each field, > 0."""
    k1: float
    """How soon repetitions stop to count, >= 0."""
    b: float
    """How much a long field discounts its words, in [0, 1]."""

    @property
    def bits(self) -> int:
        """How many bits of a packed number each field has."""
        return _BITS // max(len(self.fields), 1)

    def pack(self, counts: np.ndarray, fields: np.ndarray) -> np.ndarray:
        """Write how often a word stands in a field as a number, uint64; those of fields add up."""
        most = np.minimum(counts, (1 << self.bits) - 1).astype(np.uint64)
        packed: np.ndarray = most << (fields * self.bits).astype(np.uint64)
        return packed

    def means(self, sums: np.ndarray) -> tuple[float, ...]:
        """Give the mean length of each field where it is filled, in steps; 1 where none is.

        Args:
            sums: What `summed` says of all documents.
        """
        pairs = zip(*sums.tolist(), strict=True)
        return tuple(_stepped(total / count) if count else 1.0 for total, count in pairs)

    def weigh(
        self, counts: np.ndarray, lengths: np.ndarray, means: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give the saturated weight (float32) and the chief field (uint8) of each posting.

        Args:
            counts: How often the word stands in each field of the document, packed.
            lengths: The lengths of its document, (postings, fields).
            means: What `means` says of all documents.
        """
        total = np.zeros(len(counts))
        best = np.zeros(len(counts))
        chief = np.zeros(len(counts), dtype=np.uint8)
        mask = np.uint64((1 << self.bits) - 1)
        for number, (weight, mean) in enumerate(zip(self.weights, means, strict=True)):
            held = (counts >> np.uint64(number * self.bits)) & mask
            norm = 1 - self.b + self.b * lengths[:, number] / mean
            share = held * weight / norm
            total += share
            chief[share > best] = number
            np.maximum(best, share, out=best)
        saturated = total * (self.k1 + 1) / (self.k1 + total)
        return saturated.astype(np.float32), chief


def summed(lengths: np.ndarray) -> np.ndarray:
    """Give how many words each field has, and how many documents fill it, int64, (2, fields).

    Args:
        lengths: How many words each document has in each field, (documents, fields).
    """
    return np.stack([lengths.sum(axis=0, dtype=np.int64), (lengths > 0).sum(axis=0)])


def _stepped(mean: float) -> float:
    return float(2 ** (round(log2(mean) * _STEPS) / _STEPS))
