"""Documents become facts; what did not change is not worked out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from graphs.facts.fact import Fact
from graphs.facts.provenance import (
    Change,
    Content,
    Kept,
    Provenance,
    Triple,
    Turned,
    key_of,
    lines,
    merged,
)
from graphs.markdown.document import Document

NO_NAMES: Mapping[str, str] = MappingProxyType({})


def extract_facts(
    documents: Iterable[Document],
    *,
    names: Mapping[str, str] = NO_NAMES,
    derived: Iterable[Fact] = (),
) -> tuple[Fact, ...]:
    """Turn *documents* into facts; see `Builder.facts`."""
    return Builder().facts(documents, names=names, derived=derived)


class Builder:
    """Documents -> facts, again and again. Not for two threads at once."""

    def __init__(self) -> None:
        self._provenance = Provenance()
        self._names: dict[str, str] = {}

    @property
    def read(self) -> int:
        """How many documents the last build worked out, the others being as they were."""
        return self._provenance.read

    @property
    def forbidden(self) -> frozenset[Triple]:
        """What the host forbids; see `Provenance.forbidden`."""
        return self._provenance.forbidden

    def snapshot(self) -> Callable[[], tuple[list[Kept], list[Fact]]]:
        """Hold on to what documents and rules say now.

        Returns:
            Gives it, in an order that does not tell how it came to be.
        """
        kept, derived = self._provenance.kept, self._provenance.derived

        def ordered() -> tuple[list[Kept], list[Fact]]:
            held = sorted(kept.items(), key=lambda pair: _order(pair[0][0]))
            return [each for _, each in held], sorted(derived, key=key_of)

        return ordered

    def facts(
        self,
        documents: Iterable[Document],
        *,
        names: Mapping[str, str] = NO_NAMES,
        derived: Iterable[Fact] = (),
    ) -> tuple[Fact, ...]:
        """Turn *documents* into facts.

        Args:
            documents: In any order; of equal facts the declared one stays, else the first by
                file and line.
            names: Node ids by the names a text may use for them. Compared exactly first, then
                without regard to case, spaces, ``_`` and ``-``. A document with such an id,
                title or file name speaks about that node.
            derived: What nobody wrote: facts of the host's own rules, with their ``origin``.

        Returns:
            Each fact once, in the order of the documents, then the derived ones; without those
            that a declared document forbids. Empty without documents.
        """
        given = dict.fromkeys(map(content, documents))
        rules = tuple(derived)
        self.replace(given, names, rules)
        return merged((self._provenance.kept[each] for each in given), rules)

    def replace(
        self, given: Iterable[Content], names: Mapping[str, str], derived: Iterable[Fact]
    ) -> Turned:
        """Take these documents, names and rules instead of those until now."""
        wanted = dict.fromkeys(given)
        known = self._provenance.kept.keys()
        gone = dict.fromkeys(self._names.keys() - names.keys(), "")
        new = {name: node for name, node in names.items() if self._names.get(name) != node}
        rules, held = list(dict.fromkeys(derived)), self._provenance.derived
        return self.change(
            Change(
                gone=[each for each in known if each not in wanted],
                new=[each for each in wanted if each not in known],
                names=gone | new,
                unsaid=held.keys() - set(rules),
                said=[each for each in rules if each not in held],
            )
        )

    def change(self, change: Change) -> Turned:
        """Make *change*; see `Provenance.change`."""
        for name, node in change.names.items():
            self._names.pop(name, None)
            if node:
                self._names[name] = node
        return self._provenance.change(change)


def content(document: Document) -> Content:
    """Give what the facts of *document* are kept by."""
    return document, lines(document)


def _order(document: Document) -> tuple[bool, str, str, str]:
    return not document.declared, document.path, document.id, document.title
