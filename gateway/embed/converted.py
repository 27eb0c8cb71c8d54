"""Folders that are made once from something slower to read, and checked when they are used.

A folder is filled beside its place and moved there at once, with the checksums of its files: a
torn write or a changed file is made again. Two processes that start at once make the same.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

_SUMS = "sha256"


def converted(make: Callable[[Path], None], folder: Path) -> Path:
    """Give the folder that *make* fills: *folder*, whole, or a passing one.

    Where nothing can be written it is made anew in each process, and removed at its end.
    """
    if _whole(folder):
        return folder
    filled = _filled(make, folder)
    if not _whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        # Another process may be faster: its folder holds the same.
        with suppress(OSError):
            filled.replace(folder)
    if not _whole(folder):
        atexit.register(shutil.rmtree, filled, ignore_errors=True)
        return filled
    shutil.rmtree(filled, ignore_errors=True)
    return folder


def _filled(make: Callable[[Path], None], folder: Path) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    with ExitStack() as failed:
        failed.callback(shutil.rmtree, fresh, ignore_errors=True)
        make(fresh)
        failed.pop_all()
    sums = [f"{_sum(path)}  {path.name}\n" for path in sorted(fresh.iterdir())]
    (fresh / _SUMS).write_text("".join(sums), encoding="ascii")
    return fresh


def _whole(folder: Path) -> bool:
    try:
        told = (folder / _SUMS).read_text(encoding="ascii")
        return all(
            _sum(folder / name) == expected
            for expected, name in (line.split("  ") for line in told.splitlines())
        )
    except (OSError, ValueError):
        return False


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
