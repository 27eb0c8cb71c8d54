"""A compiled index on disk: arrays that are mapped, not read, and a manifest that vouches for them.

* The manifest is written last and at once: a folder holds the old index or the new one.
* A file that does not match its checksum, or a version we do not write, is an error that says so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from graphs.adjacency import Adjacency
from graphs.columns import EdgeRows, FactRows, Texts
from graphs.errors import StateError
from graphs.index import EDGE_PREDICATES, EDGE_ROLES, GraphIndex
from graphs.postings import Postings
from graphs.spelling import Spelling

VERSION = 2
MANIFEST = "manifest.json"
_NAMES = "names.json"
_ROLES = tuple(sorted(EDGE_ROLES))


def save(index: GraphIndex, folder: str | Path) -> None:
    """Write *index* into *folder*, which is made if need be; an older index there is replaced."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    data = root / f"data-{uuid4().hex[:12]}"
    data.mkdir()
    for name, array in _arrays(index).items():
        np.save(data / f"{name}.npy", array, allow_pickle=False)
    (data / _NAMES).write_text(json.dumps(_names(index)), encoding="utf-8")
    manifest = {
        "version": VERSION,
        "data": data.name,
        "files": {file.name: _digest(file) for file in sorted(data.iterdir())},
    }
    draft = root / f"{data.name}.json"
    draft.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    draft.replace(root / MANIFEST)
    for old in root.glob("data-*"):
        if old != data:
            shutil.rmtree(old, ignore_errors=True)


def load(folder: str | Path, *, verify: bool = True) -> GraphIndex:
    """Open the index in *folder*; its arrays are mapped from disk.

    Args:
        folder: What `save` has written.
        verify: Whether every file is compared with its checksum first.

    Raises:
        StateError: There is no index, it has another version, or a file was changed.
    """
    root = Path(folder)
    manifest = _manifest(root)
    data = root / str(manifest["data"])
    files = manifest["files"]
    for name, digest in files.items() if isinstance(files, dict) else ():
        if not (data / name).is_file():
            raise StateError(f"lacks the file {name!r}", path=str(root))
        if verify and _digest(data / name) != digest:
            raise StateError(f"has a damaged file {name!r}: its checksum is wrong", path=str(root))
    try:
        return _index(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError("cannot be read", path=str(root)) from error


def _manifest(root: Path) -> Mapping[str, object]:
    try:
        found = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StateError("is not there", path=str(root)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise StateError("has a manifest that cannot be read", path=str(root)) from error
    version = found.get("version") if isinstance(found, dict) else None
    if version != VERSION:
        raise StateError(f"has version {version!r}, not {VERSION}", path=str(root))
    if not {"data", "files"} <= found.keys():
        raise StateError("has a manifest without files", path=str(root))
    return dict(found)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _names(index: GraphIndex) -> dict[str, object]:
    """Give what is read whole at once, as JSON, which keeps half characters."""
    postings = index.postings
    return {
        "nodes": index.nodes,
        "labels": index.labels,
        "document_count": index.document_count,
        "edge_count": index.edge_count,
        "size": postings.size,
        "fields": postings.fields,
        "languages": postings.languages,
        "terms": postings.names,
        "words": postings.spelling.words,
        "roles": _ROLES,
        "members": list(index.members),
    }


def _arrays(index: GraphIndex) -> dict[str, np.ndarray]:
    facts = tuple(index.facts)
    rows = FactRows.of(facts)
    found = {
        "facts": rows.rows,
        "texts": rows.texts.blob,
        "texts_at": rows.texts.offsets,
        "members": np.concatenate([np.zeros(0, dtype=np.int64), *index.members.values()]),
        "members_at": np.cumsum([0, *map(len, index.members.values())]),
        "edges": index.adjacency.edges,
        "edges_at": index.adjacency.starts,
    }
    roles = [(at, fact, EDGE_PREDICATES.get(fact.predicate)) for at, fact in enumerate(facts)]
    edges = [(at, fact, kind) for at, fact, kind in roles if kind and not fact.literal]
    for name, end in (("forward", attrgetter("subject")), ("backward", attrgetter("object"))):
        ends = [(at, end(fact), kind) for at, fact, kind in edges]
        held = EdgeRows.of(facts, ends, index.positions, _ROLES)
        found |= {f"{name}_keys": held.codes, f"{name}_at": held.offsets, name: held.rows}
    postings, spelling = index.postings, index.postings.spelling
    return found | {
        "ranks": index.ranks,
        "rarity": postings.rarity,
        "offsets": postings.offsets,
        "positions": postings.positions,
        "impacts": postings.impacts,
        "sources": postings.sources,
        "meanings": postings.meanings,
        "grams": spelling.grams,
        "grams_at": spelling.offsets,
        "grams_in": spelling.members,
    }


def _index(data: Path) -> GraphIndex:
    # Plain arrays over the mapped files: slices of `np.memmap` cost ten times as much.
    arrays = {file.stem: np.asarray(np.load(file, mmap_mode="r")) for file in data.glob("*.npy")}
    names = json.loads((data / _NAMES).read_text(encoding="utf-8"))
    nodes = tuple(names["nodes"])
    facts = FactRows(arrays["facts"], Texts(blob=arrays["texts"], offsets=arrays["texts_at"]))
    positions = {node: at for at, node in enumerate(nodes)}
    edges = {
        name: EdgeRows(
            facts=facts,
            nodes=nodes,
            positions=positions,
            roles=tuple(names["roles"]),
            codes=arrays[f"{name}_keys"],
            offsets=arrays[f"{name}_at"],
            rows=arrays[name],
        )
        for name in ("forward", "backward")
    }
    return GraphIndex(
        nodes=nodes,
        positions=positions,
        labels=tuple(names["labels"]),
        ranks=arrays["ranks"],
        document_count=names["document_count"],
        documents=frozenset(nodes[: names["document_count"]]),
        facts=facts,
        postings=_postings(names, arrays),
        forward=edges["forward"],
        backward=edges["backward"],
        members=dict(_members(names["members"], arrays)),
        edge_count=names["edge_count"],
        adjacency=Adjacency(size=len(nodes), starts=arrays["edges_at"], edges=arrays["edges"]),
    )


def _postings(names: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Postings:
    words = tuple(names["words"])
    return Postings(
        size=names["size"],
        fields=tuple(names["fields"]),
        languages=tuple(names["languages"]),
        terms={term: at for at, term in enumerate(names["terms"])},
        names=tuple(names["terms"]),
        rarity=arrays["rarity"],
        offsets=arrays["offsets"],
        positions=arrays["positions"],
        impacts=arrays["impacts"],
        sources=arrays["sources"],
        meanings=arrays["meanings"],
        spelling=Spelling(
            words=words,
            ids={word: at for at, word in enumerate(words)},
            grams=arrays["grams"],
            offsets=arrays["grams_at"],
            members=arrays["grams_in"],
        ),
    )


def _members(
    nodes: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray]]:
    for node, (start, end) in zip(nodes, pairwise(arrays["members_at"].tolist()), strict=True):
        yield node, arrays["members"][start:end]
