"""Control of garbage collection, and return of free memory to the operating system."""

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
    """Pause the garbage collector in the block. While many objects are created, it would repeatedly
    scan all of them without finding any to free.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def release_memory() -> bool:
    """Return free memory to the operating system. Return True if some was returned.

    glibc, the C library of most Linux systems, keeps memory that a large build freed: a fifth of
    the memory for 60,000 tools. On systems without glibc this function does nothing.
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim = getattr(library, "malloc_trim", None)
    return trim is not None and bool(trim(0))
