"""Folders of files that are converted once, and verified by checksums at every use.

* A folder is filled beside its final path and moved there in one step, so a torn or changed one is
  made again. The checksums guard against accidents, not against an attacker who may write there.
* Processes that start together convert the same.
* Each version of a conversion has a folder of its own. A use renews the folder's time; those that
  were not used for a month go when a new one is made.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

_SUMS_FILE = "sha256"
_MODE = 0o755
"""One user may build an image and another read it."""
_ABANDONED_S = 24 * 60 * 60.0
"""A temporary folder that is older belongs to a process that was killed."""
_UNUSED_S = 30 * _ABANDONED_S


def cached_conversion(convert: Callable[[Path], None], folder: Path, *, siblings: str = "") -> Path:
    """Return a folder that *convert* has filled: *folder*, or a temporary one.

    Where nothing can be written, each process converts anew and removes the result at its end.

    Args:
        convert: Fills the folder that it gets.
        folder: Where the result is kept.
        siblings: A pattern of the names of such folders, of any version: unused ones are removed
            when a new one is made. "" removes none.
    """
    if _is_intact(folder):
        with suppress(OSError):
            os.utime(folder)
        return folder
    fresh = _convert_beside(convert, folder, siblings)
    if not _is_intact(folder):
        # What another process has opened stays open.
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            fresh.replace(folder)
    if not _is_intact(folder):
        atexit.register(shutil.rmtree, fresh, ignore_errors=True)
        return fresh
    shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _convert_beside(convert: Callable[[Path], None], folder: Path, siblings: str) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_older(folder.parent.glob(f"{folder.name}-*"), _ABANDONED_S)
        if siblings:
            others = (path for path in folder.parent.glob(siblings) if path != folder)
            _remove_older(others, _UNUSED_S)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    with ExitStack() as on_failure:
        on_failure.callback(shutil.rmtree, fresh, ignore_errors=True)
        convert(fresh)
        sums = [f"{_checksum(path)}  {path.name}\n" for path in sorted(fresh.iterdir())]
        (fresh / _SUMS_FILE).write_text("".join(sums), encoding="ascii")
        fresh.chmod(_MODE)
        on_failure.pop_all()
    return fresh


def _remove_older(folders: Iterable[Path], age_s: float) -> None:
    for folder in folders:
        # Another process may remove it too.
        with suppress(OSError):
            if folder.stat().st_mtime < time.time() - age_s:
                shutil.rmtree(folder)


def _is_intact(folder: Path) -> bool:
    try:
        lines = (folder / _SUMS_FILE).read_text(encoding="ascii").splitlines()
        expected = {name: checksum for checksum, name in (line.split("  ") for line in lines)}
        names = {path.name for path in folder.iterdir()} - {_SUMS_FILE}
        return bool(names) and expected == {name: _checksum(folder / name) for name in names}
    except (OSError, ValueError):
        return False


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
