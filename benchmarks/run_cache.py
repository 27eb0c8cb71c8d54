"""Runs that are measured once: JSON in a folder, named by all that could change them.

A run is measured again when its data, its options or the code below it changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.data import Row
from gateway.runtime.atomic_file import write_atomically

Lines = list[dict[str, object]]
"""The lines of a run."""

DATA = ("catalog.jsonl", "queries.jsonl", "edges.jsonl", "nomatch.jsonl")
_HASHED_CHARS = 32


def files_hash(paths: Iterable[Path]) -> str:
    """Hash the names and contents of files, and of all files in folders but compiled ones."""
    whole = hashlib.sha256()
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            if file.is_file() and "__pycache__" not in file.parts:
                whole.update(f"{file.relative_to(path.parent)}\n".encode())
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def data_hash(folder: Path) -> str:
    """Hash what a run reads of a benchmark folder."""
    return files_hash(folder / name for name in DATA if (folder / name).is_file())


def cached_runs(
    folder: Path,
    key: Mapping[str, object],
    measure: Callable[[], dict[str, Lines]],
    *,
    fresh: bool = False,
) -> Mapping[str, Iterable[Row]]:
    """Return the runs that *key* names: those of *folder*, else those that *measure* returns.

    Args:
        folder: Where runs are; made if it is not there.
        key: All that could change the runs, as JSON values.
        measure: Called if there are none, or *fresh* ones are wanted.
        fresh: Measure in any case.
    """
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:_HASHED_CHARS]
    path = folder / f"{name}.json"
    if path.is_file() and not fresh:
        runs: dict[str, Lines] = json.loads(path.read_text(encoding="utf-8"))
        return runs
    runs = measure()
    write_atomically(path, json.dumps(runs, ensure_ascii=False))
    return runs
