"""What a label means: the host's names first, then the documents'.

Ambiguity is silence: a label that two documents share points to neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from graphs.document import Document
from graphs.text import fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Node ids by the names that a text may use for them."""

    exact: Mapping[str, str]
    """By the name as it is written; an ambiguous one gives an empty id."""
    folded: Mapping[str, str]
    """By the name without case, spaces, ``_`` and ``-``."""
    ids: frozenset[str] = field(default_factory=frozenset)
    """The nodes that the host itself names."""

    @classmethod
    def of(cls, documents: Sequence[Document], names: Mapping[str, str]) -> Names:
        """Gather the names of *documents*; the host's own *names* win."""
        host = cls(exact=names, folded=_folded(names.items()), ids=frozenset(names.values()))
        nodes = [(document, host.node(document)) for document in documents]
        said = [(name, node) for document, node in nodes for name in _names_of(document)]
        ids = {document.id: node for document, node in nodes}
        return cls(
            exact=_unique(said) | ids | {node: node for node in host.ids} | dict(names),
            folded=_folded(said) | dict(host.folded),
            ids=host.ids,
        )

    def node(self, document: Document) -> str:
        """Give the node that *document* speaks about."""
        if document.id in self.ids:
            return document.id
        stem = document.path.rpartition("/")[2].removesuffix(".md")
        found = (self.find(name) for name in (document.id, document.title, stem) if name)
        return next(filter(None, found), document.id)

    def find(self, label: str) -> str:
        """Give the node that *label* means; empty if there is none, or more than one."""
        return self.exact.get(label) or self.folded.get(_fold(label), "")


# Every build folds the same labels again; folding is a third of its time.
_fold = lru_cache(maxsize=1 << 17)(fold)


def _names_of(document: Document) -> Iterator[str]:
    yield from filter(None, (document.title, document.path, document.path.removesuffix(".md")))


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, node in pairs:
        if found.setdefault(name, node) != node:
            found[name] = ""
    return found


def _folded(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return _unique((_fold(name), node) for name, node in pairs)
