"""What each part of a catalog must know of the whole. Pure.

The parts, each in a process of its own, count what they hold. The sums go back to each of them:
compiled with these, a part scores its entities as one index of the whole catalog would.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gateway.catalog.identity import NameClaim
from gateway.index.snapshot import Snapshot
from graphs.lexical.corpus import CorpusStatistics


@dataclass(frozen=True, kw_only=True)
class CatalogStatistics:
    """Counts of the words of a catalog, or of a part of it."""

    words: CorpusStatistics
    """Of the index of words."""
    graph_words: CorpusStatistics | None
    """Of the texts of the graph; None if they are the same: the host's documents add nothing."""

    names: Mapping[str, NameClaim]
    """The best claim to each name of a tool, by the name without case; of several parts only the
    names that more than one of them wants."""

    @classmethod
    def of(cls, snapshot: Snapshot, names: Mapping[str, NameClaim]) -> CatalogStatistics:
        """Count what *snapshot* holds, which was compiled by itself.

        Args:
            snapshot: Of a whole catalog, or of a part.
            names: The claims of its tools.
        """
        words = snapshot.lexical.statistics
        texts = snapshot.graph.index.texts if snapshot.graph else snapshot.lexical
        same = texts is snapshot.lexical
        return cls(words=words, graph_words=None if same else texts.statistics, names=names)

    @classmethod
    def total(cls, parts: Sequence[CatalogStatistics]) -> CatalogStatistics:
        """Add up *parts*."""
        wanted = Counter(name for part in parts for name in part.names)
        contested = [name for name, count in wanted.items() if count > 1]
        return cls(
            names={
                name: min(part.names[name] for part in parts if name in part.names)
                for name in contested
            },
            words=CorpusStatistics.total(part.words for part in parts),
            graph_words=CorpusStatistics.total(part.graph_words or part.words for part in parts)
            if any(part.graph_words for part in parts)
            else None,
        )

    def names_of_others(self, own: Mapping[str, NameClaim]) -> frozenset[str]:
        """Return the names that tools of other parts have.

        Args:
            own: The claims of one part.
        """
        names = self.names.items()
        return frozenset(name for name, claim in names if own.get(name, claim) != claim)

    @cached_property
    def key(self) -> str:
        """The name of these counts: equal ones have the same."""
        counts = [
            [each.documents, sorted(each.terms.items()), [sorted(n.items()) for n in each.lengths]]
            for each in (self.words, self.graph_words or self.words)
        ]
        text = json.dumps([counts, sorted(self.names.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:32]
