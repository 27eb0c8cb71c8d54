"""Folders that are made once from something slower to read, and checked when they are used.

* A folder is filled beside its place and moved there at once, with the checksums of its files: a
  torn write or a changed file is made again. The sums hold against accidents, not against whoever
  may write there.
* Processes that start at once make the same; none takes away what another has opened.
* Other versions leave folders of their own. Each use is noted by the folder's time, and what nobody
  used for a month goes when a new one is made: whoever comes back to it makes it again.
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

_SUMS = "sha256"
_READABLE = 0o755
"""An image's builder makes it, another user reads it."""
_LEFT_S = 24 * 60 * 60.0
"""What is older and not in its place belongs to a process that was killed."""
UNUSED_S = 30 * _LEFT_S
"""What nobody used for so long may go."""


def converted(make: Callable[[Path], None], folder: Path, *, others: str = "") -> Path:
    """Give the folder that *make* fills: *folder*, whole, or a passing one.

    Where nothing can be written it is made anew in each process, and removed at its end.

    Args:
        make: Fills the folder that it is given.
        folder: Where it is kept.
        others: A pattern of what such folders are called beside it, whatever version made them:
            before a new one is made, those of them go that nobody used for `UNUSED_S`. Empty
            leaves them.
    """
    if _whole(folder):
        with suppress(OSError):
            os.utime(folder)
        return folder
    filled = _filled(make, folder, others)
    if not (_moved(filled, folder) or _whole(folder)) and folder.is_dir():
        with suppress(OSError):
            folder.replace(filled.with_name(f"{filled.name}-torn"))
        _moved(filled, folder)
    if not _whole(folder):
        atexit.register(shutil.rmtree, filled, ignore_errors=True)
        return filled
    for left in (filled, filled.with_name(f"{filled.name}-torn")):
        shutil.rmtree(left, ignore_errors=True)
    return folder


def _moved(filled: Path, folder: Path) -> bool:
    # A folder that is there and not empty stays: another process may have opened it.
    try:
        filled.replace(folder)
    except OSError:
        return False
    return True


def _filled(make: Callable[[Path], None], folder: Path, others: str) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _swept(folder.parent.glob(f"{folder.name}-*"), _LEFT_S)
        if others:
            _swept((each for each in folder.parent.glob(others) if each != folder), UNUSED_S)
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    except OSError:
        fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    with ExitStack() as failed:
        failed.callback(shutil.rmtree, fresh, ignore_errors=True)
        make(fresh)
        sums = [f"{_sum(path)}  {path.name}\n" for path in sorted(fresh.iterdir())]
        (fresh / _SUMS).write_text("".join(sums), encoding="ascii")
        fresh.chmod(_READABLE)
        failed.pop_all()
    return fresh


def _swept(folders: Iterable[Path], after_s: float) -> None:
    for left in folders:
        # Another process may sweep too.
        with suppress(OSError):
            if left.stat().st_mtime < time.time() - after_s:
                shutil.rmtree(left)


def _whole(folder: Path) -> bool:
    try:
        lines = (folder / _SUMS).read_text(encoding="ascii").splitlines()
        told = {name: expected for expected, name in (line.split("  ") for line in lines)}
        there = {path.name for path in folder.iterdir()} - {_SUMS}
        return (
            bool(there)
            and told.keys() == there
            and all(_sum(folder / each) == told[each] for each in there)
        )
    except (OSError, ValueError):
        return False


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
