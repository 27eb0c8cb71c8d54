"""What a tool loses that wants to be found for everything, in deviations. Pure.

* It says so: its vector is near to that of a boast, in whatever language. Key words of many
  domains do not hide it.
* It speaks of what others do: its texts hold many rare words that stand in the names of other
  servers' tools, and in none of its own server's. Everybody does so by chance, the more the more
  names there are: what counts is how much more often than the tools of other servers. A server that
  means it does so with most of its tools, and then none of them is believed.
* The loss is bounded: what a request plainly means is still found, whoever boasts. Only where many
  tools of a server are doubted their words, and what they say for each other, count nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.mates import Mates
from gateway.search.dense.scan import VectorIndex
from gateway.search.dense.segments import Positions
from gateway.search.eligible import Mask
from gateway.vectors import NDArray, Vector, best_cosine
from graphs.arrays import Moves
from graphs.postings import Postings

_BOASTING = 1.3
_BOAST_WEIGHT = 9.0
"""A vector so near to a boast, on the model's scale, is one; what each step above that costs."""
_FOREIGN = 1.8
_FOREIGN_WEIGHT = 2.0
"""So many words of the rarest kind beyond what is usual are nothing; what each doubling of that
costs."""
_OWN = 0.6
"""What tools say of others by chance is at the least so much of what they say with the words of all
names, those of their own server's other tools too."""
_LONG_NAME = 6
"""A name of more words than this is a text: it says whose word nothing is."""
_SOME = 0.2
_MOST = 0.5
"""Where no larger share of a server's tools has more than that, it means nothing; from the second
share on it counts in full."""
_DOUBTED = 0.5
_FEW, _MANY = 3, 10
"""Who loses so much is doubted. Of a server with so many doubted tools each is heard as before;
with as many as the second number none."""
_NOTHING = 1e-6
"""A sum of rarities that is only what rounding left."""
_TABLE = 1 << 27
"""Numbers up to here are looked up, not searched for."""
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Words(Protocol):
    """The words of a catalog, and whose name holds which."""

    @property
    def index(self) -> Postings:
        """All words."""
        ...

    @property
    def offsets(self) -> Places:
        """Where the row of a term begins and ends in `holders`."""
        ...

    @property
    def holders(self) -> NDArray[np.int32]:
        """Whose name holds the term."""
        ...

    @property
    def weights(self) -> Vector:
        """The rarity of each name's words together."""
        ...


class _Said(NamedTuple):
    """What texts say with whose words, by rarity, shape (n,) each."""

    foreign: Numbers
    """With words of other servers' names that are in none of its own's."""
    beyond: Numbers
    """With all words that are in none of its own server's names."""
    named: Numbers
    """With words of any other tool's name."""
    all: Numbers
    """With all words but those of its own name."""


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
) -> Doubts | None:
    """Weigh what each entity loses.

    Args:
        words: The words of the catalog.
        mates: The server of each entity; None if there are not two.
        boasts: How near each is to a boast; see `Boasts`.
        listed: Whom a server lists. An entry's name, as a server's own, is no other server's word;
            None if all are listed.

    Returns:
        None if nobody loses anything.
    """
    size = words.index.size
    found = np.zeros(size) if mates is None else _lost(_said(words, mates, listed), mates, listed)
    if boasts is not None:
        found += np.maximum(_BOAST_WEIGHT * (boasts - _BOASTING), 0.0)
    if not found.any():
        return None
    np.minimum(found, MAX_DOUBT, out=found)
    unheard = np.zeros(size) if mates is None else _unheard(found, mates)
    return Doubts(lost=found.astype(np.float32), unheard=unheard.astype(np.float32))


def among(numbers: Places, chosen: Places, below: int) -> NDArray[np.bool_]:
    """Say of each of *numbers*, from 0 to *below* that, whether it is among the *chosen*."""
    if below > _TABLE:
        return np.isin(numbers, chosen)
    table = np.zeros(below, dtype=np.bool_)
    table[chosen] = True
    found: NDArray[np.bool_] = table.take(numbers)
    return found


def _said(words: Words, mates: Mates, listed: Mask | None) -> _Said:
    """Weigh the words of each by whose names they stand in."""
    index, holders, size = words.index, words.holders, words.index.size
    terms = np.repeat(np.arange(len(words.offsets) - 1), np.diff(words.offsets))
    naming = _lengths(index)[holders] <= _LONG_NAME
    if listed is not None:
        naming &= listed[holders]
    owned = np.bincount(terms[naming], minlength=len(words.offsets) - 1)
    # Most words stand in nobody's name: only the others are looked at, under numbers of their own.
    named = owned > 0
    counts = np.diff(index.offsets)
    positions = index.positions[np.repeat(named, counts)]
    weights = np.repeat(index.rarity[named], counts[named])
    pairs = int(np.count_nonzero(named)) * mates.servers
    # Short numbers, where they suffice, are read in half the time.
    kind = np.int32 if pairs <= np.iinfo(np.int32).max else np.int64
    starts: np.ndarray = np.arange(0, pairs, mates.servers, dtype=kind)
    servers: np.ndarray = mates.numbers.astype(kind)
    owners = np.repeat(starts, counts[named]) + servers.take(positions)
    names = np.repeat(starts, owned[named]) + servers.take(holders[naming])
    said = _summed(positions, weights, size)
    ours = _summed(positions, weights * among(owners, names, pairs), size)
    everything = _summed(index.positions, np.repeat(index.rarity, counts), size)
    inside = _summed(holders, index.rarity[terms] * named[terms], size)
    return _Said(said - ours, everything - ours, said - inside, everything - words.weights)


def _lengths(index: Postings) -> NDArray[np.int32]:
    """Count the words of each name."""
    if "name" not in index.fields:
        return np.zeros(index.size, dtype=np.int32)
    lengths: NDArray[np.int32] = index.inverted.lengths[:, index.fields.index("name")]
    return lengths


def _summed(positions: NDArray[np.int32], values: np.ndarray, size: int) -> Numbers:
    return np.asarray(np.bincount(positions, values, minlength=size), dtype=np.float64)


def _lost(said: _Said, mates: Mates, listed: Mask | None) -> Numbers:
    """Weigh how far each says more of others than is usual, for a tool and for its server."""
    numbers = mates.numbers
    tools = np.bincount(numbers)

    def share(part: Numbers, whole: Numbers) -> Numbers:
        sums = np.bincount(numbers, whole)
        found = np.zeros(len(sums))
        return np.divide(np.bincount(numbers, part), sums, out=found, where=sums > _NOTHING)

    foreign, named = share(said.foreign, said.beyond), share(said.named, said.all)
    # What an entry says of its server's tools or of an agent's skills is no measure for tools.
    servers = np.bincount(numbers, listed) > 0
    usual = np.maximum(_of_others(foreign, servers), _OWN * _of_others(named, servers))
    beyond = said.foreign - usual[numbers] * said.beyond
    much = _FOREIGN * np.log1p(len(numbers))
    lost = _FOREIGN_WEIGHT * np.log2(np.maximum(beyond / much, 1.0))
    meant = (np.bincount(numbers, lost > 0) / tools - _SOME) / (_MOST - _SOME)
    np.maximum(lost, _medians(lost, numbers, tools)[numbers], out=lost)
    lost *= np.clip(meant, 0.0, 1.0)[numbers]
    if listed is not None:
        lost[~listed] = 0.0
    return np.asarray(lost)


def _of_others(values: Numbers, counted: Mask) -> Numbers:
    """Give, for each of *values*, the median of the others that are *counted*; 0 without any."""
    ordered = np.sort(values[counted])
    ranks = np.searchsorted(ordered, values)
    others = len(ordered) - counted

    def at(place: NDArray[np.intp]) -> Numbers:
        # Whoever is counted is no other: whoever stands behind moves up.
        found: Numbers = ordered[place + (counted & (ranks <= place))]
        return found

    if not len(ordered) or not others.all():
        return np.zeros(len(values))
    return (at((others - 1) // 2) + at(others // 2)) / 2


def _medians(values: Numbers, numbers: Positions, counts: NDArray[np.intp]) -> Numbers:
    """Give the median of the *values* of each server."""
    ordered = values[np.lexsort((values, numbers))]
    starts = np.cumsum(counts) - counts
    middle: Numbers = (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
    return middle


def _unheard(lost: Numbers, mates: Mates) -> Numbers:
    """Say who is not heard: who is doubted with many of its server."""
    doubted = lost >= _DOUBTED
    many = np.bincount(mates.numbers, doubted)
    share = np.clip((many - _FEW) / (_MANY - _FEW), 0.0, 1.0)
    return np.asarray(share[mates.numbers] * doubted)
