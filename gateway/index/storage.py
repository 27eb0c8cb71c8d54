"""Saved snapshots, so that a large catalog is not compiled again at each start.

* The file name is a fingerprint of all inputs: listings, hints, documents, model, options and code.
* A file contains a checksum and plain arrays in the format safetensors. Loading never runs code.
* An unreadable file is ignored with a diagnostic, and the snapshot is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, overload

import numpy as np
from msgspec import convert, to_builtins
from safetensors.numpy import save

from gateway.index.eligibility import Eligibility
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolGraph
from gateway.index.vectors import SignSketch, VectorIndex
from gateway.options import IndexOptions
from gateway.runtime import VERSION
from gateway.runtime.atomic_file import write_atomically
from gateway.runtime.garbage import collection_paused
from gateway.sources.listing_store import digest_of
from gateway.sources.registry import ListResult
from gateway.types import Code, Diagnostic, Entity
from gateway.types.access import access_key
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex, network_of
from graphs.lexical.bm25_index import BM25Index

_SUFFIX = ".index"
_SUM = struct.Struct("<Q")
_START = struct.Struct("<QQ")
"""Start of a file: the checksum, and the length of the JSON header of safetensors."""
_DTYPES = {"BOOL": "?", "U8": "u1", "I32": "<i4", "I64": "<i8", "U64": "<u8", "F32": "<f4"}
"""Type names of numpy, keyed by type names of safetensors."""
_HEADER = "header"
"""Name of the array that contains the snapshot's metadata as JSON."""
_CATALOG_CODES = frozenset(
    {"name_qualified", "name_similar", "name_withheld", "graph_document_invalid"}
)
"""Codes of the saved diagnostics, which do not depend on the state of servers."""
_FAULTS = (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, struct.error)
_FACT = attrgetter(*(each.name for each in fields(Fact)))
Arrays = dict[str, np.ndarray]


class IndexStore:
    """A folder of saved snapshots, safe for threads and processes that share it.

    A snapshot is identified by all its inputs: the listing of each source (*listed*) and all other
    inputs (*settings*). The `repr` of each input must contain all of its data.
    """

    def __init__(self, folder: Path, options: IndexOptions) -> None:
        self._folder = folder
        self._options = options
        self.newest = ""
        """Fingerprint of the snapshot that was last loaded or passed to `save`."""

    def load(
        self, listed: Mapping[str, ListResult], settings: Iterable[object]
    ) -> tuple[Snapshot | None, tuple[Diagnostic, ...]]:
        """Return the snapshot that was saved with these inputs, None if missing, and diagnostics.

        The snapshot has version 0, and only diagnostics of the catalog itself.
        """
        fingerprint = _fingerprint(listed, settings)
        path = self._snapshot_path(fingerprint)
        try:
            with collection_paused():
                snapshot = _decode(path, fingerprint)
        except FileNotFoundError:
            return None, ()
        except _FAULTS as error:
            detail = f"saved index {path.name!r} is damaged: {error!r}"
            return None, (_store_diagnostic("store_rebuilt", detail),)
        with suppress(OSError):
            os.utime(path)
        self.newest = fingerprint
        return snapshot, ()

    def save(
        self, listed: Mapping[str, ListResult], settings: Iterable[object], snapshot: Snapshot
    ) -> tuple[Diagnostic, ...]:
        """Save *snapshot* if it is large and not saved yet, and delete the oldest saved snapshots.

        Return diagnostics if saving failed; else empty.
        """
        previous, self.newest = self.newest, _fingerprint(listed, settings)
        if self.newest == previous or len(snapshot.entities) < self._options.min_tools:
            return ()
        try:
            write_atomically(self._snapshot_path(self.newest), _encode(snapshot, self.newest))
            saved = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda path: -path.stat().st_mtime)
            for path in saved[self._options.kept :]:
                path.unlink(missing_ok=True)
        except (OSError, TypeError, ValueError) as error:
            return (_store_diagnostic("store_unavailable", f"the index was not saved: {error}"),)
        return ()

    def _snapshot_path(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}{_SUFFIX}"


def _fingerprint(listed: Mapping[str, ListResult], settings: Iterable[object]) -> str:
    hashed = hashlib.blake2b(_code_version().encode(), digest_size=20)
    for server, result in sorted(listed.items()):
        registration, listing = result.registration, result.listing
        itself = registration.itself
        parts = (
            (server, registration.source.trusted, registration.hints),
            (access_key(registration.access), sorted(listing.originals.items())),
            sorted((key, access_key(access)) for key, access in listing.access.items()),
            itself,
            (digest_of(listing) or repr(listing.definitions), listing.instructions),
            [
                (replace(entity, scopes=frozenset()), sorted(entity.scopes))
                for entity in listing.entities
            ],
        )
        hashed.update(repr(parts).encode("utf-8", "surrogatepass"))
    for setting in settings:
        hashed.update(repr(setting).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


@cache
def _code_version() -> str:
    """Return a text that identifies the version of the code that compiles snapshots."""
    root = Path(__file__).parents[2]
    folders = ("gateway/index", "gateway/catalog", "gateway/sources", "graphs")
    files = sorted(path for name in folders for path in (root / name).rglob("*.py"))
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return repr((VERSION, sys.version, stats))


def _write(metadata: Mapping[str, object], arrays: Arrays) -> bytes:
    header = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    tensors = save({_HEADER: header, **arrays})
    return _SUM.pack(zlib.crc32(tensors)) + tensors


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the metadata and the arrays of a file with the bytes from `_write`.

    The arrays are memory-mapped, so that processes share them.

    Raises:
        ValueError, struct.error: If the file is damaged.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    checksum, length = _START.unpack_from(data)
    tensors = memoryview(data)[_SUM.size :]
    if checksum != zlib.crc32(tensors):
        raise ValueError("the checksum does not match")
    # Read the arrays directly, because the reader of safetensors copies each of them.
    values = tensors[_START.size - _SUM.size + length :]
    header = json.loads(data[_START.size : _START.size + length])
    arrays = {
        name: np.frombuffer(values[slice(*tensor["data_offsets"])], _DTYPES[tensor["dtype"]])
        .reshape(tensor["shape"])
        for name, tensor in header.items()
    }  # fmt: skip
    return json.loads(arrays.pop(_HEADER).tobytes()), arrays


def _encode(snapshot: Snapshot, fingerprint: str) -> bytes:
    arrays: Arrays = {"server_ids": snapshot.server_ids}
    traits = snapshot.eligibility.by_trait
    arrays["traits"] = np.concatenate([np.zeros(0, np.intp), *traits.values()])
    vectors, graph = snapshot.vectors, snapshot.graph
    vectors = vectors if isinstance(vectors, VectorIndex) else None
    if vectors is not None and vectors.mean is not None:
        arrays["matrix"], arrays["mean_vector"] = vectors.matrix, vectors.mean
        if vectors.sketch is not None:
            arrays |= _arrays_of(vectors.sketch, "sketch.")
    entities = [json.dumps(to_builtins(entity)).encode() for entity in snapshot.entities]
    arrays["entities"] = np.frombuffer(b"".join(entities), np.uint8)
    arrays["entity_ends"] = np.cumsum([len(line) for line in entities], dtype=np.int64)
    metadata: dict[str, object] = {
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
            if note.code in _CATALOG_CODES
        ],
        "radius": vectors and vectors.sketch and vectors.sketch.radius,
        "lexical": _encode_texts(snapshot.lexical, "lexical.", arrays),
    }
    if graph is not None:
        arrays["edges"] = _pack([graph.index.edges])
        arrays["facts"] = _pack(graph.index.statements())
        metadata["graph"] = {
            **_lists_of(graph.index, "documents", "labels", "kinds"),
            "forbidden": sorted(graph.index.forbidden),
        }
        if graph.index.texts is not snapshot.lexical:
            metadata["texts"] = _encode_texts(graph.index.texts, "texts.", arrays)
    return _write(metadata, arrays)


def _decode(path: Path, fingerprint: str) -> Snapshot:
    raw, arrays = _read(path)
    if raw["fingerprint"] != fingerprint:
        raise ValueError("it is the index of another catalog")
    traits: dict[tuple[str, Any], np.ndarray] = {}
    start = 0
    for name, value, count in raw["traits"]:
        key = frozenset(value) if isinstance(value, list) else value
        traits[name, key] = arrays["traits"][start : start + count]
        start += count
    by_id = {entity_id: position for position, entity_id in enumerate(raw["ids"])}
    sketch = raw["radius"] and SignSketch(radius=raw["radius"], **_with_prefix("sketch.", arrays))
    diagnostics = tuple(
        Diagnostic(stage=stage, code=code, detail=detail)
        for stage, code, detail in raw["diagnostics"]
    )
    lexical = texts = _decode_texts(raw["lexical"], "lexical.", arrays)
    if "texts" in raw:
        texts = _decode_texts(raw["texts"], "texts.", arrays)
    return Snapshot(
        version=0,
        entities=_StoredEntities(arrays["entities"], arrays["entity_ends"]),
        by_name=raw["by_name"],
        eligibility=Eligibility(by_trait=traits, by_id=by_id),
        lexical=lexical,
        graph=_decode_graph(raw["graph"], arrays, texts) if "graph" in raw else None,
        vectors=VectorIndex(matrix=arrays["matrix"], sketch=sketch, mean=arrays["mean_vector"])
        if "matrix" in arrays
        else None,
        server_ids=arrays["server_ids"],
        diagnostics=diagnostics,
    )


def _decode_graph(raw: dict[str, Any], arrays: Arrays, texts: BM25Index) -> ToolGraph:
    forbidden = frozenset((first, second, third) for first, second, third in raw.pop("forbidden"))
    (edges,) = _unpack(arrays["edges"])
    return ToolGraph.of(
        GraphIndex(
            **raw,
            network=network_of(edges),
            texts=texts,
            statements=partial(_unpack, arrays["facts"]),
            forbidden=forbidden,
        )
    )


def _pack(statements: Iterable[Iterable[Fact]]) -> np.ndarray:
    facts = [[_FACT(fact) for fact in source] for source in statements]
    return np.frombuffer(zlib.compress(json.dumps(facts).encode(), level=1), np.uint8)


def _unpack(packed: np.ndarray) -> list[list[Fact]]:
    names = [field.name for field in fields(Fact)]
    raw = json.loads(zlib.decompress(packed.tobytes()))
    return [[Fact(**dict(zip(names, row, strict=True))) for row in source] for source in raw]


def _encode_texts(index: BM25Index, prefix: str, arrays: Arrays) -> dict[str, object]:
    arrays |= _arrays_of(index, prefix)
    return _lists_of(index, "size", "fields", "languages", "names", "words")


def _decode_texts(raw: dict[str, Any], prefix: str, arrays: Arrays) -> BM25Index:
    tuples = {name: tuple(raw[name]) for name in ("fields", "languages")}
    return BM25Index(**{**raw, **tuples, **_with_prefix(prefix, arrays)})


def _arrays_of(value: Any, prefix: str) -> Arrays:
    values = {field.name: getattr(value, field.name) for field in fields(value)}
    return {prefix + name: array for name, array in values.items() if isinstance(array, np.ndarray)}


def _lists_of(value: object, *names: str) -> dict[str, object]:
    return {name: getattr(value, name) for name in names}


def _with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


class _StoredEntities(Sequence[Entity]):
    """Entities by position. Each is parsed on first use, because a search reads only a few."""

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
            entity = self._parsed[position] = convert(json.loads(line), Entity)
        return entity


def _store_diagnostic(code: Code, detail: str) -> Diagnostic:
    return Diagnostic(stage="store", code=code, detail=detail)
