"""The one way to write a file: as a whole or not at all, and for its owner alone.

What is new gets no permissions for others, whatever the umask says. What is there keeps those that
it has.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(path: Path) -> None:
    """Make *path* and each folder above it that is missing.

    Raises:
        OSError: It cannot be made, or is no folder.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_private_folder(path.parent)
    path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file at *path*, and its folder, if they are missing.

    A file that is there is not opened: to close it would give up the locks that this process has
    on it, such as SQLite's.

    Raises:
        OSError: It cannot be made.
    """
    make_private_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def write_atomically(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Replace *path* with *content*; a reader sees the old file or the new one, never a part.

    The text is UTF-8 and its line ends are written as they are. A link is followed: the file that
    it leads to is replaced.

    Args:
        path: The file. Its folder is made, readable by its owner alone, if it is missing.
        content: The whole of it.
        mode: The permissions of the new file; None keeps those of the old one. A file that is new
            can be read by its owner alone.

    Raises:
        OSError: It cannot be written; then the old file is as it was and nothing is left over.
    """
    import tempfile  # noqa: PLC0415  (it loads three libraries of compression)

    path = path.resolve()
    make_private_folder(path.parent)
    # A file of `mkstemp` can be read by its owner alone from the first moment.
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
