"""What a label means: the host's names first, then the documents'.

Ambiguity resolves to nothing: a label that two documents share points to neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from graphs.lexical.analysis import fold
from graphs.markdown.document import Document

fold_label = lru_cache(maxsize=1 << 17)(fold)


class LabelResolver:
    """Node ids by the names that a text may use for them.

    Args:
        documents: All documents.
        names: Node ids by the host's own names for them.
    """

    def __init__(self, documents: Iterable[Document], names: Mapping[str, str]) -> None:
        self._documents = tuple(documents)
        self._names = names

    @cached_property
    def host_nodes(self) -> frozenset[str]:
        """The nodes that the host names."""
        return frozenset(self._names.values())

    def described_node(self, document: Document) -> str:
        """Return the node that *document* describes, by the host's names."""
        if document.id in self.host_nodes:
            return document.id
        stem = document.path.rpartition("/")[2].removesuffix(".md")
        labels = filter(None, (document.id, document.title, stem))
        named = (
            self._names.get(label) or self._folded_names.get(fold_label(label)) for label in labels
        )
        return next(filter(None, named), document.id)

    def subject(self, document: Document) -> str:
        """Return the node that the facts of *document* are about."""
        if document.id in self.host_nodes:
            return document.id
        return self._find_exactly(document.id) or document.id

    def find(self, label: str) -> str:
        """Return the node that *label* means; empty if there is none, or more than one."""
        found = self._find_exactly(label)
        if not found:
            found = self._folded_names.get(fold_label(label))
        if found is None:
            found = self._folded_titles.get(fold_label(label))
        return found or ""

    def _find_exactly(self, label: str) -> str | None:
        found = self._names.get(label)
        if found is None and label in self.host_nodes:
            found = label
        if found is None:
            found = self._ids.get(label)
        return self._titles.get(label) if found is None else found

    @cached_property
    def _folded_names(self) -> Mapping[str, str]:
        return _unique((fold_label(name), node) for name, node in self._names.items())

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        return _unique((document.id, self.described_node(document)) for document in self._documents)

    @cached_property
    def _titles(self) -> Mapping[str, str]:
        return _unique(self._titled())

    @cached_property
    def _folded_titles(self) -> Mapping[str, str]:
        return _unique((fold_label(title), node) for title, node in self._titled())

    def _titled(self) -> Iterator[tuple[str, str]]:
        for document in self._documents:
            node = self.described_node(document)
            path = document.path
            for title in filter(None, (document.title, path, path.removesuffix(".md"))):
                yield title, node


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the node of each name; empty where a name has several."""
    found: dict[str, str] = {}
    for name, node in pairs:
        if found.setdefault(name, node) != node:
            found[name] = ""
    return found
