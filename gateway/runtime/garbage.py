from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LARGE_CATALOG = 20_000
"""Number of entities from which an index build calls `release_memory` at its end."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the garbage collector in the block, because it repeatedly scans all new objects."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def release_memory() -> bool:
    """Return free memory to the operating system. Return True if some was returned.

    glibc keeps memory that a large build freed. Without glibc, this function does nothing.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim = getattr(library, "malloc_trim", None)
    return trim is not None and bool(trim(0))
