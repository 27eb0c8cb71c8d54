"""What a tool loses that wants to be found for everything, in deviations. Pure.

* It says so: its vector is near to that of a boast, in whatever language. Key words of many
  domains do not hide it.
* It speaks of what others do: its texts hold many rare words that stand in the names of other
  servers' tools, and in none of its own server's.
* The loss is bounded: what a request plainly means is still found, whoever boasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gateway.embed.yardstick import Yardstick
from gateway.vectors import Matrix, Vector, best_cosine
from graphs import Postings

MAX_DOUBT = 3.0
"""The most that an entity loses: as much as a tool of the subject is ahead of a stranger."""
_BOASTING = 1.3
_BOAST_WEIGHT = 9.0
"""A vector so near to a boast, on the model's scale, is one; what each step above that costs."""
_FOREIGN = 3.3
_USUAL = 6.0
_FOREIGN_WEIGHT = 2.0
"""So many words of the rarest kind, or so many times what is usual here, are nothing; what each
doubling of that costs."""
_NAME = "name"


def doubts(
    index: Postings, servers: Sequence[str], rows: Matrix | None, yardstick: Yardstick | None
) -> Vector | None:
    """Weigh what each entity loses.

    Args:
        index: The words of the catalog.
        servers: The server of each entity.
        rows: The entities' unit vectors, zeros where there is none; None without any.
        yardstick: What the model's cosines mean, if known.

    Returns:
        Shape (n,), 0 to `MAX_DOUBT`; None if nobody loses anything.
    """
    found = _foreign(index, servers)
    if rows is not None and yardstick is not None and yardstick.boast is not None:
        near = yardstick.nearness(best_cosine(rows, yardstick.boast[None]))
        found += np.maximum(_BOAST_WEIGHT * (near - _BOASTING), 0.0)
    np.minimum(found, MAX_DOUBT, out=found)
    return found.astype(np.float32) if found.any() else None


def _foreign(index: Postings, servers: Sequence[str]) -> NDArray[np.float64]:
    """Weigh the words that name other servers' tools only, by rarity, and how far that is much."""
    _, numbers = np.unique(np.asarray(servers, dtype=np.str_), return_inverse=True)
    count = int(numbers.max(initial=0)) + 1
    if _NAME not in index.fields or count < 2:
        return np.zeros(index.size)
    terms = np.repeat(np.arange(len(index.names)), np.diff(index.offsets))
    names = index.sources == index.fields.index(_NAME)
    owners = terms * count + numbers[index.positions]
    # Which server has which word in a name, each pair once.
    named = np.unique(owners[names])
    spoken = np.isin(terms, named // count) & ~np.isin(owners, named)
    weights = index.rarity[terms[spoken]]
    said = np.bincount(index.positions[spoken], weights, minlength=index.size)
    much = max(_FOREIGN * np.log1p(index.size), _USUAL * float(np.median(said)))
    lost: NDArray[np.float64] = _FOREIGN_WEIGHT * np.log2(np.maximum(said, 1e-9) / much)
    return np.maximum(lost, 0.0)
