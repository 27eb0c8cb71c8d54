"""What each part of a catalog must know of the whole. Pure.

The parts, each in a process of its own, count what they hold. The sums go back to each of them:
compiled with these, a part scores its entities as one index of the whole catalog would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gateway.index.snapshot import Snapshot
from graphs.lexical.corpus import CorpusStatistics


@dataclass(frozen=True, kw_only=True)
class CatalogStatistics:
    """Counts of the words of a catalog, or of a part of it."""

    words: CorpusStatistics
    """Of the index of words."""
    graph_words: CorpusStatistics
    """Of the texts of the graph: the same, unless the host's documents add to them."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> CatalogStatistics:
        """Count what *snapshot* holds, which was compiled by itself."""
        words = snapshot.lexical.statistics
        texts = snapshot.graph.index.texts if snapshot.graph else snapshot.lexical
        same = texts is snapshot.lexical
        return cls(words=words, graph_words=words if same else texts.statistics)

    @classmethod
    def total(cls, parts: Sequence[CatalogStatistics]) -> CatalogStatistics:
        """Add up *parts*."""
        return cls(
            words=CorpusStatistics.total(part.words for part in parts),
            graph_words=CorpusStatistics.total(part.graph_words for part in parts),
        )

    @cached_property
    def key(self) -> str:
        """The name of these counts: equal ones have the same."""
        counts = [
            [each.documents, sorted(each.terms.items()), [sorted(n.items()) for n in each.lengths]]
            for each in (self.words, self.graph_words)
        ]
        return hashlib.sha256(json.dumps(counts).encode()).hexdigest()[:32]
