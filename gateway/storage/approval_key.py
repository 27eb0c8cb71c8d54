"""The key by which what a configuration file would run is digested, in a file of its owner alone.

Without it nobody can find a value by trying, not even a short one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gateway.runtime.atomic_file import write_atomically

_BYTES = 32


def approval_key(path: Path) -> bytes:
    """Return the key in the file *path*, mode 0600; make it if it is missing.

    If there can be no file the key is a new one each time: nothing is then as it was approved.
    """
    try:
        if not path.exists():
            fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            write_atomically(fresh, secrets.token_bytes(_BYTES))
            try:
                # Of two processes that make it at once, both use that of the first.
                os.link(fresh, path)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_bytes()
    except OSError:
        return secrets.token_bytes(_BYTES)
