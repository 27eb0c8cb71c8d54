"""Keyword scores on absolute scales, as registries count them. Pure.

* A word counts where it stands as a word; the middle of another word is not it.
* A word counts once a field, however often it stands there, and never by a near spelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask
from gateway.runtime.vectors import NDArray, Vector
from gateway.types import Entity
from graphs import Postings
from graphs.lexical.explain import Reading

PATH, NAME, DESCRIPTION, TAG, METADATA, TOOL = 5.0, 3.0, 2.0, 1.5, 1.0, 1.0
"""What a field adds to an entity's boost if any word of the query stands in it; `TOOL` for each
tool of a server that holds a word in its name or description."""
MAX_BOOST = PATH + NAME + DESCRIPTION + TAG + TOOL
"""The boost of an entity that holds words everywhere, and one matching tool: 12.5."""
MAX_BOOST_WITH_METADATA = MAX_BOOST + METADATA
EXACT, IN_NAME, IN_DESCRIPTION = 10.0, 5.0, 2.0
"""What one word earns: it is the name, or else stands in it; it stands in the description."""
_OWNERS = frozenset({"server", "virtual_server"})
_Met = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keywords:
    """What the words of one query earn, shape (n,) each; zeros without words."""

    boost: Vector
    """Weights of the fields that hold any of them, >= 0; see `MAX_BOOST`."""
    share: Vector
    """What they earn of all that so many words could, in [0, 1]."""
    full: float
    """The boost that counts as 1 where words rank alone: with metadata in the catalog one more."""


def read(index: Postings, reading: Reading, entities: Sequence[Entity], mask: Mask) -> Keywords:
    """Score the catalog by the words of one query.

    Args:
        index: The catalog's words, by the fields of `gateway.catalog.kinds`.
        reading: The query, resolved against *index*.
        entities: By position.
        mask: Who may be found; tools that may not be found speak for no server.
    """
    fields = {name: number for number, name in enumerate(index.fields)}
    size = len(entities)

    def held(bits: NDArray[np.uint64], *names: str) -> _Met:
        wanted = sum(1 << fields[name] for name in names if name in fields)
        return np.asarray(bits & np.uint64(wanted), dtype=np.bool_)

    any_word = np.zeros(size, dtype=np.uint64)
    earned = np.zeros(size)
    for word in reading.asked:
        if word.guessed:
            continue
        bits, exact = index.standing(word, "name")
        any_word |= bits
        in_name = np.where(exact, EXACT, IN_NAME * held(bits, "name", "title"))
        earned += in_name + IN_DESCRIPTION * held(bits, "description")
    boost = (
        PATH * held(any_word, "name", "server")
        + NAME * held(any_word, "name", "title")
        + DESCRIPTION * held(any_word, "description")
        + TAG * held(any_word, "hints")
        + METADATA * held(any_word, "metadata")
        + TOOL * _tools(held(any_word, "name", "description") & mask, entities)
    )
    told = fields.get("metadata")
    with_metadata = told is not None and bool(index.inverted.sums[1, told])
    return Keywords(
        boost=boost.astype(np.float32),
        share=(earned / ((EXACT + IN_DESCRIPTION) * max(len(reading.asked), 1))).astype(np.float32),
        full=MAX_BOOST_WITH_METADATA if with_metadata else MAX_BOOST,
    )


def _tools(met: _Met, entities: Sequence[Entity]) -> Vector:
    """Count, for each server, its tools that *met*; 0 for everybody else."""
    counts = np.zeros(len(entities), dtype=np.float32)
    found: dict[str, int] = {}
    for spot in np.flatnonzero(met).tolist():
        entity = entities[spot]
        if entity.kind == "tool":
            found[entity.server] = found.get(entity.server, 0) + 1
    if found:
        for spot, entity in enumerate(entities):
            if entity.kind in _OWNERS:
                counts[spot] = found.get(entity.server, 0)
    return counts
