"""Writing files that others read: whole or not at all, and never over a change of somebody else."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from gateway.errors import ConfigError

_MARK = b"\xef\xbb\xbf"
"""What some editors put before UTF-8."""


def text_of(path: Path) -> str:
    """Give what *path* holds; empty if it is not there.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error


def replace_text(
    path: Path, text: str, *, was: str, backup_at: datetime | None = None
) -> Path | None:
    """Put *text* in the place of what *path* holds, at once; give the copy of what was there.

    A link stays one, a file's permissions stay; folders are made.

    Args:
        path: The file.
        text: All of it.
        was: What `text_of` gave before.
        backup_at: When; dates the copy. None makes none, and nothing there needs none.

    Raises:
        ConfigError: It holds something else by now, or cannot be written.
    """
    path = path.resolve()
    if text_of(path) != was:
        raise ConfigError(f"{str(path)!r} was changed meanwhile: run the command again")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else None
        kept = None
        if before is not None and backup_at is not None:
            kept = _free(path, backup_at)
            _write(kept, before, like=path)
        mark = _MARK if before is not None and before.startswith(_MARK) else b""
        _write(path, mark + text.encode(), like=path)
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written: {error}") from error
    return kept


def _free(path: Path, at: datetime) -> Path:
    stem = f"{path.name}.{at:%Y%m%d-%H%M%S}"
    kept = path.with_name(f"{stem}.bak")
    count = 2
    while kept.exists():
        kept = path.with_name(f"{stem}-{count}.bak")
        count += 1
    return kept


def _write(path: Path, content: bytes, *, like: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        made.chmod(like.stat().st_mode & 0o7777 if like.exists() else 0o600)
        made.replace(path)
    finally:
        with suppress(FileNotFoundError):
            made.unlink()
