"""Return of free memory to the operating system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from gateway.runtime.garbage import release_memory


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc's"
)
def test_release_memory_returns_free_memory_between_used_blocks() -> None:
    """Otherwise the process keeps free memory below any used block."""
    blocks = [bytes(1 << 16) for _ in range(256)]
    pinned = blocks[1::64]
    del blocks

    assert release_memory()
    assert 4 == len(pinned)
