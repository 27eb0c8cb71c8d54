"""What a label means: the host's names first, then the documents'.

Ambiguity is silence: a label that two documents share points to neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from graphs.lexical.analysis import fold
from graphs.markdown.document import Document

# Every build folds the same labels again; folding is a third of its time.
folded = lru_cache(maxsize=1 << 17)(fold)


class _Table:
    """Nodes by a name that some of them may share."""

    def __init__(self) -> None:
        self._nodes: dict[str, str | Counter[str]] = {}
        """The one holder, or how often each holds the name."""

    def add(self, name: str, node: str, count: int) -> None:
        held = self._nodes.get(name)
        if held is None:
            self._nodes[name] = node
        elif held == node and count < 0:
            del self._nodes[name]
        else:
            shared = Counter([held]) if isinstance(held, str) else held
            shared[node] += count
            if not shared[node]:
                del shared[node]
            if shared:
                self._nodes[name] = shared
            else:
                del self._nodes[name]

    def get(self, name: str) -> str | None:
        """Give the node of *name*; empty if there is more than one, None if there is none."""
        held = self._nodes.get(name)
        if held is None or isinstance(held, str):
            return held
        return next(iter(held)) if len(held) == 1 else ""


class Names:
    """Node ids by the names that a text may use for them. They come and go one by one."""

    def __init__(self) -> None:
        self._host: dict[str, str] = {}
        self._host_folded = _Table()
        self._host_nodes: Counter[str] = Counter()
        self._ids = _Table()
        self._said = _Table()
        self._said_folded = _Table()

    def rename(self, names: Mapping[str, str]) -> Iterator[str]:
        """Take *names* for the host's own instead of those until now, and give what changed."""
        for name in self._host.keys() - names.keys():
            yield from self.name(name, "")
        for name, node in names.items():
            if self._host.get(name) != node:
                yield from self.name(name, node)

    def name(self, name: str, node: str) -> Iterator[str]:
        """Let the host's *name* mean *node*, or nothing if that is empty; give what changed."""
        known = self._host.pop(name, "")
        for each, count in ((known, -1), (node, 1)):
            if each:
                self._host_folded.add(folded(name), each, count)
                self._host_nodes[each] += count
                yield from (name, each)
        if not self._host_nodes[known]:
            del self._host_nodes[known]
        if node:
            self._host[name] = node

    def add(self, document: Document, node: str, count: int = 1) -> Iterator[str]:
        """Let *document*, which speaks about *node*, say its names; -1 takes them back."""
        self._ids.add(document.id, node, count)
        yield document.id
        for name in _names_of(document):
            self._said.add(name, node, count)
            self._said_folded.add(folded(name), node, count)
            yield name

    def node(self, document: Document) -> str:
        """Give the node that *document* speaks about, as the host's names tell."""
        if document.id in self._host_nodes:
            return document.id
        found = (
            self._host.get(name) or self._host_folded.get(folded(name)) for name in own(document)
        )
        return next(filter(None, found), document.id)

    def subject(self, document: Document) -> str:
        """Give the node that the facts of *document* are about."""
        return self._exact(document.id) or document.id

    def find(self, label: str) -> str:
        """Give the node that *label* means; empty if there is none, or more than one."""
        found = self._exact(label)
        if not found:
            found = self._host_folded.get(folded(label))
        if found is None:
            found = self._said_folded.get(folded(label))
        return found or ""

    def _exact(self, label: str) -> str | None:
        known = self._host.get(label)
        if known is None and label in self._host_nodes:
            known = label
        if known is None:
            known = self._ids.get(label)
        return self._said.get(label) if known is None else known


def own(document: Document) -> Iterable[str]:
    """Give the names by which the host may mean *document*."""
    stem = document.path.rpartition("/")[2].removesuffix(".md")
    return filter(None, (document.id, document.title, stem))


def _names_of(document: Document) -> Iterable[str]:
    return filter(None, (document.title, document.path, document.path.removesuffix(".md")))
