"""A snapshot <-> a pack: all that an answer is made of, unless it is faster made than read.

What comes back equals, to the last bit, what a fresh build would make. The words that queries are
looked up in are read as a whole; entities, and what the graph states, one by one when needed. What
an embedder says of itself is not saved: see `Keeper.find`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gateway.index import parts
from gateway.index.eligibility import Eligibility, Trait
from gateway.index.entities import Entities, written
from gateway.index.order import Places
from gateway.index.pack import Pack
from gateway.index.snapshot import Named, Snapshot, repeated
from gateway.search.index.toolgraph import ToolGraph, placed
from gateway.types import Diagnostic
from graphs.apart import index_of, taken_apart
from graphs.joined import kept, numbered
from graphs.stored import arrays_of, postings_of, words_of

_VALUES = ("vectors", "common", "server_ids")
_GRAPH = "graph."
_LEXICAL = "lexical."


def packed(snapshot: Snapshot, own: Sequence[Diagnostic]) -> Pack:
    """Take *snapshot* apart.

    Args:
        snapshot: Of any build.
        own: Those of its diagnostics that any later start would find again.

    Raises:
        TypeError: If a part of it is of a kind that nobody knows how to save.
        ValueError: If an entity cannot be written as JSON.
    """
    arrays: dict[str, np.ndarray] = {}
    values = {name: parts.taken(getattr(snapshot, name), name, arrays) for name in _VALUES}
    arrays["entities"], arrays["entities_at"] = written(snapshot.entities)
    arrays |= {_LEXICAL + name: array for name, array in arrays_of(snapshot.lexical).items()}
    words = {
        "values": values,
        "own": [[note.stage, note.code, note.detail] for note in own],
        "lexical": words_of(snapshot.lexical),
        "ids": [entity.id for entity in snapshot.entities],
        "names": _names(snapshot.by_name, arrays),
        "traits": _traits(snapshot.eligibility, arrays),
        "graph": None if snapshot.graph is None else _graph(snapshot.graph, arrays),
    }
    return Pack(words=words, arrays=arrays)


def unpacked(pack: Pack, *, version: int, diagnostics: Sequence[Diagnostic]) -> Snapshot:
    """Put a snapshot together.

    Args:
        pack: What `packed` made.
        version: The number of this build.
        diagnostics: What is known to be wrong today; those that were saved come after them.

    Raises:
        KeyError, TypeError, ValueError, IndexError: If *pack* was not made by this version.
    """
    words, arrays = pack.words, pack.arrays
    own = tuple(
        Diagnostic(stage=stage, code=code, detail=text) for stage, code, text in words["own"]
    )
    lexical = postings_of(words["lexical"], _under(_LEXICAL, arrays))
    ids: Sequence[str] = words["ids"]
    positions = np.arange(len(ids), dtype=np.intp)
    places = Places(positions=positions, numbers=numbered(ids))
    numbers = _Kept(words["names"], arrays["names_at"], arrays["names_of"])
    return Snapshot(
        version=version,
        entities=Entities(arrays["entities"], arrays["entities_at"]),
        by_name=Named(numbers, places),
        eligibility=Eligibility(
            size=len(ids),
            enabled=arrays["enabled"],
            by_trait=_by_trait(words["traits"], arrays),
            positions=positions,
        ),
        lexical=lexical,
        graph=None if words["graph"] is None else _tool_graph(words["graph"], arrays),
        diagnostics=(*diagnostics, *own),
        repeated=repeated((*diagnostics, *own)),
        **{name: parts.put(words["values"][name], arrays) for name in _VALUES},
    )


class _Kept(Mapping[str, tuple[int, ...]]):
    """The numbers of each name, ascending, in one array for all names."""

    def __init__(self, names: Sequence[str], offsets: np.ndarray, numbers: np.ndarray) -> None:
        self._names = names
        self._offsets = offsets
        self._numbers = numbers

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Give the numbers of *name*."""
        row = bisect_left(self._names, name)
        if row == len(self._names) or self._names[row] != name:
            raise KeyError(name)
        start, end = self._offsets[row : row + 2].tolist()
        return tuple(self._numbers[start:end].tolist())

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Count the names."""
        return len(self._names)


def _names(named: Named, arrays: dict[str, np.ndarray]) -> list[str]:
    names = sorted(named)
    arrays["names_at"], arrays["names_of"] = _rows([named[name] for name in names])
    return names


def _traits(eligibility: Eligibility, arrays: dict[str, np.ndarray]) -> list[object]:
    spots = [np.sort(eligibility.positions[held]) for held in eligibility.by_trait.values()]
    arrays["traits_at"], arrays["traits_of"] = _rows(spots)
    arrays["enabled"] = eligibility.enabled
    return [
        [name, sorted(value) if isinstance(value, frozenset) else value]
        for name, value in eligibility.by_trait
    ]


def _rows(spots: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.fromiter(map(len, spots), dtype=np.int64, count=len(spots))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    flat = np.concatenate([np.zeros(0, dtype=np.intp), *spots]).astype(np.intp)
    return offsets, flat


def _by_trait(raw: Any, arrays: Mapping[str, np.ndarray]) -> dict[Trait, np.ndarray]:
    offsets, spots = arrays["traits_at"].tolist(), arrays["traits_of"]
    return {
        (name, frozenset(value) if isinstance(value, list) else value): spots[start:end]
        for (name, value), start, end in zip(raw, offsets[:-1], offsets[1:], strict=True)
    }


def _graph(graph: ToolGraph, arrays: dict[str, np.ndarray]) -> Mapping[str, object]:
    names, parts_of = taken_apart(graph.index)
    arrays |= {_GRAPH + name: array for name, array in parts_of.items()}
    arrays["owners"] = graph.owners
    return {
        "names": names,
        "nodes": graph.nodes,
        "conditioned": sorted(graph.conditioned),
        "guessed": sorted(graph.guessed),
        "owned": graph.owned,
        "forbidden": sorted(graph.forbidden),
    }


def _tool_graph(raw: Any, arrays: Mapping[str, np.ndarray]) -> ToolGraph:
    nodes = kept(raw["nodes"])
    return ToolGraph(
        index=index_of(raw["names"], _under(_GRAPH, arrays)),
        nodes=nodes,
        positions=numbered(nodes),
        owners=arrays["owners"],
        places=placed(arrays["owners"], len(nodes)),
        conditioned=frozenset(raw["conditioned"]),
        guessed=frozenset(raw["guessed"]),
        owned=raw["owned"],
        forbidden=frozenset((subject, target) for subject, target in raw["forbidden"]),
    )


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
