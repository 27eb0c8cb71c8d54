"""Documents -> index, again and again: a changed document costs a changed document.

What does not depend on other documents is kept from build to build: the facts of each document
and the words of each text. What depends on all of them (rarity, lengths, adjacency) is computed
anew, in arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphs.build import NO_NAMES, Builder
from graphs.document import Document
from graphs.fact import Fact
from graphs.index import WEIGHTS, GraphIndex
from graphs.lexicon import Lexicon


class Compiler:
    """Compiles a graph that changes. Not for two threads at once; its indexes are immutable."""

    def __init__(self, *, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._builder = Builder()
        self._lexicon = Lexicon()
        self._weights = weights

    @property
    def changed(self) -> int:
        """How many documents the last `compile` worked out, the others being as they were."""
        return self._builder.read

    def compile(
        self,
        documents: Iterable[Document],
        *,
        names: Mapping[str, str] = NO_NAMES,
        derived: Iterable[Fact] = (),
    ) -> GraphIndex:
        """Compile *documents*; the arguments are those of `Builder.facts`."""
        stated = self._builder.facts(documents, names=names, derived=derived)
        return GraphIndex.compile(stated, weights=self._weights, lexicon=self._lexicon)
