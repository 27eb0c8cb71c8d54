"""Saved snapshots, so that a start need not compile a large catalog again.

* A file is found by the fingerprint of all that its snapshot was made of: listings, hints, the
  host's documents, model, options and this code. Another fingerprint is another file.
* A file is an npz archive without pickle: arrays, and JSON as bytes. Nothing in it is ever run.
* A file that cannot be read is left aside, with a diagnostic; the snapshot is compiled anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, overload

import numpy as np

from gateway.index.eligibility import Eligibility
from gateway.index.snapshot import Snapshot, recurring
from gateway.index.tool_graph import ToolGraph
from gateway.index.vectors.exact import VectorIndex
from gateway.index.vectors.sketch import SignSketch
from gateway.options import IndexOptions
from gateway.runtime import VERSION
from gateway.runtime.atomic_file import write_atomically
from gateway.runtime.text import digest
from gateway.sources.listing_store import digest_of
from gateway.sources.registry import ListResult, Registration
from gateway.types import Code, Diagnostic, Entity, Hints, ToolDefinition
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex, new_network, tables_of
from graphs.lexical.bm25_index import BM25Index

_SUFFIX = ".index.npz"
_LASTING = frozenset({"name_qualified", "graph_document_invalid"})
"""Codes of what is wrong with a catalog at every build, whatever the state of its servers."""
_FAULTS = (
    OSError, EOFError, KeyError, TypeError, ValueError, IndexError, AttributeError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_TUPLES = frozenset({"aliases", "keywords", "categories", "tags", "examples"})
_FACT = attrgetter(*(each.name for each in fields(Fact)))
_HINTS = attrgetter(*(each.name for each in fields(Hints)))
_DEFINITION = attrgetter(*(each.name for each in fields(ToolDefinition) if each.name != "hints"))
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStore:
    """A folder of saved snapshots. May be used from any thread, and by several processes."""

    folder: Path
    options: IndexOptions

    def load(self, fingerprint: str) -> tuple[Snapshot | None, tuple[Diagnostic, ...]]:
        """Return the snapshot of *fingerprint*, None if there is none, and what is wrong with it.

        The snapshot has version 0 and no diagnostics but those of the catalog itself.
        """
        path = self._path(fingerprint)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return _decode(dict(archive.items()), fingerprint), ()
        except FileNotFoundError:
            return None, ()
        except _FAULTS as error:
            detail = f"saved index {path.name!r} is not as it was written: {error!r}"
            return None, (_note("store_rebuilt", detail),)

    def save(self, fingerprint: str, snapshot: Snapshot) -> tuple[Diagnostic, ...]:
        """Save *snapshot*, if it is large enough, and delete what was saved long ago.

        Returns:
            Why it was not saved; nothing if it was.
        """
        if len(snapshot.entities) < self.options.min_tools:
            return ()
        try:
            buffer = io.BytesIO()
            np.savez(buffer, allow_pickle=False, **_encode(snapshot, fingerprint))
            write_atomically(self._path(fingerprint), buffer.getvalue())
            saved = sorted(self.folder.glob(f"*{_SUFFIX}"), key=lambda path: -path.stat().st_mtime)
            for path in saved[self.options.kept :]:
                path.unlink(missing_ok=True)
        except (OSError, TypeError, ValueError) as error:
            return (_note("store_unavailable", f"the index was not saved: {error}"),)
        return ()

    def _path(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint}{_SUFFIX}"


def fingerprint_of(
    registrations: Mapping[str, Registration],
    listed: Mapping[str, ListResult],
    settings: Iterable[object],
) -> str:
    """Return the digest of all that a snapshot is made of.

    Args:
        registrations: The sources.
        listed: What each of them listed.
        settings: Whatever else it depends on, each with a `repr` that says all of it.
    """
    hashed = hashlib.blake2b(_code().encode(), digest_size=20)
    for server in sorted(listed):
        registration, listing = registrations[server], listed[server].listing
        itself = registration.itself
        parts = (
            (server, registration.source.trusted, registration.hints),
            itself and (_DEFINITION(itself), _HINTS(itself.hints)),
            (digest_of(listing) or repr(listing.definitions), listing.instructions),
            [_entity_to_json(entity) for entity in listing.entities],
        )
        hashed.update(repr(parts).encode("utf-8", "surrogatepass"))
    for setting in settings:
        hashed.update(repr(setting).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def fingerprint_of_files(path: Path) -> str:
    """Return the digest of a file, or of all files in a folder; empty if they cannot be read."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        return digest(repr([(str(file), file.read_bytes()) for file in files if file.is_file()]))
    except OSError:
        return ""


@cache
def _code() -> str:
    """Return what tells this code from any other: a snapshot of another is not trusted."""
    root = Path(__file__).parents[2]
    files = sorted(path for name in ("gateway", "graphs") for path in (root / name).rglob("*.py"))
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return repr((VERSION, sys.version, stats))


def _encode(snapshot: Snapshot, fingerprint: str) -> Arrays:
    arrays: Arrays = {"server_ids": snapshot.server_ids}
    traits = snapshot.eligibility.by_trait
    arrays["enabled"] = snapshot.eligibility.enabled
    arrays["traits"] = np.concatenate([np.zeros(0, np.intp), *traits.values()])
    if snapshot.vectors is not None and snapshot.mean_vector is not None:
        arrays["matrix"], arrays["mean_vector"] = snapshot.vectors.matrix, snapshot.mean_vector
    entities = [_to_bytes(_entity_to_json(entity)) for entity in snapshot.entities]
    arrays["entities"] = np.concatenate([np.zeros(0, np.uint8), *entities])
    arrays["entity_ends"] = np.cumsum([len(line) for line in entities], dtype=np.int64)
    metadata = {
        "fingerprint": fingerprint,
        "ids": list(snapshot.eligibility.by_id),
        "by_name": snapshot.by_name,
        "traits": [
            [name, sorted(value) if isinstance(value, frozenset) else value, len(positions)]
            for (name, value), positions in traits.items()
        ],
        "diagnostics": [
            [note.stage, note.code, note.detail]
            for note in snapshot.diagnostics
            if note.code in _LASTING
        ],
        "lexical": _put_index(snapshot.lexical, "lexical.", arrays),
        "sketch": _put_sketch(snapshot.vectors, arrays),
        "graph": None if snapshot.graph is None else _put_graph(snapshot.graph, arrays),
    }
    arrays["metadata"] = _to_bytes(metadata)
    return arrays


def _decode(arrays: Arrays, fingerprint: str) -> Snapshot:
    raw = json.loads(arrays["metadata"].tobytes())
    if raw["fingerprint"] != fingerprint:
        raise ValueError("it is the index of another catalog")
    traits: dict[tuple[str, Any], np.ndarray] = {}
    start = 0
    for name, value, count in raw["traits"]:
        key = frozenset(value) if isinstance(value, list) else value
        traits[name, key] = arrays["traits"][start : start + count]
        start += count
    by_id = {entity_id: position for position, entity_id in enumerate(raw["ids"])}
    sketch = raw["sketch"] and SignSketch(radius=raw["sketch"], **_under("sketch.", arrays))
    diagnostics = tuple(
        Diagnostic(stage=stage, code=code, detail=detail)
        for stage, code, detail in raw["diagnostics"]
    )
    return Snapshot(
        version=0,
        entities=_StoredEntities(arrays["entities"], arrays["entity_ends"]),
        by_name=raw["by_name"],
        eligibility=Eligibility(enabled=arrays["enabled"], by_trait=traits, by_id=by_id),
        lexical=_take_index(raw["lexical"], "lexical.", arrays),
        graph=None if raw["graph"] is None else _take_graph(raw["graph"], arrays),
        vectors=VectorIndex(matrix=arrays["matrix"], sketch=sketch) if "matrix" in arrays else None,
        mean_vector=arrays.get("mean_vector"),
        server_ids=arrays["server_ids"],
        diagnostics=diagnostics,
        recurring_diagnostics=recurring(diagnostics),
    )


def _put_sketch(vectors: VectorIndex | None, arrays: Arrays) -> float | None:
    if vectors is None or vectors.sketch is None:
        return None
    for name in ("mean", "directions", "codes"):
        arrays[f"sketch.{name}"] = getattr(vectors.sketch, name)
    return vectors.sketch.radius


def _put_index(index: BM25Index, prefix: str, arrays: Arrays) -> dict[str, object]:
    values = {each.name: getattr(index, each.name) for each in fields(index) if each.init}
    arrays |= {prefix + name: each for name, each in values.items() if isinstance(each, np.ndarray)}
    return {name: each for name, each in values.items() if not isinstance(each, np.ndarray)}


def _take_index(raw: dict[str, Any], prefix: str, arrays: Arrays) -> BM25Index:
    names = {name: tuple(raw[name]) for name in ("fields", "languages")}
    return BM25Index(**{**raw, **names, **_under(prefix, arrays)})


def _put_graph(graph: ToolGraph, arrays: Arrays) -> dict[str, object]:
    index = graph.index
    nodes = list(index.network)
    numbers = {node: number for number, node in enumerate(nodes)}
    predicates: dict[str, int] = {}
    attributes: dict[str, int] = {}
    edges = [
        (
            numbers[subject],
            numbers[target],
            predicates.setdefault(predicate, len(predicates)),
            attributes.setdefault(json.dumps(data), len(attributes)),
        )
        for subject, target, predicate, data in index.network.edges(keys=True, data=True)
    ]
    arrays["graph.edges"] = np.asarray(edges, dtype=np.int32).reshape(-1, 4)
    facts = [[_FACT(fact) for fact in source] for source in index.statements]
    packed = zlib.compress(json.dumps(facts).encode(), level=1)
    arrays["graph.facts"] = np.frombuffer(packed, dtype=np.uint8)
    return {
        "nodes": [[node, index.network.nodes[node]] for node in nodes],
        "predicates": list(predicates),
        "attributes": [json.loads(data) for data in attributes],
        "documents": index.documents,
        "groups": index.groups,
        "texts": _put_index(index.texts, "graph.texts.", arrays),
        "forbidden": sorted(index.forbidden),
        "entities": graph.nodes,
        "forbidden_steps": sorted(graph.forbidden),
    }


def _take_graph(raw: dict[str, Any], arrays: Arrays) -> ToolGraph:
    network = new_network()
    nodes, successors, predecessors = tables_of(network)
    names = [node for node, _ in raw["nodes"]]
    for node, data in raw["nodes"]:
        nodes[node], successors[node], predecessors[node] = data, {}, {}
    predicates, attributes = raw["predicates"], raw["attributes"]
    for start, end, predicate, data in arrays["graph.edges"].tolist():
        subject, target = names[start], names[end]
        keys = successors[subject].setdefault(target, {})
        keys[predicates[predicate]] = attributes[data]
        predecessors[target][subject] = keys
    index = GraphIndex(
        network=network,
        documents=raw["documents"],
        groups=raw["groups"],
        texts=_take_index(raw["texts"], "graph.texts.", arrays),
        statements=_StoredFacts(arrays["graph.facts"]),
        forbidden=frozenset((first, second, third) for first, second, third in raw["forbidden"]),
    )
    steps = frozenset((subject, target) for subject, target in raw["forbidden_steps"])
    return ToolGraph.of(index, raw["entities"], steps)


class _StoredFacts(Sequence[Sequence[Fact]]):
    """Facts by their source, parsed when they are first read: only an export reads them."""

    def __init__(self, packed: np.ndarray) -> None:
        self._packed = packed

    def _parsed(self) -> list[list[Fact]]:
        names = [each.name for each in fields(Fact)]
        raw = json.loads(zlib.decompress(self._packed.tobytes()))
        return [[Fact(**dict(zip(names, row, strict=True))) for row in source] for source in raw]

    def __len__(self) -> int:
        return len(self._parsed())

    def __getitem__(self, at: Any) -> Any:
        return self._parsed()[at]

    def __iter__(self) -> Iterator[Sequence[Fact]]:
        return iter(self._parsed())


class _StoredEntities(Sequence[Entity]):
    """Entities by position; each is parsed when it is first read: a search reads a few."""

    def __init__(self, lines: np.ndarray, ends: np.ndarray) -> None:
        self._lines = lines
        self._ends = ends
        self._parsed: dict[int, Entity] = {}

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> Entity: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Entity, ...]: ...
    def __getitem__(self, at: int | slice) -> Entity | tuple[Entity, ...]:
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(*at.indices(len(self)))))
        position = range(len(self))[at]
        entity = self._parsed.get(position)
        if entity is None:
            start = int(self._ends[position - 1]) if position else 0
            line = self._lines[start : int(self._ends[position])].tobytes()
            entity = self._parsed[position] = _entity_from_json(json.loads(line))
        return entity


def _entity_to_json(entity: Entity) -> dict[str, Any]:
    found = {each.name: getattr(entity, each.name) for each in fields(Entity)}
    tool, hints = entity.definition, entity.definition.hints
    found["scopes"] = sorted(entity.scopes)
    found["definition"] = {each.name: getattr(tool, each.name) for each in fields(ToolDefinition)}
    found["definition"]["hints"] = {each.name: getattr(hints, each.name) for each in fields(Hints)}
    found["definition"]["doubts"] = [(each.code, each.detail) for each in tool.doubts]
    return found


def _entity_from_json(raw: Any) -> Entity:
    definition, hints = raw["definition"], raw["definition"]["hints"]
    hints |= {name: tuple(hints[name]) for name in _TUPLES}
    definition["hints"] = Hints(**hints)
    definition["doubts"] = tuple(
        Diagnostic(stage="catalog", code=code, detail=text) for code, text in definition["doubts"]
    )
    raw |= {"definition": ToolDefinition(**definition), "scopes": frozenset(raw["scopes"])}
    return Entity(**raw)


def _to_bytes(value: object) -> np.ndarray:
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), dtype=np.uint8)


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }


def _note(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="store", code=code, detail=detail)
