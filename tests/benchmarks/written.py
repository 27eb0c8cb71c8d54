from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_lines(path: Path, rows: Iterable[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_set(folder: Path, **files: Iterable[object]) -> Path:
    """Write *files* as JSON Lines, keyed by name without suffix; return the folder."""
    for name, rows in files.items():
        write_lines(folder / f"{name}.jsonl", rows)
    return folder
