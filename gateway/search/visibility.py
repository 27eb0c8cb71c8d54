"""What a result may say beside its entities: nothing that only hidden ones know. Pure.

How rare a word is may rest on all entities; which words there are, and which servers, may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.snapshot import Snapshot
from gateway.types import Diagnostic, Filters
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.explain import AnalyzedQuery, QueryTerm


def unmatched_terms(
    index: BM25Index, readings: Iterable[AnalyzedQuery], mask: Mask
) -> tuple[str, ...]:
    """Return the words of queries that no eligible entity holds, as they were written.

    Args:
        index: The catalog's words.
        readings: The queries, resolved against it.
        mask: Eligible entities.
    """
    terms = (word for reading in readings for word in reading.terms)
    return tuple(dict.fromkeys(word.word for word in terms if not _occurs(index, word, mask)))


def _occurs(index: BM25Index, terms: QueryTerm, mask: Mask) -> bool:
    return any(index.occurs_in(row, mask) for rows, _ in terms.expansions for row in rows)


def visible_build_notes(snapshot: Snapshot, filters: Filters, mask: Mask) -> list[Diagnostic]:
    """Return what a search repeats of the notes that the index build left.

    What a note of the catalog or of a graph document says in detail names servers: it is left out
    where one of them has no eligible entity of any kind, or is none of those that are
    asked for.
    """
    diagnostics = list(snapshot.recurring_diagnostics)
    if not diagnostics or mask.all():
        return diagnostics
    servers_of, traits = snapshot.eligibility.servers, snapshot.eligibility.by_trait
    kinds = frozenset(str(value) for trait, value in traits if trait == "kind")
    hidden = servers_of(np.ones_like(mask)) - servers_of(
        snapshot.mask(replace(filters, kinds=kinds))
    )
    return [
        replace(note, detail="") if _names(note, hidden, filters) else note for note in diagnostics
    ]


def _names(note: Diagnostic, hidden: Iterable[str], filters: Filters) -> bool:
    if note.stage not in {"catalog", "graph"}:
        return False
    if filters.servers and not any(map(note.detail.__contains__, filters.servers)):
        return True
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", note.detail) for name in hidden)
