"""What a tool loses that wants to be found for everything, in deviations. Pure.

* It says so: its vector is near to that of a boast, in whatever language. Key words of many
  domains do not hide it.
* It speaks of what others do: its texts hold many rare words that stand in the names of other
  servers' tools, and in none of its own server's. One tool in ten does so by chance; a server that
  means it does so with most of its tools.
* The loss is bounded: what a request plainly means is still found, whoever boasts.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.mates import Mates
from gateway.search.dense.scan import VectorIndex
from gateway.search.dense.segments import Positions
from gateway.search.eligible import Mask
from gateway.vectors import Vector, best_cosine
from graphs.arrays import Moves
from graphs.postings import Postings

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
_SOME = 0.2
_MOST = 0.5
"""Where no larger share of a server's tools has more than that, it means nothing; from the second
share on it counts in full."""
_TABLE = 1 << 27
"""Numbers up to here are looked up, not searched for."""
Numbers = NDArray[np.int64]


class Words(Protocol):
    """The words of a catalog, and whose name holds which."""

    @property
    def index(self) -> Postings:
        """All words."""
        ...

    @property
    def offsets(self) -> Numbers:
        """Where the row of a term begins and ends in `holders`."""
        ...

    @property
    def holders(self) -> NDArray[np.int32]:
        """Whose name holds the term."""
        ...


class Boasts:
    """How near the rows of a catalog that changes are to a boast. Not for two builds at once."""

    def __init__(self) -> None:
        self._boast: Vector | None = None
        self._near: Vector | None = None

    def change(
        self,
        vectors: VectorIndex | None,
        moves: Moves,
        fresh: Positions | None,
        yardstick: Yardstick | None,
    ) -> Vector | None:
        """Measure the rows that are new.

        Args:
            vectors: The entities' rows.
            moves: Where those of the last time stand now.
            fresh: Whose rows are new; None if all are.
            yardstick: What the model's cosines mean, if known.

        Returns:
            On the model's scale, shape (n,); None if there is no row or nobody measured a boast.
        """
        boast = yardstick.boast if yardstick is not None else None
        before, known = self._boast, self._near
        self._boast, self._near = boast, None
        if vectors is None or yardstick is None or boast is None:
            return None
        same = before is not None and np.array_equal(boast, before)
        if known is None or fresh is None or not same:
            fresh = np.arange(vectors.size)
            known = np.zeros(0, dtype=np.float32)
            places = np.zeros(0, dtype=np.int64)
        else:
            places = moves.table()
        self._near = np.empty(vectors.size, dtype=np.float32)
        self._near[places[places >= 0]] = known[places >= 0]
        self._near[fresh] = best_cosine(vectors.rows(fresh), boast[None])
        return yardstick.nearness(self._near)


def doubts(
    words: Words, mates: Mates | None, boasts: Vector | None, listed: Mask | None = None
) -> Vector | None:
    """Weigh what each entity loses.

    Args:
        words: The words of the catalog.
        mates: The server of each entity; None if there are not two.
        boasts: How near each is to a boast; see `Boasts`.
        listed: Whom a server lists. An entry's name, as a server's own, is no other server's word;
            None if all are listed.

    Returns:
        Shape (n,), 0 to `MAX_DOUBT`; None if nobody loses anything.
    """
    size = words.index.size
    found = np.zeros(size) if mates is None else _lost(_foreign(words, mates, listed), mates)
    if boasts is not None:
        found += np.maximum(_BOAST_WEIGHT * (boasts - _BOASTING), 0.0)
    np.minimum(found, MAX_DOUBT, out=found)
    return found.astype(np.float32) if found.any() else None


def among(numbers: Numbers, chosen: Numbers, below: int) -> NDArray[np.bool_]:
    """Say of each of *numbers*, from 0 to *below* that, whether it is among the *chosen*."""
    if below > _TABLE:
        return np.isin(numbers, chosen)
    table = np.zeros(below, dtype=np.bool_)
    table[chosen] = True
    found: NDArray[np.bool_] = table.take(numbers)
    return found


def _foreign(words: Words, mates: Mates, listed: Mask | None) -> NDArray[np.float64]:
    """Weigh the words of each that name other servers' tools only, by rarity."""
    index, holders = words.index, words.holders
    owned = np.diff(words.offsets)
    if listed is not None:
        beside = ~listed[holders]
        terms = np.repeat(np.arange(len(owned)), owned)
        owned -= np.bincount(terms[beside], minlength=len(owned))
        holders = holders[~beside]
    # Most words stand in nobody's name: only the others are looked at, under numbers of their own.
    named = owned > 0
    counts = np.diff(index.offsets)
    positions = index.positions[np.repeat(named, counts)]
    pairs = int(np.count_nonzero(named)) * mates.servers
    # Short numbers, where they suffice, are read in half the time.
    kind = np.int32 if pairs <= np.iinfo(np.int32).max else np.int64
    starts: np.ndarray = np.arange(0, pairs, mates.servers, dtype=kind)
    servers: np.ndarray = mates.numbers.astype(kind)
    owners = np.repeat(starts, counts[named]) + servers.take(positions)
    own = among(owners, np.repeat(starts, owned[named]) + servers.take(holders), pairs)
    weights = np.repeat(index.rarity[named], counts[named]) * ~own
    said = np.bincount(positions, weights, minlength=index.size)
    return np.asarray(said, dtype=np.float64)


def _lost(said: NDArray[np.float64], mates: Mates) -> NDArray[np.float64]:
    """Weigh how far what is *said* of others is much, for a tool and for its server."""
    much = max(_FOREIGN * np.log1p(len(said)), _USUAL * float(np.median(said)))
    lost = np.zeros(len(said))
    over = np.flatnonzero(said > much)
    lost[over] = np.maximum(_FOREIGN_WEIGHT * np.log2(said[over] / much), 0.0)
    share = np.bincount(mates.numbers, lost > 0) / np.bincount(mates.numbers)
    meant = np.clip((share - _SOME) / (_MOST - _SOME), 0.0, 1.0)
    doubt: NDArray[np.float64] = lost * meant[mates.numbers]
    return doubt
