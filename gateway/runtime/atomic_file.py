"""Creation and atomic replacement of files that only their owner can read.

Existing files and folders keep their permissions.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(path: Path) -> None:
    """Create the folder *path* and its missing parents.

    Raises:
        OSError: If a folder cannot be created.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_private_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Create an empty file at *path*, and its folder, if they are missing.

    An existing file is not opened, because closing it would release this process's locks on it,
    such as SQLite's.

    Raises:
        OSError: If the file cannot be created.
    """
    make_private_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def write_atomically(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Replace *path* by *content*. Readers see the old or the new content, never a part.

    Texts are written in UTF-8 with unchanged line ends. If *path* is a link, its target is
    replaced. *mode* is the permissions of the file; None keeps the old ones. New files and folders
    are readable only by their owner.

    Raises:
        OSError: If the file cannot be written. The old file is then unchanged, without leftovers.
    """
    import tempfile  # noqa: PLC0415  (it loads three libraries of compression)

    path = path.resolve()
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None and path.exists():
            mode = path.stat().st_mode & 0o7777
        if mode is not None:
            fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
