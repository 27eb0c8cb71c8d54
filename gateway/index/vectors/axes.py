"""The axes along which a catalog spreads most: a few of them tell most of the order of its rows.

* Of two rows the one that looks nearer along them mostly is.
* They are found by subspace iteration from a fixed start over a sample.

After Halko, Martinsson and Tropp, *Finding structure with randomness* (2011).
"""

from __future__ import annotations

import numpy as np

from gateway.runtime.vectors import Matrix, Vector

SEED = 11
"""Of all that is drawn: each start draws the same."""
_SAMPLED = 2048
_TURNS = 3


def sampled(rows: Matrix) -> Matrix:
    """Give some of *rows*, evenly from first to last: enough of them to speak for all."""
    return rows[:: max(1, len(rows) // _SAMPLED)]


def chief_axes(rows: Matrix, count: int) -> tuple[Vector, Matrix]:
    """Give the mean of *rows* and the axes along which they spread most, as a sample tells them.

    Args:
        rows: Unit rows, shape (n, d), d >= *count*.
        count: How many axes.

    Returns:
        Shape (d,) and (count, d), the axes at right angles; the same at each start.
    """
    sample = sampled(rows)
    mean = np.asarray(sample.mean(axis=0), dtype=np.float32)
    centred = sample - mean
    rng = np.random.default_rng(SEED)
    axes = rng.standard_normal((rows.shape[1], count), dtype=np.float32)
    for _ in range(_TURNS):
        axes = np.linalg.qr(centred.T @ (centred @ axes))[0]
    return mean, np.ascontiguousarray(axes.T)
