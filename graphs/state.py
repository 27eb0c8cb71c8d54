"""A compiled index on disk: arrays that are mapped, not read, and a manifest that vouches for them.

* The manifest is written last and at once: a folder holds the old index or the new one.
* A file that does not match its checksum, or a version we do not write, is an error that says so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import numpy as np

from graphs.apart import index_of, taken_apart
from graphs.errors import StateError
from graphs.graph import GraphIndex

VERSION = 3
MANIFEST = "manifest.json"
_NAMES = "names.json"


def save(index: GraphIndex, folder: str | Path) -> None:
    """Write *index* into *folder*, which is made if need be; an older index there is replaced."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    data = root / f"data-{uuid4().hex[:12]}"
    data.mkdir()
    names, arrays = taken_apart(index)
    for name, array in arrays.items():
        np.save(data / f"{name}.npy", array, allow_pickle=False)
    # An index that another file was read from holds its texts as they lie there.
    (data / _NAMES).write_text(json.dumps(names, default=list), encoding="utf-8")
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


def _index(data: Path) -> GraphIndex:
    # Plain arrays over the mapped files: slices of `np.memmap` cost ten times as much.
    arrays = {file.stem: np.asarray(np.load(file, mmap_mode="r")) for file in data.glob("*.npy")}
    return index_of(json.loads((data / _NAMES).read_text(encoding="utf-8")), arrays)
