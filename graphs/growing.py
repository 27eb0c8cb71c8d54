"""A graph that changes: what an index is made of, and what the next change needs to know.

A change costs the facts that come and go, and passes of the memory over arrays. Whatever way a
graph came to be, its index is the same.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphs.adjacency import Adjacency
from graphs.arrays import Moves
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE
from graphs.grown import EDGE_PREDICATES, Grown
from graphs.lexical.bm25_index import Postings
from graphs.lexical.lexicon import Fields, Lexicon, Phrase
from graphs.standing import Standing

FIELDS: Mapping[str, str] = {
    "name": "name",
    "prefLabel": "name",
    "altLabel": "alias",
    "keywords": "keywords",
    "description": "description",
    "text": "text",
}
"""The field of each predicate whose text is searched."""
_K1 = 3.0
"""A name's word counts threefold at once: saturation has to begin later than in plain BM25."""
_SLACK = 1024
_FEW = 256
"""So many changes are made one by one sooner than everything is sorted again."""
_DOCUMENT, _GROUP, _OTHER = range(3)


@dataclass(slots=True, kw_only=True)
class _Touched:
    """What a change touches: nodes, with what they were before."""

    nodes: dict[str, None] = field(default_factory=dict)
    texts: dict[str, Fields] = field(default_factory=dict)
    gone_rows: list[int] = field(default_factory=list)
    edges: list[tuple[int, Fact]] = field(default_factory=list)


class Growing:
    """The graph of some facts. Not for two threads at once; what it gives never changes."""

    def __init__(self, weights: Mapping[str, float], *, lexicon: Lexicon | None = None) -> None:
        self._weights = weights
        self._lexicon = lexicon
        self._mentions: Counter[str] = Counter()
        """How many facts are about a node, or lead to it."""
        self._documents: set[str] = set()
        self._grouped: Counter[str] = Counter()
        """How many facts that the host stands for make somebody a member of a group."""
        self._texts: defaultdict[str, list[Fact]] = defaultdict(list)
        self._rows: dict[tuple[str, str, str], int] = {}
        self._evidence: list[Fact] = []
        self._parts: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._named: list[tuple[str, str]] = []
        self._made = Grown(
            nodes=(),
            positions=Standing.of(()),
            labels=(),
            ranks=np.zeros(0, dtype=np.int32),
            document_count=0,
            postings=self._postings([]),
            adjacency=Adjacency.empty(),
            evidence=(),
            edge_count=0,
            moves=Moves(size=0, gone=(), new=()),
        )

    def change(self, gone: Iterable[Fact], new: Iterable[Fact]) -> Grown:
        """Take facts out, put others in, and give the parts of the index."""
        touched = _Touched()
        for facts, count in ((gone, -1), (new, 1)):
            for fact in facts:
                self._count(fact, count, touched)
        before = self._made
        left, came = self._sorted_in(touched)
        nodes = (*self._parts[_DOCUMENT], *self._parts[_GROUP], *self._parts[_OTHER])
        moves = Moves(
            size=len(before.nodes),
            gone=sorted(before.positions[node] for node in left),
            new=sorted(map(self._place, came)),
        )
        positions = before.positions.moved(nodes, left, moves)
        adjacency = self._adjacency(moves, nodes, positions, touched)
        labels, ranks = self._called(moves, nodes, positions, touched)
        dirty = dict(touched.texts)
        for node in (*left, *came):
            dirty.setdefault(node, self._fields(node))
        self._made = Grown(
            nodes=nodes,
            positions=positions,
            labels=labels,
            ranks=ranks,
            document_count=len(self._parts[_DOCUMENT]),
            postings=self._spoken(nodes, positions, dirty),
            adjacency=adjacency,
            evidence=self._evidence,
            edge_count=len(adjacency.keys) // 2,
            moves=moves,
        )
        return self._made

    def _count(self, fact: Fact, count: int, touched: _Touched) -> None:
        self._mention(fact.subject, count, touched)
        kind = EDGE_PREDICATES.get(fact.predicate)
        if fact.predicate == "type" and fact.object == DOCUMENT_TYPE:
            (self._documents.add if count > 0 else self._documents.discard)(fact.subject)
        elif fact.literal and fact.predicate in FIELDS:
            self._text(fact, count, touched)
        elif kind and not fact.literal:
            self._mention(fact.object, count, touched)
            if kind == "member" and fact.declared:
                self._grouped[fact.object] += count
            self._edge(fact, count, touched)

    def _mention(self, node: str, count: int, touched: _Touched) -> None:
        touched.nodes[node] = None
        self._mentions[node] += count

    def _text(self, fact: Fact, count: int, touched: _Touched) -> None:
        node = fact.subject
        if node not in touched.texts:
            touched.texts[node] = self._fields(node)
        (self._texts[node].append if count > 0 else self._texts[node].remove)(fact)
        if not self._texts[node]:
            del self._texts[node]

    def _edge(self, fact: Fact, count: int, touched: _Touched) -> None:
        key = fact.subject, fact.predicate, fact.object
        if count < 0:
            touched.gone_rows.append(self._rows.pop(key))
            return
        row = self._rows[key] = len(self._evidence)
        # Only what is behind the end of a list changes: whoever reads an older index never sees it.
        self._evidence.append(fact)
        touched.edges.append((row, fact))

    def _part(self, node: str) -> int | None:
        if not self._mentions[node]:
            return None
        if node in self._documents:
            return _DOCUMENT
        return _GROUP if self._grouped[node] > 0 else _OTHER

    def _part_before(self, node: str) -> int | None:
        at = self._made.positions.get(node)
        if at is None:
            return None
        if at < self._made.document_count:
            return _DOCUMENT
        return _GROUP if at < self._made.postings.size else _OTHER

    def _sorted_in(self, touched: _Touched) -> tuple[list[str], list[str]]:
        """Put the touched nodes into their parts, and say who left a place and who took one."""
        turned = [(node, self._part_before(node), self._part(node)) for node in touched.nodes]
        left = [(node, before) for node, before, now in turned if before not in (None, now)]
        came = [(node, now) for node, before, now in turned if now not in (None, before)]
        for node, before in left:
            part = self._parts[before or 0]
            del part[bisect_left(part, node)]
        for node, now in came:
            (list.append if len(came) > _FEW else insort)(self._parts[now or 0], node)
        if len(came) > _FEW:
            for part in self._parts:
                part.sort()
        for counts in (self._mentions, self._grouped):
            for node in touched.nodes:
                if not counts[node]:
                    del counts[node]
        return [node for node, _ in left], [node for node, _ in came]

    def _place(self, node: str) -> int:
        part = self._part(node) or 0
        return sum(map(len, self._parts[:part])) + bisect_left(self._parts[part], node)

    def _fields(self, node: str) -> Fields:
        found: defaultdict[str, list[Phrase]] = defaultdict(list)
        for fact in self._texts.get(node, ()):
            found[FIELDS[fact.predicate]].append((fact.object, fact.language))
        return found

    def _label(self, node: str) -> str:
        names = [fact for fact in self._texts.get(node, ()) if FIELDS[fact.predicate] == "name"]
        return min(names, key=_first).object if names else node

    def _called(
        self,
        moves: Moves,
        nodes: Sequence[str],
        positions: Mapping[str, int],
        touched: _Touched,
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Give the label of each node, and its rank."""
        before = self._made
        if len(touched.nodes) > _FEW:
            labels = list(map(self._label, nodes))
            order = sorted(range(len(nodes)), key=lambda at: (labels[at], nodes[at]))
            self._named = [(labels[at], nodes[at]) for at in order]
            ranks = np.empty(len(nodes), dtype=np.int32)
            ranks[order] = np.arange(len(nodes), dtype=np.int32)
            return tuple(labels), ranks
        new = dict.fromkeys(moves.new)
        gone = dict.fromkeys(moves.gone)
        for node in touched.texts:
            at, known = positions.get(node), before.positions.get(node)
            if at is not None and known is not None and before.labels[known] != self._label(node):
                new[at] = gone[known] = None
        labels = list(before.labels)
        for at in reversed(moves.gone):
            del labels[at]
        for at in moves.new:
            labels.insert(at, "")
        for at in new:
            labels[at] = self._label(nodes[at])
        ranks = self._ranks(moves, list(gone), [(labels[at], nodes[at], at) for at in sorted(new)])
        return tuple(labels), ranks

    def _ranks(
        self, moves: Moves, gone: Sequence[int], new: Sequence[tuple[str, str, int]]
    ) -> np.ndarray:
        """Say where each node stands if all are sorted by label and id.

        Args:
            moves: Of the nodes.
            gone: Whose place in that order is given up, by position until now.
            new: Label, id and position of those that take a place.
        """
        before = self._made
        ranks = before.ranks.copy()
        for at in gone:
            rank = bisect_left(self._named, (before.labels[at], before.nodes[at]))
            del self._named[rank]
            ranks -= ranks > rank
        ranks = moves.rows(ranks)
        taken: dict[int, int] = {}
        for label, node, at in sorted(new):
            rank = bisect_left(self._named, (label, node))
            self._named.insert(rank, (label, node))
            ranks += ranks >= rank
            taken[at] = rank
        ranks[list(taken)] = list(taken.values())
        return ranks

    def _spoken(
        self, nodes: Sequence[str], positions: Mapping[str, int], dirty: Mapping[str, Fields]
    ) -> Postings:
        """Index the words of documents and groups; *dirty* are nodes with the texts they had."""
        before = self._made
        size = len(self._parts[_DOCUMENT]) + len(self._parts[_GROUP])
        new = {at: self._fields(node) for node in dirty if (at := positions.get(node, size)) < size}
        if len(new) > before.postings.size / 2:
            return self._postings([self._fields(node) for node in nodes[:size]])
        known = before.positions
        limit = before.postings.size
        gone = {at: dirty[node] for node in dirty if (at := known.get(node, limit)) < limit}
        return before.postings.changed(gone, new)

    def _adjacency(
        self, moves: Moves, nodes: Sequence[str], positions: Mapping[str, int], touched: _Touched
    ) -> Adjacency:
        before = self._made
        places = moves.table()
        for at in moves.gone:
            places[at] = positions.get(before.nodes[at], -1)
        concepts = moves.rows(before.adjacency.concepts)
        documents = len(self._parts[_DOCUMENT])
        for at in moves.new:
            concepts[at] = at >= documents and nodes[at].startswith(CONCEPT_BASE)
        found = before.adjacency.changed(
            places=places,
            concepts=concepts,
            gone=touched.gone_rows,
            new=touched.edges,
            positions=positions,
        )
        if len(self._evidence) > 2 * len(self._rows) + _SLACK:
            return self._packed(found)
        return found

    def _packed(self, adjacency: Adjacency) -> Adjacency:
        """Forget the facts that no edge is made of any more."""
        kept = np.unique(adjacency.edges["row"])
        rows = np.zeros(len(self._evidence), dtype=np.int32)
        rows[kept] = np.arange(len(kept), dtype=np.int32)
        self._evidence = [self._evidence[row] for row in kept.tolist()]
        self._rows = {key: int(rows[row]) for key, row in self._rows.items()}
        return adjacency.renumbered(rows)

    def _postings(self, documents: Sequence[Fields]) -> Postings:
        return Postings.build(documents, weights=self._weights, k1=_K1, lexicon=self._lexicon)


def _first(fact: Fact) -> tuple[bool, bool, str, int, str, str]:
    """Say which of several names is the label."""
    other = fact.predicate != "name"
    return not fact.declared, other, fact.path, fact.line, fact.object, fact.language
