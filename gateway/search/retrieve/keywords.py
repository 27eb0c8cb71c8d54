"""Keyword scores on absolute scales, as registries count them. Pure.

* A word counts where it stands as a word; the middle of another word is not it.
* A word counts once a field, however often it stands there, and never by a near spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask
from gateway.runtime.vectors import NDArray, Vector
from gateway.search.rank.parameters import (
    KEYWORD_DESCRIPTION,
    KEYWORD_METADATA,
    KEYWORD_NAME,
    KEYWORD_PATH,
    KEYWORD_TAG,
    KEYWORD_TOOL,
    WORD_IN_DESCRIPTION,
    WORD_IN_NAME,
    WORD_IS_NAME,
)
from gateway.types import Entity
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.explain import AnalyzedQuery

MAX_BOOST = KEYWORD_PATH + KEYWORD_NAME + KEYWORD_DESCRIPTION + KEYWORD_TAG + KEYWORD_TOOL
"""The boost of an entity that holds words everywhere, and one matching tool: 12.5."""
MAX_BOOST_WITH_METADATA = MAX_BOOST + KEYWORD_METADATA
_OWNERS = frozenset({"server", "virtual_server"})
_Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keywords:
    """The keyword scores of one query, shape (n,) each; zeros without words."""

    boost: Vector
    """Weights of the fields that hold any of its words, >= 0; see `MAX_BOOST`."""
    share: Vector
    """Points of its words, of all that so many words could earn, in [0, 1]."""
    maximum: float
    """The boost that counts as 1 where words rank alone: with metadata in the catalog one more."""


def count_keywords(
    index: BM25Index, reading: AnalyzedQuery, entities: Sequence[Entity], mask: Mask
) -> Keywords:
    """Score the catalog by the words of one query.

    Args:
        index: The catalog's words, by the fields of `gateway.catalog.kinds`.
        reading: The query, resolved against *index*.
        entities: By position.
        mask: Eligible entities; the other tools of a server do not count for it.
    """
    fields = {name: number for number, name in enumerate(index.fields)}
    size = len(entities)

    def holds(bits: NDArray[np.uint64], *names: str) -> _Flags:
        wanted = sum(1 << fields[name] for name in names if name in fields)
        return np.asarray(bits & np.uint64(wanted), dtype=np.bool_)

    any_word = np.zeros(size, dtype=np.uint64)
    points = np.zeros(size)
    for word in reading.terms:
        if word.is_spelling_correction:
            continue
        bits, exact = index.fields_containing(word, "name")
        any_word |= bits
        points += np.where(exact, WORD_IS_NAME, WORD_IN_NAME * holds(bits, "name", "title"))
        points += WORD_IN_DESCRIPTION * holds(bits, "description")
    boost = (
        KEYWORD_PATH * holds(any_word, "name", "server")
        + KEYWORD_NAME * holds(any_word, "name", "title")
        + KEYWORD_DESCRIPTION * holds(any_word, "description")
        + KEYWORD_TAG * holds(any_word, "hints")
        + KEYWORD_METADATA * holds(any_word, "metadata")
        + KEYWORD_TOOL * _count_tools(holds(any_word, "name", "description") & mask, entities)
    )
    most = (WORD_IS_NAME + WORD_IN_DESCRIPTION) * max(len(reading.terms), 1)
    has_metadata = index.has_texts("metadata")
    return Keywords(
        boost=boost.astype(np.float32),
        share=(points / most).astype(np.float32),
        maximum=MAX_BOOST_WITH_METADATA if has_metadata else MAX_BOOST,
    )


def _count_tools(matches: _Flags, entities: Sequence[Entity]) -> Vector:
    """Count, for each server, its tools among *matches*; 0 for all other entities."""
    tools = Counter(
        entities[position].server
        for position in np.flatnonzero(matches).tolist()
        if entities[position].kind == "tool"
    )
    counts = np.zeros(len(entities), dtype=np.float32)
    if tools:
        for position, entity in enumerate(entities):
            if entity.kind in _OWNERS:
                counts[position] = tools[entity.server]
    return counts
