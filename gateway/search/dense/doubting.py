"""What a tool loses, in deviations, if it wants to be found for every request. Pure.

Two signs tell such a tool:

* It says so. Its vector is near to that of a boast, in any language, and key words of many domains
  do not hide that. Honest siblings may vouch for it (`boasts`).
* It speaks of what others do. Its texts hold many rare words from the names of other servers'
  tools, which stand in no name of its own server's. Every tool does so by chance, the more the
  more names there are; what counts is how much more it does so than the tools of other servers. A
  server that does it on purpose does it in most of its tools, and then all of them lose.

The loss is bounded, so that what a request plainly means is still found. Where many tools of one
server are doubted, their words, and what they say for each other, no longer count either.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import NDArray, Vector
from gateway.search.dense.boasts import SUSPECT
from gateway.search.dense.doubts import MAX_DOUBT, Doubts
from gateway.search.dense.mates import Mates
from graphs.lexical.bm25_index import Postings

_BOAST_WEIGHT = 9.0
"""What each step above `SUSPECT` towards a boast costs, in deviations."""
_FOREIGN = 1.8
"""How many foreign words of the rarest kind, beyond the usual, cost nothing. Such a word weighs the
logarithm of the catalog's size."""
_FOREIGN_WEIGHT = 2.0
"""What each doubling of that costs, in deviations."""
_OWN = 0.6
"""The usual share of foreign words is at least this part of the usual share of words from any
other tool's name, of the own server's too."""
_LONG_NAME = 6
"""A name of more words than this is a text, and makes no word anybody's."""
_SOME, _MOST = 0.2, 0.5
"""Up to the first share of a server's tools, speaking of others counts as chance; from the second
on it counts in full."""
_DOUBTED = 0.5
"""Who loses at least so much is doubted."""
_FEW, _MANY = 3, 10
"""With up to the first number of doubted tools of a server each is heard in full; with the second
or more none is."""
_NOTHING = 1e-6
"""A sum of rarities below this is what rounding left."""
_TABLE = 1 << 27
"""Below this bound a set of numbers is a table with one flag for each; above it is searched."""
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


class Words(Protocol):
    """The words of a catalog, and whose name holds which."""

    @property
    def index(self) -> Postings:
        """All words of all texts."""
        ...

    @property
    def offsets(self) -> Places:
        """Where the row of each term begins in `holders`, and the last ends, shape (terms + 1,)."""
        ...

    @property
    def holders(self) -> NDArray[np.int32]:
        """The positions of the entities whose names hold a term, term by term."""
        ...

    @property
    def weights(self) -> Vector:
        """The rarity of all words of each name together, shape (n,)."""
        ...


class _Said(NamedTuple):
    """The words in each entity's texts by whose names they stand in.

    Each is a sum of rarities, one for each entity, shape (n,).
    """

    foreign: Numbers
    """Words of other servers' names that stand in no name of its own server's."""
    beyond: Numbers
    """All words that stand in no name of its own server's."""
    named: Numbers
    """Words of any other entity's name."""
    all: Numbers
    """All words but those of its own name."""


def doubts(
    words: Words, mates: Mates | None, boasts: Vector | None, listed: Mask | None = None
) -> Doubts | None:
    """Weigh what each entity loses.

    Args:
        words: The words of the catalog.
        mates: The server of each entity; None if there are not two servers.
        boasts: How near each is to a boast, as `Boasts` gives it; None if nobody knows.
        listed: Who is listed by a server, shape (n,); None if all are. The name of an entry, or of
            a server itself, makes no word another server's.

    Returns:
        None if nobody loses anything.
    """
    size = words.index.size
    found = np.zeros(size) if mates is None else _lost(_said(words, mates, listed), mates, listed)
    if boasts is not None:
        found += np.maximum(_BOAST_WEIGHT * (boasts - SUSPECT), 0.0)
    if not found.any():
        return None
    np.minimum(found, MAX_DOUBT, out=found)
    unheard = np.zeros(size) if mates is None else _unheard(found, mates)
    return Doubts(lost=found.astype(np.float32), unheard=unheard.astype(np.float32))


def among(numbers: Places, chosen: Places, below: int) -> NDArray[np.bool_]:
    """Say of each of *numbers*, all at least 0 and below *below*, whether *chosen* holds it."""
    if below > _TABLE:
        return np.isin(numbers, chosen)
    table = np.zeros(below, dtype=np.bool_)
    table[chosen] = True
    found: NDArray[np.bool_] = table.take(numbers)
    return found


def _said(words: Words, mates: Mates, listed: Mask | None) -> _Said:
    """Weigh each entity's words by whose names they stand in.

    A pair of a term and a server is one number here: the term's times the servers, plus the
    server's. `ours` are the words that stand in a name of the entity's own server.
    """
    index, holders, size = words.index, words.holders, words.index.size
    terms = np.repeat(np.arange(len(words.offsets) - 1), np.diff(words.offsets))
    naming = _lengths(index)[holders] <= _LONG_NAME
    if listed is not None:
        naming &= listed[holders]
    owned = np.bincount(terms[naming], minlength=len(words.offsets) - 1)
    # Most words stand in nobody's name: only the others are looked at, numbered anew from 0.
    named = owned > 0
    counts = np.diff(index.offsets)
    positions = index.positions[np.repeat(named, counts)]
    weights = np.repeat(index.rarity[named], counts[named])
    pairs = int(np.count_nonzero(named)) * mates.servers
    # Numbers of 32 bits, where they suffice, are read in half the time.
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
    """Count the words of each entity's name; 0 where names are no field of the index."""
    if "name" not in index.fields:
        return np.zeros(index.size, dtype=np.int32)
    lengths: NDArray[np.int32] = index.inverted.lengths[:, index.fields.index("name")]
    return lengths


def _summed(positions: NDArray[np.int32], values: np.ndarray, size: int) -> Numbers:
    """Add up *values* by position, shape (size,)."""
    return np.asarray(np.bincount(positions, values, minlength=size), dtype=np.float64)


def _lost(said: _Said, mates: Mates, listed: Mask | None) -> Numbers:
    """Weigh by how much each says more of others than is usual.

    Returns:
        In deviations, >= 0, shape (n,): for each at least the median of its server's tools, times
        how far so many of them cannot do it by chance. 0 for who is listed by no server.
    """
    numbers = mates.numbers
    tools = np.bincount(numbers)

    def share(part: Numbers, whole: Numbers) -> Numbers:
        sums = np.bincount(numbers, whole)
        found = np.zeros(len(sums))
        return np.divide(np.bincount(numbers, part), sums, out=found, where=sums > _NOTHING)

    foreign, named = share(said.foreign, said.beyond), share(said.named, said.all)
    # An entry speaks of its server's tools, or of an agent's skills: that is no measure for tools.
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
    """Give for each of *values* the median of the others that are *counted*.

    Returns:
        Shape as *values*; all 0 if one of them has no other.
    """
    ordered = np.sort(values[counted])
    ranks = np.searchsorted(ordered, values)
    others = len(ordered) - counted

    def at(place: NDArray[np.intp]) -> Numbers:
        # Who is counted itself is left out: those behind it move up by one.
        found: Numbers = ordered[place + (counted & (ranks <= place))]
        return found

    if not len(ordered) or not others.all():
        return np.zeros(len(values))
    return (at((others - 1) // 2) + at(others // 2)) / 2


def _medians(values: Numbers, numbers: Positions, counts: NDArray[np.intp]) -> Numbers:
    """Give the median of each server's *values*.

    Args:
        values: One for each entity.
        numbers: The server of each.
        counts: How many entities each server has, >= 1.
    """
    ordered = values[np.lexsort((values, numbers))]
    starts = np.cumsum(counts) - counts
    middle: Numbers = (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
    return middle


def _unheard(lost: Numbers, mates: Mates) -> Numbers:
    """Say how much each is not heard, 0 to 1: those who are doubted with many of their server."""
    doubted = lost >= _DOUBTED
    many = np.bincount(mates.numbers, doubted)
    share = np.clip((many - _FEW) / (_MANY - _FEW), 0.0, 1.0)
    return np.asarray(share[mates.numbers] * doubted)
