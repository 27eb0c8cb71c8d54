"""The key by which what a configuration file would run is digested: from the key of the host, or
else in a file of its owner alone.

Without it nobody can find a value by trying, not even a short one.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from gateway.options import Options
from gateway.options.environment import approval_key_path
from gateway.runtime.atomic_file import write_atomically
from gateway.storage.host_key import host_keys

_BYTES = 32


def approval_key(options: Options) -> bytes:
    """Return the key: 32 bytes, the same on all machines that have the same key of the host.

    Without that it is in the file ``approvals.key``, mode 0600, which is made if it is missing. If
    there can be no file the key is a new one each time: nothing is then as it was approved.

    Raises:
        ConfigError: The key of the host cannot be used.
    """
    keys = host_keys(options, "approvals")
    return keys[0] if keys else key_in(approval_key_path(options))


def key_in(path: Path) -> bytes:
    """Return the key in the file *path*, mode 0600; make it if it is missing."""
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
