"""Documents -> index, again and again: a changed document costs a changed document.

What does not depend on other documents is kept from build to build: the facts of each document
and the words of each text. What depends on all of them (rarity, lengths, places) is changed in
arrays, where every document costs some nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphs.facts.build import NO_NAMES, Builder, content
from graphs.facts.fact import Fact
from graphs.facts.provenance import Change, Triple, Turned, merged
from graphs.graph import WEIGHTS, GraphIndex, Stated
from graphs.growing import Growing
from graphs.markdown.document import Document


class Compiler:
    """Compiles a graph that changes. Not for two threads at once; its indexes are immutable."""

    def __init__(self, *, weights: Mapping[str, float] = WEIGHTS) -> None:
        self._builder = Builder()
        self._growing = Growing(weights)

    @property
    def changed(self) -> int:
        """How many documents the last build worked out, the others being as they were."""
        return self._builder.read

    @property
    def forbidden(self) -> frozenset[Triple]:
        """What the host forbids; see `graphs.facts.provenance.Provenance.forbidden`."""
        return self._builder.forbidden

    def compile(
        self,
        documents: Iterable[Document],
        *,
        names: Mapping[str, str] = NO_NAMES,
        derived: Iterable[Fact] = (),
    ) -> GraphIndex:
        """Compile *documents*; the arguments are those of `Builder.facts`.

        Every document is looked at, to see whether it changed; who knows that says it to `change`.
        """
        return self._index(self._builder.replace(map(content, documents), names, derived))

    def change(
        self,
        *,
        gone: Iterable[Document] = (),
        new: Iterable[Document] = (),
        names: Mapping[str, str] = NO_NAMES,
        unsaid: Iterable[Fact] = (),
        said: Iterable[Fact] = (),
    ) -> GraphIndex:
        """Compile what changed since the last build.

        Args:
            gone: Documents that were there and are not any more.
            new: Documents that were not there.
            names: The names of the host that mean something else now; nothing if that is empty.
            unsaid: Derived facts that are not true any more.
            said: Derived facts that were not true.
        """
        change = Change(
            gone=list(map(content, gone)),
            new=list(map(content, new)),
            names=names,
            unsaid=unsaid,
            said=said,
        )
        return self._index(self._builder.change(change))

    def _index(self, turned: Turned) -> GraphIndex:
        grown = self._growing.change(turned.gone, turned.new)
        kept = self._builder.snapshot()
        return GraphIndex.of(grown, Stated(lambda: merged(*kept())))
